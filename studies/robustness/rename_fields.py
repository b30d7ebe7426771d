"""Rename a field of a finding everywhere, as an editor would, and check that something fails.

    python studies/robustness/rename_fields.py [--only Class.field ...]

The script renames ten fields that the report, the command line or an export shows, one after the
other, in a copy of the source and the tests: in the declaration, and in every attribute or keyword
of that name. Strings stay unchanged. A use of the old name (a key in a file, a column, a name on
the page) is then out of step, and a test or mypy must fail. The tests run first.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from pathlib import Path

ROOT = Path(__file__).parents[2]
FIELDS = (
    ("audit/audit.py", "Audit", "vote_differences"),
    ("audit/audit.py", "Audit", "label_differences"),
    ("audit/bias.py", "LengthBias", "lost_to_longer"),
    ("audit/bias.py", "LengthBias", "scores_with_gold"),
    ("ranking/rank.py", "RankedCandidate", "mean_score"),
    ("ranking/rank.py", "Ranking", "unranked"),
    ("explain/candidate.py", "ItemGap", "neighbours_p_yes"),
    ("judges/reliability.py", "JudgeReliability", "orders"),
    ("compare/pair.py", "Comparison", "detectable"),
    ("store/manifest.py", "ScoreFacts", "missing_answers"),
)
TESTS = ("tests/reference", "tests/report", "tests/exports")


def main() -> None:
    """Print one row per field; exit with 1 if a rename goes unnoticed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=[], metavar="CLASS.FIELD")
    given = parser.parse_args()
    unnoticed = 0
    chosen = [each for each in FIELDS if not given.only or f"{each[1]}.{each[2]}" in given.only]
    with tempfile.TemporaryDirectory() as cache:
        for file, owner, field in chosen:
            with tempfile.TemporaryDirectory() as scratch:
                copy = copied(Path(scratch))
                declared, renamed = rename(copy / "src", file, owner, field)
                noticed = noticed_by(copy, cache) if declared else "NOT DECLARED THERE"
            unnoticed += noticed is None or not declared
            result = noticed or "NOTHING"
            print(f"{owner + '.' + field:<36}{renamed:>4} places   noticed by {result}", flush=True)
    sys.exit(bool(unnoticed))


def copied(folder: Path) -> Path:
    """Copy the files that mypy and the tests need."""
    for name in ("src", "tests", "studies", "perf", "docs", "web/src"):
        unwanted = shutil.ignore_patterns("__pycache__", "node_modules")
        shutil.copytree(ROOT / name, folder / name, ignore=unwanted)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy(ROOT / name, folder / name)
    return folder


def rename(source: Path, file: str, owner: str, field: str) -> tuple[bool, int]:
    """Rename the field; return whether it is declared there, and the number of places renamed."""
    text = (source / "rocketeval" / file).read_text()
    head = re.compile(rf"^class {owner}\b", re.MULTILINE)
    body = head.split(text, maxsplit=1)[-1].partition("\nclass ")[0]
    declared = f"\n    {field}: " in body
    places = 0
    for path in sorted([*source.rglob("*.py"), *(source.parent / "tests").rglob("*.py")]):
        old = path.read_text()
        new, count = renamed_text(old, field, f"{field}_renamed")
        if path == source / "rocketeval" / file:
            start = next(head.finditer(new)).start()
            line = f"\n    {field}: "
            new = new[:start] + new[start:].replace(line, f"\n    {field}_renamed: ", 1)
            count += 1
        if new != old:
            path.write_text(new)
            places += count
    return declared, places


def renamed_text(text: str, old: str, new: str) -> tuple[str, int]:
    """Rename attributes and keywords of that name, not strings, comments or variables."""
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    lines = text.splitlines(keepends=True)
    found = []
    depth = 0
    for place, token in enumerate(tokens):
        if token.string in "([{" and token.type == tokenize.OP:
            depth += 1
        elif token.string in ")]}" and token.type == tokenize.OP:
            depth -= 1
        if token.type != tokenize.NAME or token.string != old:
            continue
        before, after = tokens[place - 1], tokens[place + 1]
        keyword = depth > 0 and after.string == "=" and before.string in "(,\n"
        if before.string == "." or keyword:
            found.append(token.start)
    for row, column in reversed(found):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + new + line[column + len(old) :]
    return "".join(lines), len(found)


def noticed_by(folder: Path, cache: str) -> str | None:
    """Return the name of the check that fails in the copy; None if none does."""
    environment = {**os.environ, "PYTHONPATH": str(folder / "src")}
    tests = [sys.executable, "-m", "pytest", "-q", "-x", "--no-header", *TESTS]
    done = subprocess.run(tests, cwd=folder, env=environment, capture_output=True, text=True)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode:
        return failed[0].partition(" - ")[0] if failed else "pytest, before its first test"
    mypy = [sys.executable, "-m", "mypy", "--no-error-summary", "--cache-dir", cache]
    done = subprocess.run(mypy, cwd=folder, env=environment, capture_output=True, text=True)
    return f"mypy ({len(done.stdout.splitlines())} errors)" if done.returncode else None


if __name__ == "__main__":
    main()
