"""`rocketeval doctor` on a real model: it detects the server; quality is not asserted."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from rocketeval.doctor.quality import GOLD
from support.in_process import cli

from .server import ServedJudge

ASKED = GOLD[1:3]
"""Two of the nine known cases, because a small model on one core is slow."""


@pytest.fixture(scope="module")
def examined(judge_url: ServedJudge, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the JSON of one quick check; a judge at chance level gives exit code 4."""
    folder: Path = tmp_path_factory.mktemp("doctor")
    options = ["--judge", judge_url.name, "--base-url", judge_url.base_url, "--json", "--quick"]
    with patch("rocketeval.doctor.examine.GOLD", ASKED):
        done = cli(folder, "doctor", *options, code=(0, 4))
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def finding(result: dict[str, Any], name: str) -> dict[str, str]:
    """Return the finding of that name."""
    found: dict[str, str] = next(row for row in result["findings"] if row["name"] == name)
    return found


def test_server_and_logprobs_are_detected(examined: dict[str, Any]) -> None:
    """llama.cpp is recognized, its log-probabilities are raw, and some of them are yes and no."""
    if "ROCKETEVAL_TEST_JUDGE_URL" not in os.environ:
        assert finding(examined, "server")["message"].startswith("llamacpp")
    assert finding(examined, "logprobs")["message"].startswith("raw, 20 listed")
    assert finding(examined, "yes/no tokens")["level"] == "good"
    assert 0 < examined["figures"]["mass"] <= 1.001


def test_every_figure_is_measured(examined: dict[str, Any]) -> None:
    """All known items were asked once, and the cost is reported."""
    figures = examined["figures"]
    asked = sum(len(case.items) for case in ASKED)
    assert figures["items"] == len(examined["reference_items"]) == asked
    assert figures["answered"] > 0
    assert figures["latency_seconds"] > 0
    assert figures["repeat_alone"] is None
    assert 0 < examined["usage"]["requests"] <= 40
    assert examined["usage"]["prompt_tokens"] > 200


def test_the_judge_has_a_fingerprint(examined: dict[str, Any]) -> None:
    """The fingerprint is the one a run would store."""
    assert examined["judge"]["engine"] == "openai"
    assert len(bytes.fromhex(examined["judge"]["digest"])) == 16
