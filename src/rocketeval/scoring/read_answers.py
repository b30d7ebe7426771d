"""Reading of a run's answers in response order, in parts of whole queries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rocketeval.config import RunConfig
from rocketeval.grading.methods import kind_of
from rocketeval.grading.schedule import CellBlock, cell_blocks
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import align_answers, table_of_lists
from rocketeval.store.ledger_index import LedgerIndex, hex_column, to_keys
from rocketeval.store.run import RunStore

PART_RESPONSES = 1 << 19
"""Number of responses per part."""


@dataclass(frozen=True, slots=True, eq=False)
class AnsweredPart:
    """The answers of all responses to some queries."""

    answers: AnswerTable
    keys: pa.StringArray
    """Judgment key of each response; null if its query has no checklist."""


class AnswerReader:
    """Reads the answers of a run's responses from its ledger."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._index = LedgerIndex(store.ledger_folder)

    def parts(self, query_ids: Collection[str] | None = None) -> Iterator[AnsweredPart]:
        """Yield all responses in run order, in parts of whole queries; at least one part.

        `query_ids` restricts the queries.
        """
        judge, inputs = self._store.judge().digest, self._store.inputs
        queries = inputs.queries.values()
        categories = {query.id: query.category for query in queries if query.category}
        for cells in cell_blocks(inputs, judge, PART_RESPONSES, query_ids):
            yield self._answered(cells, categories)

    def whole(self) -> AnsweredPart:
        """Return all responses at once."""
        return _joined(list(self.parts()))

    def statuses(self) -> dict[str, int]:
        """Count the answers by status, over all parts read so far."""
        return self._index.asked_statuses()

    def _answered(self, cells: CellBlock, categories: Mapping[str, str]) -> AnsweredPart:
        rows = np.full(len(cells.known), -1, dtype=np.int64)
        rows[cells.known] = self._index.find(to_keys(cells.keys))
        lists = self._index.lists(rows, "p_yes")
        answers = table_of_lists(cells.query_ids, cells.candidates, lists)
        answers = replace(answers, categories=categories)
        return AnsweredPart(answers, hex_column(cells.keys, cells.known))


def read_answers(store: RunStore) -> tuple[AnswerTable, list[str | None]]:
    """Return the answers of all responses in run order, with their judgment keys."""
    part = AnswerReader(store).whole()
    return part.answers, part.keys.to_pylist()


def scored_answers(store: RunStore) -> tuple[AnswerTable, list[str | None]]:
    """Return the answers behind the run's scores, in score order, with their judgment keys."""
    keys = store.scores(["judgment"])["judgment"].to_pylist()
    query_ids, candidates = store.score_names("query_id"), store.score_names("candidate")
    return align_answers(query_ids, candidates, keys, store.judgments(["key", "p_yes"])), keys


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
    )
    return AnsweredPart(answers, pa.concat_arrays([part.keys for part in parts]))


def answers_yes_or_no(config: RunConfig) -> bool:
    """Return whether the judge answers yes or no in this run.

    An evaluator's answers may be grades, or means over opponents.
    """
    return config.evaluator is None and kind_of(config.method.kind).yes_no
