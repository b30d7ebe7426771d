"""Columns of a table, found by perspective."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rocketeval.errors import ArtifactError
from rocketeval.evolve.cases import CaseTable, Floats
from rocketeval.evolve.perspective import Perspective


def answers_of(table: CaseTable, needed: Sequence[Perspective]) -> Floats:
    """Return the columns of perspectives about responses, in the order needed."""
    return _columns(table.answers, table.about_responses, needed)


def traits_of(table: CaseTable, needed: Sequence[Perspective]) -> Floats:
    """Return the columns of perspectives about queries, in the order needed."""
    return _columns(table.traits, table.about_queries, needed)


def stacked(table: CaseTable, more: CaseTable) -> CaseTable:
    """Return the cases of both tables, with the first one's perspectives."""
    return CaseTable(
        table.cases + more.cases,
        table.about_responses,
        np.vstack([table.answers, answers_of(more, table.about_responses)]),
        table.about_queries,
        np.vstack([table.traits, traits_of(more, table.about_queries)]),
    )


def _columns(values: Floats, there: Sequence[Perspective], needed: Sequence[Perspective]) -> Floats:
    place = {each.id: number for number, each in enumerate(there)}
    absent = [each for each in needed if each.id not in place]
    if absent:
        raise ArtifactError(
            f"{len(absent)} of the perspectives that are needed were not asked, the first of them "
            f"{absent[0].text!r}.",
            hint="Ask the judge all of them about these cases.",
        )
    columns: Floats = values[:, [place[each.id] for each in needed]]
    return columns
