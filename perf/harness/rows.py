"""The rows of a side-by-side table, measured in alternating rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from harness.measured import Measured, Method
from harness.table import progress


@dataclass
class Row:
    """A method with everything it measured."""

    key: str
    """Its name on the command line."""
    title: str
    """Its name in the table."""
    method: Method
    answers: int
    """How many answers one pass gives."""
    reset: Callable[[], None] = lambda: None
    """Empties the prefix cache of the engine behind it."""
    bare: bool = False
    """Whether it is what others are compared with."""
    exact: bool = True
    """Whether it asks for the labels themselves, so that none can be hidden."""
    passes: list[Measured] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median pass."""
        return median(one.seconds for one in self.passes)

    @property
    def per_second(self) -> float:
        """Answers per second of the median pass."""
        return self.answers / self.seconds

    @property
    def cpu_per_answer(self) -> float:
        """CPU seconds of the client per answer, of the median pass."""
        return median(one.cpu_seconds for one in self.passes) / self.answers

    @property
    def told(self) -> int:
        """Answers with a probability in the worst pass."""
        return min(sum(p is not None for p in one.p_yes) for one in self.passes)

    def furthest(self, other: Row) -> float:
        """The largest difference of a p_yes from `other`'s first pass, over all passes."""
        theirs = other.passes[0].p_yes
        gaps = (
            abs(ours - told)
            for one in self.passes
            for ours, told in zip(one.p_yes, theirs, strict=True)
            if ours is not None and told is not None
        )
        return max(gaps, default=0.0)


def measure(rows: Sequence[Row], rounds: int) -> None:
    """Let every method grade the workload once a round, each round beginning with another."""
    for number in range(rounds):
        turn = number % len(rows)
        for row in [*rows[turn:], *rows[:turn]]:
            row.reset()
            one = row.method.run()
            if len(one.p_yes) != row.answers:
                raise RuntimeError(f"{row.title} gave {len(one.p_yes)} of {row.answers} answers.")
            row.passes.append(one)
            progress(f"round {number + 1}: {row.title}: {one.seconds:.2f} s")


def faults(rows: Sequence[Row], tolerance: float) -> list[str]:
    """Return everything that makes the table worthless: answers missing, or not the same."""
    reference = next((row for row in rows if row.bare), None)
    found = []
    for row in rows:
        if row.exact and row.told < row.answers:
            found.append(f"{row.title} has a probability for {row.told} of {row.answers} answers")
        if not row.exact or reference is None:
            continue
        gap = row.furthest(reference)
        if gap > tolerance:
            found.append(f"{row.title} is up to {gap:.3f} from {reference.title} in p_yes")
    return found
