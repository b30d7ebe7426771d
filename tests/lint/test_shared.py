"""A checklist that all queries share: each finding is reported once."""

from __future__ import annotations

from rocketeval.checklists.base import is_shared
from rocketeval.lint.findings import make_finding
from rocketeval.lint.static import merge_shared
from rocketeval.records import Checklist

QUERIES = ("sky", "sea", "sun")


def test_all_queries_share_or_none_do() -> None:
    """Two equal of three are two checklists; a single one belongs to its query."""
    same = [Checklist(query, ("Is it?",)) for query in QUERIES]
    assert is_shared(same)
    assert not is_shared([*same, Checklist("moon", ("Is it not?",))])
    assert not is_shared(same[:1])


def test_static_findings_always_count() -> None:
    """Also if found in one query only, because the others mention the term."""
    found = [make_finding("sea", 2, "Is it good?", "vague", "why")]
    merged, left_out = merge_shared(found, QUERIES)
    assert [(each.query_id, each.query_ids, each.why) for each in merged] == [
        ("sky", ("sea",), "why")
    ]
    assert left_out == 0


def test_findings_on_answers_need_half_of_the_queries() -> None:
    """The figures are those of the first query; rarer findings are counted."""
    found = [
        make_finding("sky", 1, "Is it?", "always_yes", "yes to all"),
        make_finding("sea", 1, "Is it?", "unsure", "0.05"),
        make_finding("sun", 1, "Is it?", "unsure", "0.07"),
    ]
    merged, left_out = merge_shared(found, QUERIES)
    assert [(each.kind, each.query_ids) for each in merged] == [("unsure", ("sea", "sun"))]
    assert merged[0].why == "In 2 of 3 queries; in 'sea': 0.05"
    assert left_out == 1
