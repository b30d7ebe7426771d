"""A fitted scorer as one file of plain data: reading it runs no code that the file brings along.

The file is sealed (`sealed`): `header` is JSON (schema, settings, judge, checklists, versions,
time), `fitted_on` the keys of the judgments learned from, `state.*` what the scorer learned,
`digest` a hash of all of these. The hash finds damage. It is no signature: whoever can write the
file can change its scores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig, parse_options
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.records import JudgeFingerprint
from rocketeval.registry import nearest
from rocketeval.scoring.base import SCORERS, Saveable, Scorer, State
from rocketeval.scoring.npz import FOREIGN, Schema

__all__ = ["LoadedScorer", "Provenance", "load_scorer", "save_scorer"]

KEY_BYTES = 16
"""Length of a judgment's key."""


@dataclass(frozen=True, eq=False)
class Provenance:
    """Whose answers a scorer learned from, and which."""

    judge: JudgeFingerprint
    """The judge whose answers it learned from; another one's are not comparable."""
    fitted_on: NDArray[np.uint8]
    """Keys of the judgments whose gold was learned from, one a row of 16 bytes, sorted."""
    checklists: Mapping[str, str]
    """Hash (hex) of the checklist of every query learned from; its weights mean no other one."""
    created: str
    """When it was fitted, in the caller's words."""

    @classmethod
    def from_keys(
        cls,
        judge: JudgeFingerprint,
        keys: Iterable[str],
        checklists: Mapping[str, str],
        created: str,
    ) -> Self:
        """Return the provenance of a fit to the judgments with these keys (in hex)."""
        rows = b"".join(sorted({bytes.fromhex(key) for key in keys}))
        fitted_on = np.frombuffer(rows, np.uint8).reshape(-1, KEY_BYTES)
        return cls(judge, fitted_on, dict(checklists), created)

    def learned_from(self, keys: Sequence[str | None]) -> NDArray[np.bool_]:
        """Return for each judgment (its key in hex; None is not judged) whether its gold was used.

        The same text to the same query counts, whichever candidate wrote it.
        """
        seen = {row.tobytes().hex() for row in self.fitted_on}
        return np.array([key in seen for key in keys], dtype=bool)

    def check_judge(self, judge: JudgeFingerprint) -> None:
        """Raise ArtifactError unless the scorer learned from this judge's answers."""
        changes = self.judge.changes(judge).items()
        changed = [f"{name} {fitted!r} -> {now!r}" for name, (fitted, now) in changes]
        if changed:
            raise ArtifactError(
                f"The saved scorer was fitted to another judge's answers ({', '.join(changed)}).",
                hint="Two judges' answers do not compare: fit a scorer to this judge's.",
            )

    def check_checklists(self, checklists: Mapping[str, str]) -> None:
        """Raise ArtifactError if a query learned from has another checklist now."""
        changed = [
            query_id
            for query_id, learned in self.checklists.items()
            if checklists.get(query_id, learned) != learned
        ]
        if changed:
            raise ArtifactError(
                f"{len(changed)} queries have another checklist than the saved scorer was fitted "
                f"to, the first of them {changed[0]!r}.",
                hint="What it learned about the items does not carry over: fit a scorer again.",
            )


SCHEMA = Schema(
    "rocketeval.scorer",
    version=1,
    thing="scorer",
    needed=("fitted_on",),
    if_unreadable="Check `scorer.fitted`, or leave it out to fit a scorer now.",
)

_STATE = "state."


@dataclass(frozen=True)
class LoadedScorer:
    """A scorer that was read from a file."""

    scorer: Scorer
    config: ScorerConfig
    """The settings it was fitted with."""
    provenance: Provenance


def save_scorer(
    scorer: Scorer, config: ScorerConfig, path: Path, *, provenance: Provenance
) -> None:
    """Write a fitted scorer to `path`, whole or not at all; the same fit gives the same bytes."""
    if not isinstance(scorer, Saveable) or not isinstance(scorer, SCORERS.get(config.kind)):
        raise ArtifactError(
            f"A {type(scorer).__name__} cannot be saved as a scorer of kind {config.kind!r}.",
            hint="Save the scorer with its own config; its class needs `state` and `restore`.",
        )
    state = scorer.state()
    header = {
        "config": config.model_dump(mode="json", exclude={"fitted"}),
        "judge": asdict(provenance.judge),
        "checklists": dict(provenance.checklists),
        "created": provenance.created,
        "arrays": sorted(state.arrays),
        "state": dict(state.header),
    }
    arrays = {_STATE + name: array for name, array in state.arrays.items()}
    arrays["fitted_on"] = provenance.fitted_on
    SCHEMA.save(path, header, arrays, f"{config.kind} ")


def load_scorer(path: Path) -> LoadedScorer:
    """Return the scorer saved at `path`; ArtifactError says why it cannot be used."""
    try:
        return _loaded(*SCHEMA.unseal(path))
    except ConfigError as error:
        raise ArtifactError(f"{path} cannot be used: {error.message}", hint=error.hint) from None
    except FOREIGN as error:
        raise SCHEMA.foreign(path, error) from None


def _loaded(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> LoadedScorer:
    expected = {"header", "digest", "fitted_on", *(_STATE + name for name in header["arrays"])}
    if arrays.keys() != expected:
        raise ValueError(f"its arrays are not those it lists: {sorted(arrays.keys() ^ expected)}")
    keys = arrays["fitted_on"]
    if keys.dtype != np.uint8 or keys.shape[1:] != (KEY_BYTES,):
        raise ValueError("the keys of what it was fitted to cannot be read")
    config = parse_options(header["config"], ScorerConfig, "its config")
    if config.kind not in SCORERS.names():
        raise ArtifactError(
            f"The saved scorer is of kind {config.kind!r}, which is not installed.",
            hint=f"Install the plugin that brings it. {nearest(config.kind, SCORERS.names())}",
        )
    kind = SCORERS.get(config.kind)
    if not issubclass(kind, Saveable):
        raise ValueError(f"scorers of kind {config.kind!r} cannot be read from a file")
    state = State(header["state"], {name: arrays[_STATE + name] for name in header["arrays"]})
    checklists = {str(query): str(digest) for query, digest in header["checklists"].items()}
    judge = JudgeFingerprint(**header["judge"])
    provenance = Provenance(judge, keys, checklists, header["created"])
    return LoadedScorer(kind.restore(config, state), config, provenance)
