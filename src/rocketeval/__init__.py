"""RocketEval: ranks LLM outputs with checklists and a small judge model.

    import rocketeval

    outcome = rocketeval.run("rocketeval.yaml")
    for row in outcome.ranking.rows:
        print(row.rank, row.candidate, row.rating)

Names are imported on first use, which keeps `import rocketeval` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rocketeval._version import __version__

if TYPE_CHECKING:
    from rocketeval.api import arun, run
    from rocketeval.config import RunConfig, load_config, parse_config
    from rocketeval.engines.scripted import ScriptedEngine
    from rocketeval.errors import RocketEvalError
    from rocketeval.observer import Observer
    from rocketeval.pipeline import Outcome, Run
    from rocketeval.records import (
        Answer,
        Checklist,
        Judgment,
        Label,
        Query,
        Rating,
        Response,
        Turn,
        Vote,
    )

_HOME = {
    "Answer": "records",
    "Checklist": "records",
    "Judgment": "records",
    "Label": "records",
    "Observer": "observer",
    "Outcome": "pipeline",
    "Query": "records",
    "Rating": "records",
    "Response": "records",
    "RocketEvalError": "errors",
    "Run": "pipeline",
    "RunConfig": "config",
    "ScriptedEngine": "engines.scripted",
    "Turn": "records",
    "Vote": "records",
    "arun": "api",
    "load_config": "config",
    "parse_config": "config",
    "run": "api",
}

__all__ = [
    "Answer",
    "Checklist",
    "Judgment",
    "Label",
    "Observer",
    "Outcome",
    "Query",
    "Rating",
    "Response",
    "RocketEvalError",
    "Run",
    "RunConfig",
    "ScriptedEngine",
    "Turn",
    "Vote",
    "__version__",
    "arun",
    "load_config",
    "parse_config",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rocketeval' has no attribute {name!r}")
    value = getattr(import_module(f"rocketeval.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
