"""Files of an earlier version, as a user has them: a cache, a run and a benchmark."""

from __future__ import annotations

import shutil
from pathlib import Path

from reference.frozen import FROZEN

PLACES = {
    "benchmark": "benchmark",
    "cache": "runs/.cache",
    "run": "runs/old",
    "evaluator.npz": "evaluator.npz",
}
"""Path of each frozen file in a user's folder."""
OLDEST = Path(__file__).parent / "oldest"
"""Small configs and runs of the first day: `first` (commit ed0f7c9) has judgments that are still
valid, `earlier` (commit 00266fa) was judged with a prompt that has changed since."""
HOME = "/a/users/folder"
"""Placeholder in frozen files for the folder in which they were made."""
_TEXT = (".json", ".jsonl", ".yaml")
_LEFT_OUT = (".lock", "report.html")


def keep_old(home: Path) -> None:
    """Copy a folder's files into the frozen ones."""
    for name, place in PLACES.items():
        kept, source = FROZEN / name, home / place
        if source.is_file():
            shutil.copyfile(source, kept)
            continue
        shutil.rmtree(kept, ignore_errors=True)
        shutil.copytree(source, kept, ignore=shutil.ignore_patterns(*_LEFT_OUT))
        _rename(kept, str(home), HOME)


def restore_old(home: Path) -> None:
    """Copy the frozen files into a folder, as if they had been made there."""
    for name, place in PLACES.items():
        kept, target = FROZEN / name, home / place
        if kept.is_file():
            shutil.copyfile(kept, target)
            continue
        shutil.copytree(kept, target)
        _rename(target, HOME, str(home))


def restore_oldest(home: Path) -> None:
    """Copy the oldest files into a new folder, as if they had been made there."""
    shutil.copytree(OLDEST, home)
    _rename(home, HOME, str(home))
    (home / "cache").rename(home / "runs" / ".cache")


def _rename(folder: Path, before: str, after: str) -> None:
    for path in folder.rglob("*"):
        if path.is_file() and path.suffix in _TEXT:
            text = path.read_text(encoding="utf-8")
            if before in text:
                path.write_text(text.replace(before, after), encoding="utf-8")
