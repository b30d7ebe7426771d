"""A real judge, started once for all the tests of this folder.

ROCKETEVAL_TEST_JUDGE_URL points the tests at a server that already runs (base address ending in
`/v1`). Otherwise SmolLM2-135M is served with llama.cpp. It judges at chance level: test with it
that the plumbing works, never that an answer is right.
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
    """Base address and name of a judge that answers."""
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
    """The weights of a small judge, where llama.cpp can load them."""
    need("xllamacpp", "no real judge here: pip install xllamacpp==2026.10.11549")
    return fetched_weights("smollm2-135m")
