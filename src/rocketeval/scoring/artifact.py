"""A fitted scorer as one file of plain data; reading it runs no code from the file.

The file is sealed (`npz`): `header` is JSON (schema, settings, judge, checklists, versions, time),
`fitted_on` holds the keys of the training judgments, `state.*` the fitted state, and `digest` a
hash of all of these. The hash detects damage. It is not a signature: anyone who can write the file
can change its scores.
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
"""Length of a judgment key."""


@dataclass(frozen=True, eq=False)
class Provenance:
    """The judge, judgments and checklists that a scorer was fitted on."""

    judge: JudgeFingerprint
    """The judge of the training answers; answers of other judges are not comparable."""
    fitted_on: NDArray[np.uint8]
    """Keys of the training judgments, one row of 16 bytes per key, sorted."""
    checklists: Mapping[str, str]
    """Hash (hex) of the checklist of each training query; the weights only fit this checklist."""
    created: str
    """Time of the fit, as text from the caller."""

    @classmethod
    def from_keys(
        cls,
        judge: JudgeFingerprint,
        keys: Iterable[str],
        checklists: Mapping[str, str],
        created: str,
    ) -> Self:
        """Return the provenance of a fit on the judgments with these keys (in hex)."""
        rows = b"".join(sorted({bytes.fromhex(key) for key in keys}))
        fitted_on = np.frombuffer(rows, np.uint8).reshape(-1, KEY_BYTES)
        return cls(judge, fitted_on, dict(checklists), created)

    def learned_from(self, keys: Sequence[str | None]) -> NDArray[np.bool_]:
        """Return, for each judgment key (hex; None if not judged), whether it was trained on.

        The same response text to the same query counts for any candidate.
        """
        seen = {row.tobytes().hex() for row in self.fitted_on}
        return np.array([key in seen for key in keys], dtype=bool)

    def check_judge(self, judge: JudgeFingerprint) -> None:
        """Raise ArtifactError unless the scorer was fitted on this judge's answers."""
        changes = self.judge.changes(judge).items()
        changed = [f"{name} {fitted!r} -> {now!r}" for name, (fitted, now) in changes]
        if changed:
            raise ArtifactError(
                f"The saved scorer was fitted on another judge's answers ({', '.join(changed)}).",
                hint="Answers of two judges are not comparable: fit a scorer on this judge's.",
            )

    def check_checklists(self, checklists: Mapping[str, str]) -> None:
        """Raise ArtifactError if the checklist of a training query has changed."""
        changed = [
            query_id
            for query_id, learned in self.checklists.items()
            if checklists.get(query_id, learned) != learned
        ]
        if changed:
            raise ArtifactError(
                f"The checklists of {len(changed)} queries have changed since the saved scorer was "
                f"fitted; the first is {changed[0]!r}.",
                hint="Its item weights no longer apply: fit the scorer again.",
            )


SCHEMA = Schema(
    "rocketeval.scorer",
    version=1,
    thing="scorer",
    needed=("fitted_on",),
    if_unreadable="Check `scorer.fitted`, or remove it to fit a scorer now.",
)

_STATE = "state."


@dataclass(frozen=True)
class LoadedScorer:
    """A scorer read from a file."""

    scorer: Scorer
    config: ScorerConfig
    """The settings it was fitted with."""
    provenance: Provenance


def save_scorer(
    scorer: Scorer, config: ScorerConfig, path: Path, *, provenance: Provenance
) -> None:
    """Write a fitted scorer to `path` atomically; the same fit gives the same bytes."""
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
    """Load the scorer saved at `path`; raise ArtifactError if it cannot be used."""
    try:
        return _loaded(*SCHEMA.unseal(path))
    except ConfigError as error:
        raise ArtifactError(f"{path} cannot be used: {error.message}", hint=error.hint) from None
    except FOREIGN as error:
        raise SCHEMA.foreign(path, error) from None


def _loaded(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> LoadedScorer:
    expected = {"header", "digest", "fitted_on", *(_STATE + name for name in header["arrays"])}
    if arrays.keys() != expected:
        raise ValueError(f"its arrays do not match its list: {sorted(arrays.keys() ^ expected)}")
    keys = arrays["fitted_on"]
    if keys.dtype != np.uint8 or keys.shape[1:] != (KEY_BYTES,):
        raise ValueError("its judgment keys cannot be read")
    config = parse_options(header["config"], ScorerConfig, "its config")
    if config.kind not in SCORERS.names():
        raise ArtifactError(
            f"The saved scorer has kind {config.kind!r}, which is not installed.",
            hint=f"Install the plugin that provides it. {nearest(config.kind, SCORERS.names())}",
        )
    kind = SCORERS.get(config.kind)
    if not issubclass(kind, Saveable):
        raise ValueError(f"scorers of kind {config.kind!r} cannot be read from a file")
    state = State(header["state"], {name: arrays[_STATE + name] for name in header["arrays"]})
    checklists = {str(query): str(digest) for query, digest in header["checklists"].items()}
    judge = JudgeFingerprint(**header["judge"])
    provenance = Provenance(judge, keys, checklists, header["created"])
    return LoadedScorer(kind.restore(config, state), config, provenance)
