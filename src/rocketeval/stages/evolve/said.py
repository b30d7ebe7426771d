"""What a judge said on its sheets, as a table of cases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from rocketeval.evolve.cases import Case, CaseTable, Floats
from rocketeval.evolve.perspective import Kind, Perspective, Pool
from rocketeval.evolve.sheets import QUERIES, Asking, Sheet, sheet_of
from rocketeval.prompts.perspectives import QUERY_ALONE, pair_name
from rocketeval.stages.answers import read_answers
from rocketeval.store.run import RunStore


def by_sheet(pool: Iterable[Perspective], asking: Asking) -> dict[Sheet, list[Perspective]]:
    """Return the perspectives of each sheet, in the order of the pool."""
    found: dict[Sheet, list[Perspective]] = {}
    for perspective in pool:
        found.setdefault(sheet_of(perspective, asking), []).append(perspective)
    return found


class SheetAnswers:
    """The answers that the run of a sheet holds."""

    def __init__(self, sheet: Sheet, inside: RunStore, perspectives: Sequence[Perspective]) -> None:
        self._sheet = sheet
        self.perspectives = tuple(perspectives)
        answers, _ = read_answers(inside)
        names = zip(answers.query_ids, answers.candidates, strict=True)
        bounds = answers.offsets.tolist()
        self._rows = {
            name: answers.p_yes[start:stop]
            for name, start, stop in zip(names, bounds[:-1], bounds[1:], strict=True)
        }
        self._silent = np.full(len(perspectives), np.nan)

    def matrix(self, cases: Sequence[Case]) -> Floats:
        """Return one row a case, one column a perspective of the sheet; NaN is a missing answer."""
        rows = [self._row(case) for case in cases]
        return np.stack(rows) if rows else np.zeros((0, len(self.perspectives)))

    def _row(self, case: Case) -> Floats:
        """Return a case's answers: of pairs, from -1 (for b) to 1 (for a)."""
        if self._sheet is QUERIES:
            return self._said(case.query_id, QUERY_ALONE)
        if self._sheet.signed:
            return 2.0 * self._said(case.query_id, pair_name(*case.candidates)) - 1.0
        rows = [self._said(case.query_id, candidate) for candidate in case.candidates]
        return rows[0] - rows[1] if len(rows) == 2 else rows[0]

    def _said(self, query_id: str, candidate: str) -> Floats:
        row = self._rows.get((query_id, candidate), self._silent)
        return row if len(row) else self._silent


class Said:
    """The answers of all sheets, for any cases that were asked about."""

    def __init__(self, pool: Iterable[Perspective], sheets: Iterable[SheetAnswers]) -> None:
        self._pool = Pool(pool)
        self._sheets = tuple(sheets)

    def table(self, cases: Sequence[Case]) -> CaseTable:
        """Return what was said about every case from every perspective."""
        columns: dict[str, Floats] = {}
        for sheet in self._sheets:
            matrix = sheet.matrix(cases)
            columns |= {each.id: matrix[:, place] for place, each in enumerate(sheet.perspectives)}
        dependent, independent = self._pool.of(Kind.RESPONSE), self._pool.of(Kind.QUERY)
        return CaseTable(
            tuple(cases),
            dependent,
            _matrix(columns, dependent, len(cases)),
            independent,
            _matrix(columns, independent, len(cases)),
        )


def _matrix(
    columns: Mapping[str, Floats], perspectives: Sequence[Perspective], cases: int
) -> Floats:
    own = [columns[each.id] for each in perspectives]
    return np.stack(own, axis=1) if own else np.zeros((cases, 0))
