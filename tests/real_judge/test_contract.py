"""The engine contract for the HTTP engine with a real judge."""

from __future__ import annotations

from functools import partial

import pytest

from contracts.engine_contract import EngineContract
from rocketeval.config import EngineConfig
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.testing import EngineCase

from .server import ServedJudge

TOO_LONG = "many words " * 40_000
BATCHING = 0.05
"""Low-precision servers answer slightly differently on cold and on cached prefixes."""


class TestRealJudge(EngineContract):
    """A small model behind a real server."""

    @pytest.fixture
    def case(self, judge_url: ServedJudge) -> EngineCase:
        # One after the other, because batching would change the last digits.
        config = EngineConfig(
            model=judge_url.name, base_url=judge_url.base_url, concurrency=1, min_mass=0.0
        )
        return EngineCase(partial(OpenAIEngine, config), TOO_LONG, BATCHING)
