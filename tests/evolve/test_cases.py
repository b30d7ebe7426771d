"""Cases from votes and labels, and the table of the judge's answers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from rocketeval.evolve.cases import Case, CaseTable, cases_from_labels, cases_from_votes, oriented
from rocketeval.evolve.perspective import Perspective, PerspectiveKind
from rocketeval.records import Label, Query, Vote


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


def test_one_sided_pairs_are_oriented_by_content() -> None:
    """The order in the file, the ids and other votes do not matter; other pairs keep theirs."""
    queries = [Query(f"q{place}", f"Question {place}?") for place in range(40)]
    votes = [Vote(query.id, "chosen", "rejected", "a") for query in queries]
    found = oriented(cases_from_votes(votes), queries)
    assert 10 <= sum(case.gold == 1.0 for case in found) <= 30
    assert all((case.gold == 1.0) == (case.candidates[0] == "chosen") for case in found)
    turned = [Vote(query.id, "rejected", "chosen", "b") for query in queries]
    assert oriented(cases_from_votes(turned), queries) == found
    renamed = [replace(query, id=f"x{query.id}") for query in queries]
    others = [replace(vote, query_id=f"x{vote.query_id}") for vote in votes[:30]]
    same = oriented(cases_from_votes(others), renamed)
    assert [case.candidates for case in same] == [case.candidates for case in found[:30]]
    mixed = cases_from_votes([*votes[:35], *turned[35:]])
    assert oriented(mixed[:19], queries) == mixed[:19]
    balanced = cases_from_votes([*votes[:30], *(replace(each, winner="b") for each in votes[30:])])
    assert oriented(balanced, queries) == balanced


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
