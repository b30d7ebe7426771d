"""Shell completion: the script, and the verbs it offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CLI_PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"_ROCKETEVAL_COMPLETE": "bash_source"}, "_rocketeval_completion"),
        (
            {
                "_ROCKETEVAL_COMPLETE": "bash_complete",
                "COMP_WORDS": "rocketeval ga",
                "COMP_CWORD": "1",
            },
            "plain,gate",
        ),
        (
            {
                "_ROCKETEVAL_COMPLETE": "bash_complete",
                "COMP_WORDS": "rocketeval serve --most-a",
                "COMP_CWORD": "2",
            },
            "plain,--most-answers",
        ),
        *(
            (
                {
                    "_ROCKETEVAL_COMPLETE": "bash_complete",
                    "COMP_WORDS": f"rocketeval {verb} ",
                    "COMP_CWORD": "2",
                },
                "",
            )
            for verb in ("nosuch", "grade")
        ),
    ],
)
def test_shell_completes_verbs(settings: dict[str, str], expected: str) -> None:
    """The documented command prints a script; its requests offer verbs and options.

    After a wrong verb no message disturbs the command line.
    """
    code = "import sys; sys.argv[0] = 'rocketeval'; from rocketeval.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_documented(shell: str) -> None:
    """The page of commands says how to switch completion on in each shell."""
    assert f"_ROCKETEVAL_COMPLETE={shell}_source rocketeval" in CLI_PAGE.read_text()
