"""Stages in progress, and whether a stage would read exactly what it read when it made its files.

`.made_from.json` in a run has a hash per stage after grading: of the stage's own files, and of
everything it may read. That is every file of the run that earlier stages made, the config and the
files it names, the facts of earlier stages, this installation of RocketEval, and the versions of
the libraries that compute. A stage may read less; then it is done again without need. Time and
usage of the last command are no inputs, so the report keeps those of the command that made it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from rocketeval._version import __version__
from rocketeval.config import RunConfig, dump_config, load_config
from rocketeval.errors import StoreError
from rocketeval.hashing import content_hash
from rocketeval.observer import Observer
from rocketeval.store.checksums import hash_file
from rocketeval.store.codec import encode
from rocketeval.store.files import read_json, write_bytes, write_json
from rocketeval.store.manifest import StageFacts
from rocketeval.store.run import COMPARISONS, MADE, RunStore

FactsT = TypeVar("FactsT", bound=StageFacts)
NAME = ".made_from.json"
STAGES = ("score", "rank", "audit", "explain", "report")
NO_INPUT = ("run.yaml", "manifest.json")
"""Files of a run that change with every command; their contents are inputs one by one."""
LAST_CALL = frozenset(
    {
        "bill",
        "composition",
        "finished",
        "finished_earlier",
        "from_cache",
        "judged",
        "overhead",
        "precision_unknown",
        "retries",
        "reused",
        "seconds",
        "usage",
    }
)
"""Facts about the last command, not about the files that a stage reads."""
OF_RUN = frozenset({"overhead_of_run", "unjudged_of_run", "usage_of_run"})
"""Costs of all commands, which only the report reads."""
LIBRARIES = ("numpy", "scipy", "scikit-learn", "pyarrow", "orjson")


@dataclass
class StageInProgress(Generic[FactsT]):
    """A stage that sets its facts before it ends."""

    facts: FactsT


class MadeFrom:
    """What the files of a run's stages were made from."""

    def __init__(self, store: RunStore, config: RunConfig) -> None:
        self._store = store
        self._config = config

    def inputs(self, stage: str) -> str:
        """Return a hash of everything that a stage after grading may read; empty for others."""
        if stage not in STAGES:
            return ""
        manifest = self._store.manifest()
        earlier = ["load", "checklist", "grade", *STAGES[: STAGES.index(stage)]]
        facts = {name: encode(getattr(manifest.stages, name)) for name in earlier}
        ignored = LAST_CALL if stage == "report" else LAST_CALL | OF_RUN
        return content_hash(
            installation(),
            self._config.model_dump(mode="json"),
            [(str(path), hash_file(path)) for path in _named_files(self._config)],
            [manifest.created, manifest.judge_digest],
            {
                name: {k: v for k, v in own.items() if k not in ignored}
                for name, own in facts.items()
            },
            self._files(stage),
        ).hex()

    def is_current(self, stage: str) -> bool:
        """Return whether a stage has its files, and would make them from the same inputs."""
        from rocketeval.scoring.base import SCORERS

        if stage == "score" and SCORERS.has_plugin(self._config.scorer.kind):
            # Its code may have changed.
            return False
        known = self._read().get(stage)
        made = (self._store.path / MADE[stage][0]).exists()
        return made and known is not None and known == self._whole(stage, self.inputs(stage))

    @contextmanager
    def stage(
        self, name: str, facts: FactsT, observer: Observer
    ) -> Iterator[StageInProgress[FactsT]]:
        """Time a stage, and record its facts and what it was made from."""
        started = time.monotonic()
        from rocketeval.scoring.stage import refuse_other_scorer, scorer_hash

        observer.stage_entered(name)
        done = StageInProgress(facts)
        with self._store.locked():
            if name in STAGES[1:]:
                refuse_other_scorer(self._store, self._config)
            inputs = self.inputs(name)
            yield done
            known: dict[str, Any] = {"seconds": round(time.monotonic() - started, 3)}
            if name == "score":
                self._freeze_scorer()
                known["made_with"] = scorer_hash(self._config)
            done.facts = replace(done.facts, **known)
            self._store.record_stage(name, done.facts)
            self._keep(name, inputs)
        observer.stage_ended(name, done.facts)

    def _keep(self, stage: str, inputs: str) -> None:
        """Record that a stage made its files from these `inputs`."""
        if inputs:
            found = {**self._read(), stage: self._whole(stage, inputs)}
            write_json(self._store.path / NAME, found)

    def _freeze_scorer(self) -> None:
        """Write the scorer, and the margins that follow its scale, into the run's config."""
        path = self._store.path / "run.yaml"
        if not path.exists():
            return
        frozen = load_config(path)
        own = {"scorer": self._config.scorer, "ranking": self._config.ranking}
        if any(getattr(frozen, name) != section for name, section in own.items()):
            write_bytes(path, dump_config(frozen.model_copy(update=own)).encode())

    def _read(self) -> dict[str, str]:
        with suppress(StoreError, FileNotFoundError):
            return dict(read_json(self._store.path / NAME))
        return {}

    def _whole(self, stage: str, inputs: str) -> str:
        names = [name for name in MADE[stage] if name not in COMPARISONS]
        paths = [self._store.path / name for name in names]
        return content_hash(
            inputs, [hash_file(path) if path.exists() else "" for path in paths]
        ).hex()

    def _files(self, stage: str) -> list[tuple[str, str]]:
        """Return name and hash of every file of the run, without those of this and later stages."""
        stages = list(MADE)
        later = {name for each in stages[stages.index(stage) :] for name in MADE[each]}
        found = []
        for path in sorted(self._store.path.rglob("*")):
            name = path.relative_to(self._store.path)
            hidden = any(part.startswith(".") for part in name.parts)
            if hidden or name.parts[0] in {*later, *NO_INPUT, "engines"} or not path.is_file():
                continue
            found.append((name.as_posix(), hash_file(path)))
        return found


@cache
def installation() -> str:
    """Return a hash of the versions that compute, and of when RocketEval's own files changed."""
    versions = []
    for name in LIBRARIES:
        with suppress(PackageNotFoundError):
            versions.append((name, version(name)))
    package = Path(__file__).parent
    own = [(str(path), path.stat().st_mtime_ns) for path in sorted(package.rglob("*.py"))]
    return content_hash(__version__, platform.python_version(), versions, own).hex()


def _named_files(section: BaseModel) -> Iterator[Path]:
    """Yield the files that a config names; the benchmark's are in the run."""
    for name, value in section:
        if isinstance(value, BaseModel) and name != "benchmark":
            yield from _named_files(value)
        elif isinstance(value, Path) and value.is_file():
            yield value
