"""Every mistake gets a message: what happened, to what, and what to do next; never a traceback.

`python tests/cli/test_mistakes.py` writes docs/mistakes.md: each mistake, and what is printed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

if __name__ == "__main__":
    sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import pytest

from support.in_process import cli
from support.mistakes import SECRET, Mistake, Place, placed, told
from support.mistakes_in_files import CHECKLISTS, CONFIG, GOLD, QUERIES
from support.mistakes_in_use import DISKS, RUNS, SERVERS, TAKEN, VERBS

PAGE = Path(__file__).parents[2] / "docs" / "mistakes.md"
GROUPS = {
    "In the config": CONFIG,
    "In queries and responses": QUERIES,
    "In labels and votes": GOLD,
    "In checklists": CHECKLISTS,
    "With servers": SERVERS,
    "With disks and folders": DISKS,
    "With runs": RUNS,
    "On the command line": VERBS,
}
TIME = re.compile(r"^\d\d:\d\d:\d\d ")
PROGRESS = re.compile(r"(load|checklist|grade|score|rank|audit|explain|report): (done|\d)")
HEAD = """\
# Mistakes, and what is said to them

Every mistake below is made for real by a test, through the command line. The message says what
happened, to which file, line, query or candidate, and what to do next. Exit codes: 0 done (what is
odd is counted and named), 1 or 2 a mistake in a name, an option or a file, 3 done but something is
missing, 4 the judge or author cannot be used, 5 the run's folder cannot be used.

Responses without text are judged as they are, like any other. They are counted and named while the
run loads, and counted at its end. Queries without text are treated the same way. Labels outside of
`scorer.scale` are used as they are by correlations and estimates, and refused by scorers that learn
from labels. Labels and votes on responses that do not exist are counted, named and not used.

<!-- Written by tests/cli/test_mistakes.py; do not edit. -->
"""


def cases() -> Iterator[object]:
    """Yield every mistake as a parameter."""
    for group in GROUPS.values():
        for mistake in group:
            yield pytest.param(mistake, id=mistake.title.replace(" ", "_"))


@pytest.fixture
def place() -> Iterator[Place]:
    """A place that others may look into, as read-only folders need it."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        with placed(Path(folder)) as found:
            yield found


@pytest.mark.parametrize("mistake", list(cases()))
def test_a_mistake_gets_a_message(mistake: Mistake, place: Place) -> None:
    """Exit code, names and the next step are told; nothing is paid for and no key is shown."""
    with place.undo:
        # Undone before pytest writes on: a limit on the size of files holds for its output too.
        printed = told(place, mistake)
    assert "Traceback" not in printed
    assert SECRET not in printed
    assert [words for words in mistake.says if words not in printed] == [], printed
    assert [words for words in mistake.never if words in printed] == [], printed
    if mistake.asked is not None:
        assert len(place.server.chats) <= mistake.asked


def test_a_moved_manifest_costs_no_judgment(place: Place) -> None:
    """What the message about a damaged manifest advises is true: judgments are reused."""
    place.finish()
    (place.run / "manifest.json").unlink()
    assert "nothing was asked" in cli(place.folder, "run").stdout


def test_a_damaged_part_can_be_deleted(place: Place) -> None:
    """What the message about a damaged ledger advises is true: what it held is judged again."""
    place.finish()
    (part,) = place.run.glob("ledger/part-*.parquet")
    part.unlink()
    assert "6 of 6 judgments were there" in cli(place.folder, "run").stdout


def test_the_page_shows_every_mistake() -> None:
    """docs/mistakes.md was written after the last mistake was added."""
    shown = PAGE.read_text(encoding="utf-8")
    titles = [mistake.title for group in GROUPS.values() for mistake in group]
    assert [title for title in titles if f"**{title}**" not in shown] == []


def shown_message(printed: str) -> list[str]:
    """Return the lines that are about the mistake, without times, progress and the ranking."""
    lines = [TIME.sub("", line) for line in printed.splitlines()]
    lines = [line.replace(str(TAKEN), "8700") for line in lines if not PROGRESS.match(line)]
    if "Trust" not in printed:
        return lines
    start = next(n for n, line in enumerate(lines) if line.startswith("Missing"))
    return [line for line in lines[start:] if not line.startswith("Report")]


def page() -> str:
    """Return the page, every message as it is printed now."""
    parts = [HEAD]
    for title, group in GROUPS.items():
        parts.append(f"\n## {title}\n")
        for mistake in group:
            with TemporaryDirectory() as folder:
                Path(folder).chmod(0o755)
                with placed(Path(folder)) as found:
                    printed = told(found, mistake)
            message = "\n".join(shown_message(printed))
            command = " ".join(["rocketeval", *mistake.command]).replace(str(TAKEN), "8700")
            parts.append(f"**{mistake.title}** (`{command}`, exit code {mistake.code})\n")
            parts.append(f"```\n{message}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
