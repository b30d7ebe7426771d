"""Reading of a run's answers in response order, in parts of whole queries."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.arrays import Floats, Ints
from rocketeval.config import RunConfig
from rocketeval.grading.methods import kind_of
from rocketeval.grading.schedule import CellBlock, cell_blocks
from rocketeval.items import Checklist
from rocketeval.records import Judgment
from rocketeval.scoring.answers import AnswerTable, RubricColumns
from rocketeval.scoring.crossfit import align_answers, table_of_lists
from rocketeval.scoring.rubric import AnswerBounds, Rubric, credits, rubric_columns
from rocketeval.store.ledger_index import LedgerIndex, hex_column, to_keys
from rocketeval.store.run import RunStore
from rocketeval.store.schema import no_judgments

PART_RESPONSES = 1 << 19
"""Number of responses per part."""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredPart:
    """The answers of all responses to some queries."""

    answers: AnswerTable
    keys: pa.StringArray
    """Judgment key of each response; null if its query has no checklist."""
    bounds: AnswerBounds | None = None
    """Proven bounds of the answers; None if all items are plain."""


class AnswerReader:
    """Reads the answers of a run's responses from its ledger."""

    def __init__(self, store: RunStore, used: Collection[tuple[str, str]] | None = None) -> None:
        """Read the responses in `used` (query and candidate); the others count as not judged."""
        self._store = store
        self._used = used
        self._index = LedgerIndex(store.ledger_folder)

    def parts(self, query_ids: Collection[str] | None = None) -> Iterator[AnsweredPart]:
        """Yield all responses in run order, in parts of whole queries; at least one part.

        `query_ids` restricts the queries.
        """
        judge, inputs = self._store.judge().digest, self._store.inputs
        queries = inputs.queries.values()
        categories = {query.id: query.category for query in queries if query.category}
        checklists = inputs.checklists()
        for cells in cell_blocks(inputs, judge, PART_RESPONSES, query_ids):
            yield self._answered(cells, categories, checklists)

    def whole(self) -> AnsweredPart:
        """Return all responses at once."""
        return _joined(list(self.parts()))

    def statuses(self) -> dict[str, int]:
        """Count the answers by status, over all parts read so far."""
        return self._index.asked_statuses()

    def _answered(
        self,
        cells: CellBlock,
        categories: Mapping[str, str],
        checklists: Mapping[str, Checklist],
    ) -> AnsweredPart:
        rows = np.full(len(cells.known), -1, dtype=np.int64)
        rows[cells.known] = self._index.find(to_keys(cells.keys))
        if self._used is not None:
            names = zip(cells.query_ids, cells.candidates, strict=True)
            rows[[name not in self._used for name in names]] = -1
        lists = self._index.lists(rows, "p_yes")
        answers = table_of_lists(cells.query_ids, cells.candidates, lists)
        answers = replace(answers, categories=categories)
        bounds = None
        if any(made.details is not None for made in checklists.values()):
            answers, bounds = self._weighed(answers, rows, checklists)
        return AnsweredPart(answers, hex_column(cells.keys, cells.known), bounds)

    def _weighed(
        self, answers: AnswerTable, rows: Ints, checklists: Mapping[str, Checklist]
    ) -> tuple[AnswerTable, AnswerBounds]:
        """Return the answers with weights and applicability, and their bounds."""

        def column(name: str) -> Floats:
            lists = self._index.lists(rows, name)
            return flat_column(lists, answers.offsets)

        weighed = with_rubric(answers, checklists, column("p_na"))
        assert weighed.rubric is not None
        names = ("p_low", "p_high", "na_low", "na_high")
        return weighed, AnswerBounds.of(weighed.rubric, *map(column, names))


def read_answers(store: RunStore) -> tuple[AnswerTable, list[str | None]]:
    """Return the answers of all responses in run order, with their judgment keys."""
    part = AnswerReader(store).whole()
    return part.answers, part.keys.to_pylist()


def scored_answers(store: RunStore) -> tuple[AnswerTable, list[str | None]]:
    """Return the answers behind the run's scores, in score order, with their judgment keys."""
    keys = store.scores(["judgment"])["judgment"].to_pylist()
    query_ids, candidates = store.score_names("query_id"), store.score_names("candidate")
    answers = align_answers(query_ids, candidates, keys, store.judgments(["key", "p_yes"]))
    checklists = store.inputs.checklists()
    if all(made.details is None for made in checklists.values()):
        return answers, keys
    p_na = align_column("p_na", answers, keys, store.judgments(["key", "p_na"]))
    return with_rubric(answers, checklists, p_na), keys


