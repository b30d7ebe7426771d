"""Change a real judge during a run, and count how often the run notices.

    python studies/robustness/continuity.py FIRST.gguf --drifted SECOND.gguf --other THIRD.gguf
        [--times 20] [--kinds honest,restart,drift,resumed,swap] [--threads 1]
    python studies/robustness/continuity.py URL --drifted URL --other URL

llama.cpp serves every file under the same name, behind one address that passes requests on; the
server's descriptions of itself are always those of FIRST, so only answers can differ. A URL in
place of a file is a server that runs already, such as vLLM with `--served-model-name judge`. A
small run is judged by FIRST. After a random number of its requests the address passes on to
another server:

honest   never: no alarm is right
restart  after two seconds without a server, FIRST again: no alarm is right
drift    SECOND, the same weights in another quantization (studies/judges/requantize.py)
resumed  SECOND, but only for the command that resumes a stopped run
swap     THIRD, another model under the same name

Every run has other queries. `--record FILE` keeps one line per run, and continues with it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from loopback import free_port

from rocketeval.config import RunConfig, parse_config
from rocketeval.engines.probe import PREFIX
from rocketeval.errors import JudgeChanged, RunMismatch, Stopped
from rocketeval.pipeline import Run
from support.make import write_jsonl

SERVE = Path(__file__).parents[1] / "judges" / "serve_llamacpp.py"
NAME = "judge"
ALARMS = {"honest": False, "restart": False, "drift": True, "resumed": True, "swap": True}
CAPITALS = (
    *("Norway Oslo", "Peru Lima", "Kenya Nairobi", "Japan Tokyo", "Cuba Havana", "Ghana Accra"),
    *("Chile Santiago", "Egypt Cairo", "Iran Tehran", "Italy Rome", "Spain Madrid", "Qatar Doha"),
    *("Nepal Kathmandu", "Poland Warsaw", "Latvia Riga", "Serbia Belgrade", "Mali Bamako"),
    *("Laos Vientiane", "Canada Ottawa", "Ireland Dublin", "Greece Athens", "Angola Luanda"),
)
QUERIES = 6
ITEMS = ("Is the answer correct?", "Is the answer a full sentence?", "Is the answer short?")
SPEAKERS = ("right", "wrong", "evasive")
CHATS = QUERIES * len(SPEAKERS) * len(ITEMS)


@dataclass(frozen=True)
class Result:
    """The end of one run."""

    kind: str
    number: int
    after: int
    """Items that FIRST answered before the change."""
    alarm: bool
    how: str
    """The message of the alarm, or the run's own words on its check."""
    set_aside: int
    judged: int


class Address:
    """One address for several servers: passes every request on to the current one."""

    def __init__(self, first: str) -> None:
        self.first = self.current = first
        self.after: int | None = None
        self.later = first
        self.pause = 0.0
        self._chats = 0
        self._down_until = 0.0
        self.url = ""

    def change(self, after: int | None, later: str, pause: float = 0.0) -> None:
        """Pass on to `later` after some chats, and turn requests away for a pause before that."""
        self._chats, self.after, self.later, self.pause = 0, after, later, pause

    @asynccontextmanager
    async def listening(self) -> Any:
        """Listen on a free port for the length of the `with` block."""
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._pass_on)
        runner, port = web.AppRunner(app), free_port()
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()
        self.url = f"http://127.0.0.1:{port}/v1"
        async with aiohttp.ClientSession() as self._session:
            yield self
        await runner.cleanup()

    async def _pass_on(self, request: web.Request) -> web.StreamResponse:
        body = await request.read()
        loop = asyncio.get_running_loop()
        chats = request.path.endswith(("/chat/completions", "/chat/completions/batch"))
        if chats and PREFIX.encode()[:20] not in body:
            if self.after is not None and self._chats >= self.after:
                self.current, self._down_until = self.later, loop.time() + self.pause
                self.after = None
            # A batch request has the items of one response.
            self._chats += len(ITEMS) if request.path.endswith("/batch") else 1
        if loop.time() < self._down_until:
            assert request.transport is not None
            request.transport.close()
            return web.Response()
        # Descriptions stay those of FIRST, so that only the answers can give the change away.
        url = (self.current if chats else self.first) + request.path
        headers = {"Content-Type": "application/json"}
        async with self._session.request(request.method, url, data=body, headers=headers) as reply:
            content = await reply.read()
            return web.Response(body=content, status=reply.status, content_type="application/json")


