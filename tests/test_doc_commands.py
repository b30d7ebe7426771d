"""Every shell block of README and docs runs, or says why not.

A block runs line by line next to the finished quickstart of the recorded judge: in the folder of
`demo` if the page names it, otherwise in `demo` itself. A block that cannot run here has a comment
`<!-- not run: REASON -->` before it; the same comment at the top of a page is for all its blocks.
"""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.in_process import cli

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(
    r"(?:^ *<!-- not run: ([^\n]+) -->\n)?^ *```(?:sh|bash)\n(.*?)^ *```", re.M | re.S
)
WHOLE_PAGE = re.compile(r"\A# [^\n]+\n\n<!-- not run: ([^\n]+) -->\n")
NAMES = {"NEW": "careful", "OLD": "solid"}
"""What stands for the reader's own names."""


@dataclass(frozen=True)
class Shell:
    """One shell block."""

    page: str
    code: str
    reason: str
    """Why it is not run; empty if it is."""

    @property
    def commands(self) -> list[tuple[list[str], tuple[int, ...]]]:
        """The words of each line, and its exit codes: 0, and what its comment names."""
        found = []
        for line in self.code.splitlines():
            words = [NAMES.get(word, word) for word in shlex.split(line, comments=True)]
            codes = (0, *map(int, re.findall(r"exit code (\d+)", line)))
            if words:
                found.append((words, codes))
        return found


def shell_blocks() -> list[Shell]:
    """Return every shell block of README and docs."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        whole = WHOLE_PAGE.search(text)
        for own, code in BLOCK.findall(text):
            reason = own or (whole[1] if whole else "")
            found.append(Shell(str(page.relative_to(ROOT)), code, reason))
    return found


@pytest.fixture(scope="module")
def quickstart(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the quickstart of the recorded judge, finished."""
    folder = tmp_path_factory.mktemp("quickstart")
    cli(folder, "init", "demo", "--recorded")
    cli(folder, "run", "demo/rocketeval.yaml", "--quiet")
    return folder


RUN = [block for block in shell_blocks() if not block.reason]


@pytest.mark.parametrize("block", RUN, ids=lambda block: f"{block.page}:{block.code[:40].strip()}")
def test_commands_in_the_documents_run(block: Shell, quickstart: Path, tmp_path: Path) -> None:
    """Each line is a command of RocketEval that succeeds."""
    folder = tmp_path / "here"
    starts = any("init" in words for words, _ in block.commands)
    if starts:
        folder.mkdir()
    else:
        shutil.copytree(quickstart, folder)
    inside = starts or "demo/" in block.code
    for words, codes in block.commands:
        assert words[0] == "rocketeval", f"{block.page}: mark the block, or remove {words[0]}"
        cli(folder if inside else folder / "demo", *words[1:], code=codes)


def test_blocks_that_do_not_run_say_why() -> None:
    """A reason is a few words."""
    for block in shell_blocks():
        assert not block.reason or len(block.reason.split()) >= 3, f"{block.page}: {block.reason}"
