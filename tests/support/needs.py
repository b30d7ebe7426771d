"""Optional packages: without them, tests are skipped, or fail in CI."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest


def need(package: str, reason: str, *, in_ci: bool = True) -> None:
    """Skip for `reason` without `package`; fail if CI should have installed it."""
    if find_spec(package) is not None:
        return
    if in_ci and os.environ.get("CI"):
        pytest.fail(f"{reason} (in CI these tests must run)", pytrace=False)
    pytest.skip(reason)
