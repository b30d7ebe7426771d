"""What judge and optimizer were asked over all commands: a line for each piece of work."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from rocketeval.config import PriceConfig
from rocketeval.cost import usage_facts
from rocketeval.records import Usage
from rocketeval.stages.evolve.lines import append_line, read_lines

Payee = Literal["judge", "optimizer"]
COUNTS = ("requests", "prompt_tokens", "cached_tokens", "completion_tokens")
QUESTIONS = "questions"


class Spending:
    """The bill of a run's evolution."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def judge_used(self, why: str, usage: Usage, questions: int) -> None:
        """Write down what a judge used for so many questions: a request may hold several."""
        self._add({"who": "judge", "why": why, QUESTIONS: questions}, usage)

    def optimizer_used(self, why: str, usage: Usage) -> None:
        """Write down what the optimizer used for a piece of work."""
        self._add({"who": "optimizer", "why": why}, usage)

    def _add(self, row: Mapping[str, Any], usage: Usage) -> None:
        """Add a line; none for work that used nothing."""
        used = {name: getattr(usage, name) for name in COUNTS}
        if any(used.values()) or row.get(QUESTIONS):
            append_line(self._path, {**row, **used})

    def total(self, who: Payee) -> Usage:
        """Return what one of them used over all commands."""
        rows = (row for row in read_lines(self._path) if row["who"] == who)
        return sum((Usage(*(row[name] for name in COUNTS)) for row in rows), Usage())

    @property
    def questions(self) -> int:
        """What the judge answered, over all commands."""
        rows = (row for row in read_lines(self._path) if row["who"] == "judge")
        # A line without them is of a judge that got one question a request.
        return sum(row.get(QUESTIONS, row["requests"]) for row in rows)

    @property
    def calls(self) -> int:
        """Questions to the judge and requests to the optimizer, over all commands."""
        return self.questions + self.total("optimizer").requests

    def facts(
        self, judge: PriceConfig | None, optimizer: PriceConfig | None
    ) -> dict[str, Mapping[str, Any]]:
        """Return what both used, with the money."""
        return {
            "judge": {QUESTIONS: self.questions, **usage_facts(self.total("judge"), judge)},
            "optimizer": usage_facts(self.total("optimizer"), optimizer),
        }
