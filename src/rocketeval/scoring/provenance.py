"""What a saved scorer was fitted to, so that it is not used where its scores mean nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import ArtifactError
from rocketeval.records import JudgeFingerprint

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
        fitted = asdict(self.judge)
        changed = [
            f"{n} {fitted[n]!r} -> {v!r}" for n, v in asdict(judge).items() if fitted[n] != v
        ]
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
