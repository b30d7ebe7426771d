"""A real judge, started once for all tests of this folder.

ROCKETEVAL_TEST_JUDGE_URL points the tests at a running server (base URL ending in `/v1`). Otherwise
llama.cpp serves SmolLM2-135M. It judges at chance level: use it to test that the plumbing works,
never that an answer is right.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.needs import need

from .server import ServedJudge, fetched_weights, listed_judge, llamacpp_judge


@pytest.fixture(scope="session")
def judge_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServedJudge]:
    """Yield the base URL and name of a running judge."""
    running = os.environ.get("ROCKETEVAL_TEST_JUDGE_URL")
    if running:
        yield listed_judge(running.rstrip("/"))
        return

    gguf: Path = request.getfixturevalue("judge_gguf")
    log = tmp_path_factory.mktemp("judge") / "stderr.log"
    with llamacpp_judge(gguf, "smollm2-135m-instruct", log) as judge:
        yield judge


@pytest.fixture(scope="session")
def judge_gguf() -> Path:
    """Return the weights of a small judge for llama.cpp."""
    need("xllamacpp", "no real judge here: pip install xllamacpp==2026.10.11549")
    return fetched_weights("smollm2-135m")
