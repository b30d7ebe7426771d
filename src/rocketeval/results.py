"""The result of `rocketeval.evaluate`: records, tables, and their display in a notebook."""

from __future__ import annotations

import base64
import shutil
import weakref
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from html import escape
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from rocketeval.errors import ConfigError
from rocketeval.text import printable

if TYPE_CHECKING:
    import pyarrow as pa

    from rocketeval.audit.audit import Audit
    from rocketeval.benchmarks.opened import DataMapping
    from rocketeval.compare.pair import Comparison
    from rocketeval.pipeline import Outcome, Run

__all__ = ["Evaluation", "ItemAnswer", "RankedRow", "ResultTable", "ScoreRow"]

MOST_SHOWN = 20
"""Rows of a table that a notebook shows."""
HEIGHT = 720
"""Height of the report in a notebook, in pixels."""
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class RankedRow:
    """One candidate of the ranking; unknown bounds are None."""

    rank: int
    rank_low: int
    rank_high: int
    candidate: str
    rating: float | None
    rating_low: float | None
    rating_high: float | None
    mean_score: float | None
    mean_score_low: float | None
    mean_score_high: float | None
    queries: int
    missing: int
    group: int
    """Equal for candidates tied with the first of their group."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """The score of one response."""

    query_id: str
    category: str | None
    candidate: str
    judge: str
    score: float | None
    basis: str | None
    items: int
    answered: int
    """Items that have an answer."""
    judgment: str | None


@dataclass(frozen=True, slots=True)
class ItemAnswer:
    """The judge's answer to one item about one response."""

    query_id: str
    category: str | None
    candidate: str
    judge: str
    item: int
    """Position in the checklist, from 1."""
    item_text: str
    group: str | None
    p_yes: float | None
    p_low: float | None
    p_high: float | None
    mass: float | None
    logp_yes: float | None
    logp_no: float | None
    status: str
    text: str | None
    judgment: str | None