@contextmanager
def served(where: str, threads: int) -> Iterator[str]:
    """Serve a file for the length of the `with` block, unless it is a URL; yield the root URL."""
    if where.startswith("http"):
        yield where.removesuffix("/v1")
        return
    command = [sys.executable, str(SERVE), where, "--name", NAME, "--threads", str(threads)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    try:
        assert process.stdout is not None
        ready = process.stdout.readline().split()
        if not ready or ready[0] != "ready":
            raise SystemExit(f"llama.cpp did not serve {where}")
        yield ready[1].removesuffix("/v1")
    finally:
        process.terminate()
        process.wait(60)


def configure(folder: Path, url: str, dice: random.Random) -> RunConfig:
    """Write a benchmark about random countries, and return the config of its run."""
    pairs = [pair.split() for pair in dice.sample(CAPITALS, QUERIES)]
    benchmark = folder / "benchmark"
    texts = {
        "right": "It is {right}.",
        "wrong": "The capital is {wrong}.",
        "evasive": "Many people like to travel there.",
    }
    write_jsonl(
        benchmark / "queries.jsonl",
        [{"id": land, "text": f"What is the capital of {land}?"} for land, _ in pairs],
    )
    for speaker in SPEAKERS:
        rows = [
            {
                "query_id": land,
                "text": texts[speaker].format(right=city, wrong=pairs[place - 1][1]),
            }
            for place, (land, city) in enumerate(pairs)
        ]
        write_jsonl(benchmark / "responses" / f"{speaker}.jsonl", rows)
    lists = [{"query_id": land, "items": list(ITEMS)} for land, _ in pairs]
    write_jsonl(benchmark / "checklists.jsonl", lists)
    judge = {"model": NAME, "base_url": url, "concurrency": 1, "canaries": 0.1, "timeout": 1800}
    return parse_config(
        {
            "benchmark": {"path": str(benchmark)},
            "judge": {**judge, "min_mass": 0.0, "patience": 60},
            "output": str(folder / "runs"),
            "cache": None,
        }
    )


async def one_run(kind: str, number: int, address: Address, servers: dict[str, str]) -> Result:
    """Judge one small run while the judge changes."""
    dice = random.Random(f"{kind} {number}")
    after = dice.randrange(CHATS // 3, 5 * CHATS // 6)
    address.current = servers["first"]
    later = servers.get({"drift": "drifted", "resumed": "drifted", "swap": "other"}.get(kind, ""))
    with tempfile.TemporaryDirectory() as scratch:
        config = configure(Path(scratch), address.url, dice)
        run = Run(config)
        if kind == "resumed":
            address.change(None, servers["first"])
            await stopped_after(run, after // len(ITEMS))
            address.current = servers["drifted"]
            run = Run(config)
        else:
            changes = None if kind == "honest" else after
            pause = 2.0 if kind == "restart" else 0.0
            address.change(changes, later or servers["first"], pause)
        try:
            facts = await run.to_judgments()
            alarm, how = False, facts.continuity.in_words if facts.continuity else ""
        except (JudgeChanged, RunMismatch) as error:
            alarm, how = True, error.message
        aside = list((run.store.path / "set_aside").rglob("*.parquet"))
        return Result(kind, number, after, alarm, how, len(aside), len(run.store.finished()))


async def stopped_after(run: Run, judgments: int) -> None:
    """Judge some responses, then stop."""
    left = [judgments]

    def judged(_: object) -> None:
        left[0] -= 1
        if not left[0]:
            run.stop.set()

    run.observer.judged = judged  # type: ignore[method-assign]
    try:
        await run.to_judgments()
    except Stopped:
        return


async def study(args: argparse.Namespace) -> int:
    """Run everything that the record lacks, and print the counts; return the mistakes."""
    files = {"first": args.first, "drifted": args.drifted, "other": args.other}
    kinds, results = args.kinds.split(","), []
    lines = args.record.read_text().splitlines() if args.record and args.record.exists() else []
    results = [Result(**json.loads(line)) for line in lines]
    done = {(one.kind, one.number) for one in results}
    with ExitStack() as running:
        servers = {
            name: running.enter_context(served(where, args.threads))
            for name, where in files.items()
            if where
        }
        async with Address(servers["first"]).listening() as address:
            for number in range(args.times):
                for kind in kinds:
                    if (kind, number) in done:
                        continue
                    found = await one_run(kind, number, address, servers)
                    results.append(found)
                    print(json.dumps(asdict(found)), file=sys.stderr, flush=True)
                    if args.record:
                        with args.record.open("a") as record:
                            record.write(json.dumps(asdict(found)) + "\n")
    return show(results)


def show(results: list[Result]) -> int:
    """Print the alarms by kind; return the number of wrong results."""
    wrong = 0
    for kind, due in ALARMS.items():
        own = [one for one in results if one.kind == kind]
        if own:
            alarms = sum(one.alarm for one in own)
            wrong += len(own) - alarms if due else alarms
            print(f"{kind:8} {alarms:3} alarms in {len(own)} runs ({'due' if due else 'not due'})")
    return wrong


def main() -> None:
    """Run the study."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("first")
    parser.add_argument("--drifted")
    parser.add_argument("--other")
    parser.add_argument("--times", type=int, default=20)
    parser.add_argument("--kinds", default=",".join(ALARMS))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--record", type=Path)
    sys.exit(bool(asyncio.run(study(parser.parse_args()))))


if __name__ == "__main__":
    main()
