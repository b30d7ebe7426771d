"""How an author's lists came about: a row for each, and what was refused, counted by its kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from rocketeval.store.authored import Effort


@dataclass(frozen=True, slots=True)
class Trace:
    """How one list came about."""

    items: int | None
    """How many items or lines it has; None when there is no list."""
    effort: Effort | None
    """What it took; None when a journal of an earlier version did not keep it."""
    run: str | None
    """The id of the run that paid for it; None as above."""
    failure: str | None = None
    """Why there is no list."""

    def row(self) -> dict[str, Any]:
        """Return it for the run's own record; what is not known is null."""
        effort = self.effort
        return {
            "items": self.items,
            "attempts": None if effort is None else effort.attempts,
            "refused": None if effort is None else [asdict(why) for why in effort.refused],
            "usage": None if effort is None else asdict(effort.usage),
            "run": self.run,
            "failure": self.failure,
        }


def count_refusals(traces: Iterable[Trace]) -> dict[str, Any]:
    """Return how many lists were refused at first, and the mistakes, the most frequent first."""
    listed = list(traces)
    told = [trace.effort for trace in listed if trace.effort is not None]
    mistakes = Counter(refusal.mistake for effort in told for refusal in effort.refused)
    return {
        "lists": len(listed),
        "refused_at_first": sum(bool(effort.refused) for effort in told),
        "refusals": mistakes.total(),
        "mistakes": dict(sorted(mistakes.items(), key=lambda pair: (-pair[1], pair[0]))),
        "untold": len(listed) - len(told),
    }