def read_judgment(store: RunStore, query_id: str, candidate: str) -> Judgment | None:
    """Return the judgment behind one response's score; None if it was not judged."""
    for batch in store.score_batches(["query_id", "candidate", "judgment"]):
        same_query = pc.equal(batch["query_id"], query_id)
        rows = batch.filter(pc.and_(same_query, pc.equal(batch["candidate"], candidate)))
        if rows.num_rows:
            key = rows["judgment"][0].as_py()
            return None if key is None else store.judgments_of([key]).get(key)
    return None


def align_column(
    name: str, answers: AnswerTable, keys: Sequence[str | None], judgments: Iterable[pa.Table]
) -> Floats:
    """Return another column of the ledger in the layout of `answers.p_yes`; NaN if null."""
    parts = [table.select(["key", name]) for table in judgments]
    ledger = pa.concat_tables([no_judgments(["key", name]), *parts]).combine_chunks()
    rows = pc.index_in(pa.array(keys, pa.string()), value_set=ledger["key"])
    lists = ledger[name].combine_chunks().take(rows)
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    return flat_column(lists, answers.offsets)


def flat_column(lists: pa.ListArray, offsets: Ints) -> Floats:
    """Return the numbers of one list per response, flat; a null list or number is NaN."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    found = np.full(int(offsets[-1]), np.nan)
    there = np.repeat(lengths == np.diff(offsets), np.diff(offsets))
    kept = lists.filter(pa.array(lengths == np.diff(offsets)))
    found[there] = pc.list_flatten(kept).to_numpy(zero_copy_only=False).astype(np.float64)
    return found


def with_rubric(
    answers: AnswerTable, checklists: Mapping[str, Checklist], p_na: Floats
) -> AnswerTable:
    """Return the answers with weights and applicability, if some items are not plain."""
    columns = rubric_columns(checklists, answers.query_ids, answers.offsets, answers.p_yes, p_na)
    if columns is None:
        return answers
    return replace(answers, p_yes=credits(columns, answers.offsets), rubric=columns)


def _joined(parts: Sequence[AnsweredPart]) -> AnsweredPart:
    if len(parts) == 1:
        return parts[0]
    tables = [part.answers for part in parts]
    lengths = np.concatenate([table.items for table in tables])
    answers = AnswerTable(
        [name for table in tables for name in table.query_ids],
        [name for table in tables for name in table.candidates],
        np.concatenate([table.p_yes for table in tables]),
        np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]),
        tables[0].categories,
        _joined_columns(tables),
    )
    keys = pa.concat_arrays([part.keys for part in parts])
    return AnsweredPart(answers, keys, _joined_bounds([part.bounds for part in parts]))


def _joined_columns(tables: Sequence[AnswerTable]) -> RubricColumns | None:
    columns = [table.rubric for table in tables if table.rubric is not None]
    if not columns:
        return None
    return RubricColumns(
        np.concatenate([each.values for each in columns]),
        np.concatenate([each.weights for each in columns]),
        np.concatenate([each.applicable for each in columns]),
    )


def _joined_bounds(parts: Sequence[AnswerBounds | None]) -> AnswerBounds | None:
    bounds = [each for each in parts if each is not None]
    if not bounds:
        return None
    return AnswerBounds(
        np.concatenate([each.value_low for each in bounds]),
        np.concatenate([each.value_high for each in bounds]),
        np.concatenate([each.applicable_low for each in bounds]),
        np.concatenate([each.applicable_high for each in bounds]),
    )


def answers_yes_or_no(config: RunConfig) -> bool:
    """Return whether the judge answers yes or no in this run.

    An evaluator's answers may be grades, or means over opponents.
    """
    return config.evaluator is None and kind_of(config.method.kind).yes_no


def rubric_of(config: RunConfig, checklists: Mapping[str, Checklist]) -> Rubric:
    """Return what the answers of this run are besides plain yes and no."""
    return Rubric.of(checklists) if answers_yes_or_no(config) else Rubric(grades=True)
