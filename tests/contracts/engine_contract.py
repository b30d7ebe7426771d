"""The suite that every engine passes: subclass it and provide a `case`."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from rocketeval.testing import ENGINE_CHECKS, EngineCase


class EngineContract:
    """Runs every published engine check on the fixture `case`."""

    @pytest.mark.parametrize("check", ENGINE_CHECKS, ids=lambda check: check.__name__)
    async def test_contract(
        self, case: EngineCase, check: Callable[[EngineCase], Awaitable[None]]
    ) -> None:
        """The engine keeps this rule of the contract."""
        await check(case)