class ResultTable(Sequence[R], Generic[R]):
    """A sequence of records that is also a table.

    Iterate over it, index it, or convert it with `to_pandas`, `to_polars` or `to_arrow`; libraries
    that read Arrow streams, such as DuckDB and polars, take it as it is.
    """

    def __init__(self, table: pa.Table, record: Callable[..., R]) -> None:
        self._table = table
        self._record = record

    def __len__(self) -> int:
        return int(self._table.num_rows)

    @overload
    def __getitem__(self, place: int) -> R: ...

    @overload
    def __getitem__(self, place: slice) -> list[R]: ...

    def __getitem__(self, place: int | slice) -> R | list[R]:
        if isinstance(place, slice):
            return [self[each] for each in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(f"row {place} of {len(self)}")
        return self._record(**self._table.slice(place % len(self), 1).to_pylist()[0])

    def __iter__(self) -> Iterator[R]:
        for batch in self._table.to_batches():
            for row in batch.to_pylist():
                yield self._record(**row)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        columns = ", ".join(self._table.column_names)
        return f"<{len(self)} rows: {columns}>"

    def _repr_html_(self) -> str:
        return as_html(self._table)

    def to_arrow(self) -> pa.Table:
        """Return a pyarrow table."""
        return self._table

    def to_pandas(self) -> Any:
        """Return a pandas data frame; raise ConfigError if pandas is not installed."""
        _need("pandas")
        return self._table.to_pandas()

    def to_polars(self) -> Any:
        """Return a polars data frame; raise ConfigError if polars is not installed."""
        return _need("polars").from_arrow(self._table)


def _need(package: str) -> Any:
    from importlib import import_module

    try:
        return import_module(package)
    except ImportError:
        raise ConfigError(
            f"The package {package} is not installed.",
            hint=f"pip install {package}, or use to_arrow().",
        ) from None


def as_html(table: pa.Table) -> str:
    """Return the first rows of a table as HTML, with all text escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in table.column_names)
    rows = "".join(
        "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
        for row in table.slice(0, MOST_SHOWN).to_pylist()
    )
    more = table.num_rows - MOST_SHOWN
    rest = f"<p>and {more:,} more rows</p>" if more > 0 else ""
    return f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>{rest}"


def _cell(value: object) -> str:
    if value is None:
        return ""
    text = f"{value:.3g}" if isinstance(value, float) and abs(value) < 100 else str(value)
    if isinstance(value, float) and abs(value) >= 100:
        text = f"{value:.0f}"
    return escape(text if len(text) <= 200 else f"{text[:200]}...")


@dataclass(frozen=True)
class ReportFrame:
    """The report of a run, which a notebook shows in a frame."""

    path: Path
    result: Evaluation | None = None
    """The result whose folder the report is in; it stays as long as the frame."""

    def _repr_html_(self) -> str:
        content = base64.b64encode(self.path.read_bytes()).decode()
        return (
            f'<iframe src="data:text/html;base64,{content}" width="100%" height="{HEIGHT}" '
            'style="border: 1px solid #ccc" sandbox="allow-scripts"></iframe>'
        )


class Evaluation:
    """A finished evaluation: ranking, scores and answers, and questions about them.

    >>> import rocketeval
    >>> rows = [{"question": "1 + 1?", "model": name, "output": text}
    ...         for name, text in (("short", "2"), ("wordy", "It is 2, of course."))]
    >>> judge = rocketeval.ScriptedEngine(lambda text, item: 0.9 if "of course" in text else 0.4)
    >>> result = rocketeval.evaluate(rows, judge=judge, checklists=["Is it polite?"])
    >>> [(row.rank, row.candidate, row.mean_score) for row in result.ranking]
    [(1, 'wordy', 9.1), (2, 'short', 4.6)]
    >>> result.answers[0].item_text, result.answers[0].p_yes
    ('Is it polite?', 0.4)
    """

    def __init__(self, run: Run, outcome: Outcome, folder: Path | None, data: DataMapping) -> None:
        self.run = run
        """The run, with every stage and question of the library."""
        self.outcome = outcome
        self.path = outcome.path
        """The run directory; temporary unless `name` was given."""
        self.data = data
        """The format of the data, and where each part was read; print it to check the mapping."""
        self._folder = folder
        if folder is not None:
            weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)

    @cached_property
    def ranking(self) -> ResultTable[RankedRow]:
        """The candidates, best first."""
        return self._table("ranking", RankedRow)

    @cached_property
    def scores(self) -> ResultTable[ScoreRow]:
        """One row per response."""
        return self._table("scores", ScoreRow)

    @cached_property
    def answers(self) -> ResultTable[ItemAnswer]:
        """One row per item of every response."""
        return self._table("judgments", ItemAnswer)

    @property
    def verdict(self) -> str:
        """The conclusion in a sentence: who leads, or why nobody does."""
        from rocketeval.audit.conclusion import doubt
        from rocketeval.ranking.summary import conclusion_in_words

        return conclusion_in_words(self.outcome.ranking, doubt(self.outcome.audit))

    @property
    def notes(self) -> tuple[str, ...]:
        """What was skipped, changed or is missing, one sentence each; empty if nothing."""
        stages = self.outcome.stages
        counts = (
            (stages.load.absent_responses, "responses are missing: not every candidate answers "
             "every query"),
            (
                stages.score.without_score - stages.grade.not_needed,
                "responses have no score",
            ),
            (stages.score.missing_answers, f"of {stages.score.answers:,} answers are missing"),
        )  # fmt: skip
        missing = (f"{count:,} {words}" for count, words in counts if count)
        return (*self.outcome.ranking.stopped, *stages.load.notes, *missing)

    def compare(
        self, first: str, second: str, *, min_effect: float | None = None, level: float = 0.95
    ) -> Comparison:
        """Test whether one candidate is better than another.

        `min_effect` is the smallest score difference that matters, if you know one.
        """
        return self.run.compare(first, second, min_effect=min_effect, level=level)

    def audit(self) -> Audit:
        """Return how far the judge agrees with votes, labels and ratings in the data."""
        return self.outcome.audit

    def show(self) -> ReportFrame:
        """Show the report: in a frame in a notebook, elsewhere in a browser.

        In a browser, the report of a temporary run is a copy that stays when the program ends.
        """
        if not in_notebook():
            shown = self.outcome.report
            if self._folder is not None:
                kept = Path(mkdtemp(prefix="rocketeval-report-"))
                shown = Path(shutil.copy(shown, kept))
            webbrowser.open(shown.resolve().as_uri())
        return ReportFrame(self.outcome.report, self)

    def keep(self, path: Path | str) -> Path:
        """Copy the run directory to `path`, and return it."""
        target = Path(path)
        if target.exists():
            raise ConfigError(f"{target} already exists.", hint="Name another folder.")
        return Path(shutil.copytree(self.path, target))

    def __repr__(self) -> str:
        lines = [
            f"{row.rank:>3}  {row.candidate}  {row.mean_score:.2f}"
            for row in self.ranking[:MOST_SHOWN]
            if row.mean_score is not None
        ]
        after = (*self._order, *self.notes, self.data.lines[0], f"run: {self.path}")
        return "\n".join(map(printable, [self.verdict, *lines, *after]))

    def _repr_html_(self) -> str:
        shown = ["rank", "candidate", "mean_score", "mean_score_low", "mean_score_high", "rating"]
        table = self.ranking.to_arrow().select(shown)
        notes = "".join(f"<li>{escape(note)}</li>" for note in (*self._order, *self.notes))
        listed = f"<ul>{notes}</ul>" if notes else ""
        read = f"<details><summary>Data</summary><pre>{escape(str(self.data))}</pre></details>"
        return f"<p><b>{escape(self.verdict)}</b></p>{as_html(table)}{listed}{read}"

    @property
    def _order(self) -> tuple[str, ...]:
        """Sentences on where mean scores order the candidates otherwise than their ranks."""
        from rocketeval.ranking.summary import contradicted_ranks, order_in_words

        ranking = self.outcome.ranking
        return (*order_in_words(ranking), *contradicted_ranks(ranking.rows))

    def _table(self, what: str, record: type[R]) -> ResultTable[R]:
        from rocketeval.exports.stage import read_run_table

        table = read_run_table(self.run.store, what)
        return ResultTable(table.select([each.name for each in fields(record)]), record)  # type: ignore[arg-type]


def in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    import sys

    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and hasattr(shell, "kernel")
