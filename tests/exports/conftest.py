"""One finished run, shared by all export tests."""

from __future__ import annotations

import pytest

from rocketeval.pipeline import Run
from support.hostile_run import hostile_run


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run with hostile names and missing scores."""
    return hostile_run(tmp_path_factory.mktemp("exports"))
