"""Damage every file of a run, and check that no command shows a traceback or another score.

    python studies/robustness/damage.py [--flips 3] [--share 1.0] [--seed 1]

A run of the quickstart with the scripted judge is copied; one file of the copy is damaged: bits
flipped, truncated, emptied, zeroed, extended or removed. Then `verify`, `run --only score`,
`compare`, `repair` and `run` follow, each in a process of its own. A command may fail with a
sentence. After the repair, the run must have the scores of the undamaged one.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from rocketeval.store.checksums import NAME
from support.forked import run_forked

CONFIG = """\
name: demo
benchmark: {path: demo/benchmark}
judge: {engine: scripted, model: scripted}
ranking: {bootstrap: 50}
cache: null
"""
KINDS = ("flip", "half", "empty", "zeros", "extra", "removed")


@dataclass
class Case:
    """One damaged file, and what the commands did."""

    file: str
    kind: str
    detected: bool = False
    traceback: str = ""
    silently_different: bool = False
    recovered: bool = False


def damage(path: Path, kind: str, dice: random.Random) -> bool:
    """Damage a file; return whether it differs from before."""
    before = path.read_bytes()
    content = bytearray(before)
    if kind == "flip" and content:
        content[dice.randrange(len(content))] ^= 1 << dice.randrange(8)
    elif kind == "half":
        del content[len(content) // 2 :]
    elif kind == "empty":
        content.clear()
    elif kind == "zeros" and content:
        start = dice.randrange(len(content))
        content[start : start + 64] = bytes(len(content[start : start + 64]))
    elif kind == "extra":
        content += b'{"key": "00'
    elif kind == "removed":
        path.unlink()
        return True
    path.write_bytes(content)
    return bytes(content) != before


def scores(run: Path) -> list[tuple[str, str, float]]:
    """Return the scores of a run."""
    rows = [json.loads(line) for line in (run / "scores.jsonl").read_text().splitlines()]
    return [(row["query_id"], row["candidate"], row["score"]) for row in rows]


def cases(
    folder: Path, flips: int, share: float, dice: random.Random
) -> Iterator[tuple[Path, str]]:
    """Yield the files of a run with the kinds of damage to try."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        if path.name == ".lock" or path.suffix == ".html":
            continue
        for kind in [*["flip"] * flips, *KINDS[1:]]:
            if dice.random() < share:
                yield path.relative_to(folder), kind


def try_case(pristine: Path, name: Path, kind: str, dice: random.Random, scratch: Path) -> Case:
    """Damage one file of a copy, and run the commands."""
    shutil.rmtree(scratch, ignore_errors=True)
    shutil.copytree(pristine, scratch, symlinks=True)
    case = Case(name.as_posix(), kind)
    run = scratch / "runs" / "demo"
    expected = scores(pristine / "runs" / "demo")
    if not damage(run / name, kind, dice):
        case.detected = case.recovered = True
        return case

    def command(*args: str) -> int:
        done = run_forked(scratch, args)
        if "Traceback" in done.stderr:
            case.traceback = case.traceback or f"{' '.join(args)}: {done.stderr[-600:]}"
        return done.returncode

    case.detected = command("verify", "runs/demo") == 5
    if command("run", "--only", "score", "-q") == 0 and (run / "scores.jsonl").exists():
        case.silently_different = scores(run) != expected
    command("compare", "careful", "brief")
    command("repair", "runs/demo")
    code = command("run", "-q")
    case.recovered = code in (0, 3) and scores(run) == expected
    return case


def why_not_detected(case: Case) -> str:
    """Return why `verify` cannot know this damage."""
    if case.kind == "extra" and case.file.endswith(NAME):
        return "a process that is killed while it adds a checksum leaves the same bytes"
    return "unexplained"


def campaign(flips: int, share: float, seed: int, show: Callable[[str], None]) -> list[Case]:
    """Try every case, and return what happened."""
    dice = random.Random(seed)
    found: list[Case] = []
    with tempfile.TemporaryDirectory() as folder:
        pristine = Path(folder) / "pristine"
        pristine.mkdir()
        done = run_forked(pristine, ["init", "demo"])
        assert done.returncode == 0, done.stderr
        (pristine / "rocketeval.yaml").write_text(CONFIG)
        done = run_forked(pristine, ["run", "-q"])
        assert done.returncode == 0, done.stderr
        for name, kind in cases(pristine / "runs" / "demo", flips, share, dice):
            case = try_case(pristine, name, kind, dice, Path(folder) / "copy")
            found.append(case)
            if case.traceback or case.silently_different or not case.recovered:
                show(f"{case}")
            elif not case.detected:
                show(f"not detected: {case.kind} of {case.file}: {why_not_detected(case)}")
    return found


def main() -> None:
    """Run the campaign and print its table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--flips", type=int, default=3)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    found = campaign(args.flips, args.share, args.seed, print)
    table = Counter((case.kind, case.detected, case.recovered) for case in found)
    print(f"{'kind':10}{'cases':>7}{'detected':>10}{'recovered':>11}")
    for kind in KINDS:
        own = [case for case in found if case.kind == kind]
        detected, recovered = (sum(getattr(c, n) for c in own) for n in ("detected", "recovered"))
        print(f"{kind:10}{len(own):7}{detected:10}{recovered:11}")
    traced = sum(bool(case.traceback) for case in found)
    different = sum(case.silently_different for case in found)
    lost = sum(not case.recovered for case in found)
    print(
        f"{len(found)} damaged files: {traced} tracebacks, {different} silently different scores, "
        f"{lost} not recovered, {sum(table.values()) - sum(c.detected for c in found)} not detected"
    )
    sys.exit(bool(traced or different or lost))


if __name__ == "__main__":
    main()
