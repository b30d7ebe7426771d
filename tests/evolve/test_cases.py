"""Cases from votes and labels, and the table of the judge's answers."""

from __future__ import annotations

import numpy as np

from rocketeval.evolve.cases import Case, CaseTable, cases_from_labels, cases_from_votes
from rocketeval.evolve.perspective import Perspective, PerspectiveKind
from rocketeval.records import Label, Vote


def test_majority_decides_in_either_order() -> None:
    """A swapped vote counts for the same candidate; no majority is a tie."""
    votes = [
        Vote("q1", "x", "y", "a"),
        Vote("q1", "y", "x", "b"),
        Vote("q1", "x", "y", "b"),
        Vote("q2", "x", "y", "a"),
        Vote("q2", "x", "y", "b"),
        Vote("q3", "y", "x", "tie"),
    ]
    assert cases_from_votes(votes) == (
        Case("q1", ("x", "y"), 1.0),
        Case("q2", ("x", "y"), 0.0),
        Case("q3", ("y", "x"), 0.0),
    )


def test_labels_of_a_response_are_averaged() -> None:
    """Two labels of a response give one case."""
    labels = [Label("q", "x", 3.0, "ann"), Label("q", "x", 4.0, "bob"), Label("q", "y", 1.0)]
    assert cases_from_labels(labels) == (Case("q", ("x",), 3.5), Case("q", ("y",), 1.0))


def test_table_selects_rows_and_columns() -> None:
    """Rows keep their cases, columns their perspectives."""
    table = CaseTable(
        (Case("q1", ("x", "y"), 1.0), Case("q2", ("x", "y"), None)),
        (Perspective("Is it right?"), Perspective("Is it short?")),
        np.array([[0.1, 0.2], [0.3, 0.4]]),
        (Perspective("Is it a sum?", PerspectiveKind.QUERY),),
        np.array([[0.9], [0.8]]),
    )
    narrow = table.take([1]).narrow([table.about_responses[1].id])
    assert narrow.cases == (table.cases[1],)
    assert narrow.answers.tolist() == [[0.4]]
    assert narrow.traits.shape == (1, 0)
    assert table.pairs
    assert np.isnan(table.gold).tolist() == [False, True]
