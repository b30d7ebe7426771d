"""Checks that every implementation of a seam must pass, yours included. They need no pytest."""

from __future__ import annotations

from rocketeval.benchmarks.base import check_benchmark
from rocketeval.engines.check import ENGINE_CHECKS, EngineCase, check_engine
from rocketeval.scoring.base import check_scorer

__all__ = ["ENGINE_CHECKS", "EngineCase", "check_benchmark", "check_engine", "check_scorer"]
