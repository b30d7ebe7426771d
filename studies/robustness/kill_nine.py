"""Kill a run with SIGKILL repeatedly, and check that no finished judgment is lost.

    python studies/robustness/kill_nine.py [--kills 20] [--config FILE] [--delay 0.3] [--seed 1]
    python studies/robustness/kill_nine.py --until best [--kills 20] [--delay 0.1]

A child process grades with the scripted engine and acknowledges each judgment once it is
recorded; the parent kills it at random moments. After every kill each acknowledged judgment must
be in the ledger exactly once. At the end the scores must be byte-identical to those of an
uninterrupted run. Without --config the study uses the packaged quickstart benchmark, or with
--until GOAL a made one of 5 candidates and 60 queries, one of which is better. Then every kill
comes after a new judgment, in mid-race, and the race must end with the same decision.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from importlib import resources
from pathlib import Path
from zlib import crc32

from rocketeval.api import run
from rocketeval.config import RunConfig, load_config, parse_config
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.observer import Observer
from rocketeval.records import Judgment
from rocketeval.store import ledger
from rocketeval.store.files import write_jsonl
from rocketeval.store.run import RunStore

CONCURRENCY = 2


class Acknowledge(Observer):
    """An observer that sends the key of each recorded judgment to the parent."""

    def judged(self, judgment: Judgment) -> None:
        os.write(1, judgment.key.hex().encode() + b"\n")


def favor_a(prefix: str, suffix: str) -> float:
    """Return a probability drawn from the prompt, higher for the candidate `a`."""
    share = crc32(f"{prefix}{suffix}".encode()) / 2**32
    return 0.1 + 0.7 * share + 0.12 * ("a on q" in prefix)


def judge_of(args: argparse.Namespace) -> ScriptedEngine | None:
    """Return the judge of a race; None if the config describes the judge."""
    return ScriptedEngine(favor_a, delay=args.delay) if args.until else None


def made_benchmark(folder: Path) -> Path:
    """Write a benchmark of 5 candidates and 60 queries; return its folder."""
    made = folder / "benchmark"
    if not made.exists():
        made.mkdir(parents=True)
        queries = [{"id": f"q{row}", "text": f"Question {row}?"} for row in range(60)]
        responses = [
            {"query_id": query["id"], "candidate": name, "text": f"{name} on {query['id']}"}
            for query in queries
            for name in "abcde"
        ]
        items = [
            {"query_id": query["id"], "items": ["Is it right?", "Is it short?"]}
            for query in queries
        ]
        for kind, rows in (("queries", queries), ("responses", responses), ("checklists", items)):
            write_jsonl(made / f"{kind}.jsonl", rows)
    return made


def configure(
    source: Path | None, folder: Path, name: str, delay: float, until: str | None = None
) -> RunConfig:
    """Return the run's config with the scripted engine as judge."""
    if until is not None:
        path = str(made_benchmark(folder.parent))
        raw = {"benchmark": {"path": path}, "judge": {"model": "scripted"}, "until": until}
        base = parse_config(raw)
    elif source is None:
        packaged = Path(str(resources.files("rocketeval"))) / "examples" / "quickstart"
        base = parse_config({"benchmark": {"path": str(packaged)}, "judge": {"model": "scripted"}})
    else:
        base = load_config(source)
    judge = base.judge.model_copy(
        update={
            "engine": "scripted",
            "model": "scripted",
            "concurrency": CONCURRENCY,
            "options": {"delay": delay},
        }
    )
    return base.model_copy(
        update={"name": name, "judge": judge, "output": folder, "cache": folder / ".cache"}
    )


def child(args: argparse.Namespace) -> None:
    """Run to the end or until killed; journals are rolled often, so that kills hit rolling too."""
    ledger.ROLL_ROWS = 7
    config = configure(args.config, args.child, "killed", args.delay, args.until)
    run(config, observer=Acknowledge(), judge=judge_of(args))


def keys_in(store: RunStore) -> Counter[str]:
    """Return every key in the ledger with its count."""
    found: Counter[str] = Counter()
    for table in store.judgments(["key"]):
        found.update(table["key"].to_pylist())
    return found


def kill_once(command: list[str], wait: float, *, at_start: bool) -> tuple[set[str], bool]:
    """Start the run and kill it; return the acknowledged keys, and whether the kill hit the run.

    The clock starts with the process (`at_start`) or with the first finished judgment.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    first = b"" if at_start else process.stdout.readline()
    try:
        rest, _ = process.communicate(timeout=wait)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
    output = first + rest
    whole = output[: output.rfind(b"\n") + 1]
    return set(whole.decode().split()), process.returncode == -signal.SIGKILL


def check(store: RunStore, acknowledged: set[str]) -> int:
    """Return the number of judgments in the ledger; exit if one is lost or doubled."""
    found = keys_in(store)
    lost = acknowledged - found.keys()
    doubled = [key for key, count in found.items() if count > 1]
    if lost or doubled:
        sys.exit(f"FAILED: {len(lost)} judgments lost, {len(doubled)} doubled")
    return len(found)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--config", type=Path)
    parser.add_argument("--delay", type=float, default=0.3, help="seconds per response")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--until", metavar="GOAL")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(args)
        return
    rng = random.Random(args.seed)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        config = configure(args.config, folder / "whole", "whole", args.delay, args.until)
        whole = run(config, judge=judge_of(args))
        total = whole.stages.grade.tasks - whole.stages.grade.not_needed
        grading = whole.stages.grade.seconds
        print(f"uninterrupted: {total} judgments in {grading:.1f} s")
        # The machine may have been busy and may be faster from here on.
        grading = min(grading, total * args.delay / CONCURRENCY)
        command = [sys.executable, __file__, "--child", str(folder / "killed")]
        command += ["--delay", str(args.delay)]
        command += ["--until", args.until] if args.until else []
        command += ["--config", str(args.config.resolve())] if args.config else []
        store = RunStore(folder / "killed" / "killed")
        acknowledged: set[str] = set()
        kills = 0
        while kills < args.kills:
            at_start = not args.until and rng.random() < 0.25
            wait = rng.uniform(0, 1.0) if at_start else rng.uniform(0, 1.6 * grading / args.kills)
            done, died = kill_once(command, wait, at_start=at_start)
            acknowledged |= done
            if not died:
                break
            kills += 1
            since = "start" if at_start else "first judgment"
            safe = check(store, acknowledged)
            print(f"kill {kills:>2}, {wait:4.2f} s after {since:<14}: {safe} judgments safe")
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        check(store, acknowledged)
        names = ["scores.parquet", "scores.jsonl", "ranking.json", "ranking.csv"]
        if args.until:
            names.append("race.json")
            print(" ".join(whole.ranking.stopped[:2]))
        same = all(
            (store.path / name).read_bytes() == (whole.path / name).read_bytes() for name in names
        )
        print(
            f"killed {kills} times; {check(store, acknowledged)} of {total} judgments, none twice"
        )
        print(f"scores and ranking byte-identical to the uninterrupted run: {same}")
        sys.exit(0 if same and kills == args.kills else 1)


if __name__ == "__main__":
    main()
