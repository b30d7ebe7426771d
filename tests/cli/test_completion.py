"""Shell completion: the script, and the verbs it offers."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest


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
    ],
)
def test_shell_completes_verbs(settings: dict[str, str], expected: str) -> None:
    """The documented command prints a script, and the script's request offers verbs."""
    code = "import sys; sys.argv[0] = 'rocketeval'; from rocketeval.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected in done.stdout
