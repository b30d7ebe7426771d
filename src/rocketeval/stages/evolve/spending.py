"""What judge and optimizer were asked over all commands: a line for each piece of work."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from rocketeval.config import PriceConfig
from rocketeval.cost import usage_facts
from rocketeval.records import Usage
from rocketeval.stages.evolve.lines import append_line, read_lines

Payee = Literal["judge", "optimizer"]
COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")


class Spending:
    """The bill of a run's evolution."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, who: Payee, why: str, usage: Usage) -> None:
        """Write down what a piece of work used; nothing is written of one that used nothing."""
        used = {name: getattr(usage, name) for name in COUNTS}
        if any(used.values()):
            append_line(self._path, {"who": who, "why": why, **used})

    def total(self, who: Payee) -> Usage:
        """Return what one of them used over all commands."""
        rows = (row for row in read_lines(self._path) if row["who"] == who)
        return sum((Usage(*(row[name] for name in COUNTS)) for row in rows), Usage())

    @property
    def calls(self) -> int:
        """Requests to both, over all commands."""
        return self.total("judge").requests + self.total("optimizer").requests

    def facts(
        self, judge: PriceConfig | None, optimizer: PriceConfig | None
    ) -> dict[str, Mapping[str, Any]]:
        """Return what both used, with the money."""
        return {
            "judge": usage_facts(self.total("judge"), judge),
            "optimizer": usage_facts(self.total("optimizer"), optimizer),
        }


def usage_of(sheets: Iterable[Mapping[str, Any]]) -> Usage:
    """Return what the grading of some sheets used, from the facts of each."""
    used = (Usage(*(facts["usage"][name] for name in COUNTS)) for facts in sheets)
    return sum(used, Usage())
