"""The rows of a side-by-side table, measured in alternating rounds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median

from harness.measured import Measured, Method
from harness.table import progress


@dataclass
class Row:
    """A method and its measured passes."""

    key: str
    """Its name on the command line."""
    title: str
    """Its name in the table."""
    method: Method
    answers: int
    """Number of answers per pass."""
    reset: Callable[[], None] = lambda: None
    """Empties the prefix cache of the engine behind it."""
    bare: bool = False
    """Whether others are compared with it."""
    exact: bool = True
    """Whether it requests the labels themselves, so that none can be missing."""
    passes: list[Measured] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """Return the seconds of the median pass."""
        return median(one.seconds for one in self.passes)

    @property
    def per_second(self) -> float:
        """Return the answers per second of the median pass."""
        return self.answers / self.seconds

    @property
    def cpu_per_answer(self) -> float:
        """Return the client's CPU seconds per answer in the median pass."""
        return median(one.cpu_seconds for one in self.passes) / self.answers

    @property
    def answered(self) -> int:
        """Return the number of answers with a probability in the worst pass."""
        return min(sum(p is not None for p in one.p_yes) for one in self.passes)

    def furthest(self, other: Row) -> float:
        """Return the largest difference of a p_yes from `other`'s first pass, over all passes."""
        theirs = other.passes[0].p_yes
        gaps = (
            abs(ours - other_p)
            for one in self.passes
            for ours, other_p in zip(one.p_yes, theirs, strict=True)
            if ours is not None and other_p is not None
        )
        return max(gaps, default=0.0)


def measure(rows: Sequence[Row], rounds: int) -> None:
    """Let every method grade the workload once per round; each round begins with another method."""
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
    """Return the faults that invalidate the table: missing or differing answers."""
    reference = next((row for row in rows if row.bare), None)
    found = []
    for row in rows:
        if row.exact and row.answered < row.answers:
            found.append(
                f"{row.title} has a probability for {row.answered} of {row.answers} answers"
            )
        if not row.exact or reference is None:
            continue
        gap = row.furthest(reference)
        if gap > tolerance:
            found.append(f"{row.title} is up to {gap:.3f} from {reference.title} in p_yes")
    return found


def speed_ratio(row: Row, bare: Row) -> str:
    """Return how fast a row is relative to another, from the sums of paired rounds."""
    return _ratio([one.seconds for one in bare.passes], [one.seconds for one in row.passes])


def cost_ratio(row: Row, bare: Row) -> str:
    """Return the CPU time of a row relative to another, from the sums of paired rounds."""
    return _ratio([one.cpu_seconds for one in row.passes], [one.cpu_seconds for one in bare.passes])


def _ratio(above: Sequence[float], below: Sequence[float]) -> str:
    """Return the ratio of two sums, with the range of the ratios of their rounds.

    Medians of two rows come from different rounds; their ratio compares two moments of a machine.
    """
    each = [one / other for one, other in zip(above, below, strict=True)]
    return f"{sum(above) / sum(below):.2f} ({min(each):.2f}-{max(each):.2f})"
