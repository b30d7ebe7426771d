"""What the memory of `rocketeval serve` consists of: kept answers, and what requests leave behind.

    python studies/integrations/serve_memory.py > studies/integrations/recorded/serve_memory.txt

First part: the memory of N kept answers, and that it stops at the bound. Second part: a server in
this process, with at most 500 answers, gets the same load in rounds: responses that are graded, and
responses that time out because the judge (word_judge.py) was killed. After each round, garbage is
collected and the live memory and objects of Python are counted, so that the allocator and garbage
play no part. A leak would grow with every round. Prints the change per request in the second half
of the rounds with its 95% interval. There is no leak if all of it is below 50 bytes: a request
leaves less than one object behind.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import math
import random
import sys
import time
import tracemalloc
from collections.abc import Mapping

import aiohttp
import numpy as np
from aiohttp import web
from scipy import stats
from soak_serve import ITEMS, free_port, start_judge

from rocketeval import Grader, Judge
from rocketeval.records import Answer, JudgeFingerprint, Usage
from rocketeval.rewards.server import RewardServer
from rocketeval.store.answer_file import AnswerFile

KEPT = 500
"""Answers kept in the second part; the first round exceeds it."""
LEAK = 50.0
"""Bytes per request; the smallest object that garbage collection knows is larger."""
TIMEOUT = 3.0


def one_answer() -> Answer:
    """Return an answer with the figures that a server with log-probabilities gives."""
    p = random.random()
    return Answer("ok", p, p, p, random.random(), math.log(p), math.log(1 - p))


def keep(file: AnswerFile, judge: JudgeFingerprint, count: int) -> None:
    """Add answers to prompts that no other has, two at a time as a response has them."""
    for _ in range(0, count, 2):
        answers = {f"{random.getrandbits(256):064x}": one_answer() for _ in "ab"}
        file.add(judge, answers, Usage(2, 200, 0, 2), "Can I get a refund?")


def answers_part(bound: int) -> None:
    """Print the memory of kept answers, up to twice the bound."""
    judge = JudgeFingerprint("openai", "word-judge", "chat", "1", "top20", "template", "readout")
    file = AnswerFile(most=bound)
    print(f"memory of kept answers, with --most-answers {bound:,}:")
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    given = 0
    for share in (0.05, 0.25, 0.5, 1.0, 1.5, 2.0):
        began = time.process_time()
        keep(file, judge, int(share * bound) - given)
        each = (time.process_time() - began) / (int(share * bound) - given)
        given = int(share * bound)
        used = tracemalloc.get_traced_memory()[0] - before
        print(
            f"  {given:9,} added, {file.answers:9,} kept: {used / 1e6:6.1f} MB, "
            f"{used / file.answers:.0f} bytes per kept answer, {1e6 * each:.0f} us to add one"
        )
    tracemalloc.stop()


async def send(client: aiohttp.ClientSession, count: int) -> Mapping[int, int]:
    """Send responses at once, each another text; return the number of answers by status."""
    found: dict[int, int] = {}

    async def one() -> None:
        text = f"It is 30 days. Thanks. {random.random()}"
        body = {"query": "Can I get a refund?", "response": text, "checklist": ITEMS}
        async with client.post("/v1/score", json=body) as reply:
            await reply.read()
            found[reply.status] = found.get(reply.status, 0) + 1

    await asyncio.gather(*(one() for _ in range(count)))
    return found


async def rounds_part(rounds: int) -> bool:
    """Print the live memory after each round of load; return whether nothing leaks."""
    port = free_port()
    judge = start_judge(port)
    with Grader(Judge("word-judge", f"http://127.0.0.1:{port}/v1"), most_answers=KEPT) as grader:
        runner = web.AppRunner(RewardServer(grader, timeout=TIMEOUT).application())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        base = f"http://127.0.0.1:{runner.addresses[0][1]}"
        tracemalloc.start()
        live, requests = [], []
        print(f"live memory of a server with --most-answers {KEPT}, after each round of load:")
        async with aiohttp.ClientSession(base) as client:
            for number in range(1, rounds + 1):
                seen: dict[int, int] = {}
                for _ in range(5):
                    for status, count in (await send(client, 32)).items():
                        seen[status] = seen.get(status, 0) + count
                judge.kill()
                judge.wait()
                for status, count in (await send(client, 64)).items():
                    seen[status] = seen.get(status, 0) + count
                judge = await asyncio.to_thread(start_judge, port)
                await asyncio.sleep(TIMEOUT)
                gc.collect()
                live.append(tracemalloc.get_traced_memory()[0])
                requests.append(sum(seen.values()))
                print(
                    f"  round {number}: {dict(sorted(seen.items()))}, "
                    f"{live[-1] / 1e6:.3f} MB, {len(gc.get_objects()):,} objects",
                    flush=True,
                )
        await runner.cleanup()
    judge.kill()
    judge.wait()
    half = len(live) // 2
    fit = stats.linregress(np.cumsum(requests)[half:], live[half:])
    margin = stats.t.ppf(0.975, len(live) - half - 2) * fit.stderr
    low, high = fit.slope - margin, fit.slope + margin
    print(
        f"change after round {half}: {fit.slope:+.1f} bytes per request "
        f"(95% interval {low:+.1f} to {high:+.1f})"
    )
    found = "no leak" if high < LEAK else "A LEAK" if low > LEAK else "undecided, run more rounds"
    print(f"verdict: {found}")
    return high < LEAK


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--bound", type=int, default=20_000, help="answers in the first part")
    parser.add_argument("--rounds", type=int, default=16)
    given = parser.parse_args()
    random.seed(0)
    answers_part(given.bound)
    sys.exit(not asyncio.run(rounds_part(given.rounds)))


if __name__ == "__main__":
    main()
