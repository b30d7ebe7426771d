"""The schedule: query order, duplicates asked once, and what has no checklist left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.grading.schedule import cells, unfinished_tasks
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Checklist, GradingTask, Query, Response, Turn
from rocketeval.store.inputs import Inputs

JUDGE = b"j" * 16
QUERIES = [Query("zeta", "Why zeta?"), Query("alpha", "Why alpha?"), Query("mid", "Why mid?")]


def saved(
    tmp_path: Path,
    responses: list[Response],
    *,
    queries: list[Query] = QUERIES,
    without: tuple[str, ...] = (),
    items: dict[str, tuple[str, ...]] | None = None,
) -> Inputs:
    """Inputs on disk; every query has a checklist of one item unless told otherwise."""
    inputs = Inputs(tmp_path)
    inputs.save(queries, responses, [], [], [])
    inputs.save_checklists(
        Checklist(query.id, (items or {}).get(query.id, ("Is it right?",)))
        for query in queries
        if query.id not in without
    )
    return inputs


def everyone(*candidates: str, queries: list[Query] = QUERIES) -> list[Response]:
    """Every candidate's own response to every query, candidate by candidate as files come."""
    return [
        Response(query.id, candidate, f"{candidate} on {query.id}")
        for candidate in candidates
        for query in queries
    ]


def tasks(inputs: Inputs, finished: set[bytes] | None = None) -> list[GradingTask]:
    """All tasks still to do."""
    done = finished or set()
    return list(unfinished_tasks(inputs, GradingPrompt(), JUDGE, done.__contains__))


def pairs(found: list[GradingTask]) -> list[tuple[str, str]]:
    """Query and candidate of each task."""
    return [(task.query_id, task.candidate) for task in found]


def test_tasks_come_query_by_query(tmp_path: Path) -> None:
    """The benchmark's query order, all candidates of a query together: prefixes are shared."""
    found = pairs(tasks(saved(tmp_path, everyone("b", "a"))))
    assert found == [(query, name) for query in ("zeta", "alpha", "mid") for name in ("a", "b")]


def test_the_same_text_is_one_task(tmp_path: Path) -> None:
    """Two candidates that say the same share one judgment; other queries are not touched."""
    twins = [Response("zeta", name, "the same words") for name in ("a", "b", "c")]
    inputs = saved(tmp_path, [*twins, Response("alpha", "a", "the same words")])
    found = tasks(inputs)
    assert pairs(found) == [("zeta", "a"), ("alpha", "a")]
    keys = [cell.key for cell in cells(inputs, JUDGE)]
    assert keys[0] == keys[1] == keys[2] == found[0].key
    assert keys[3] == found[1].key


def test_the_same_query_twice_is_one_task(tmp_path: Path) -> None:
    """Two queries that say the same share judgments, also when both would be in flight at once."""
    queries = [Query("one", "Why?"), Query("two", "Why?"), Query("three", "Why?", category="x")]
    responses = [Response(query.id, "a", "Because.") for query in queries]
    found = tasks(saved(tmp_path, responses, queries=queries))
    assert pairs(found) == [("one", "a")]


def test_the_same_text_with_another_history_is_another_task(tmp_path: Path) -> None:
    """What the candidate really went through is part of what a judge sees."""
    said = [
        Response("zeta", "a", "same", history=(Turn("user", "hello"),)),
        Response("zeta", "b", "same"),
    ]
    assert len(tasks(saved(tmp_path, said))) == 2


def test_queries_without_checklist_are_skipped(tmp_path: Path) -> None:
    """They give no task, and the cells say that they have no identity."""
    inputs = saved(tmp_path, everyone("a"), without=("alpha",))
    assert pairs(tasks(inputs)) == [("zeta", "a"), ("mid", "a")]
    assert [cell.query_id for cell in cells(inputs, JUDGE) if cell.key is None] == ["alpha"]


def test_finished_tasks_are_left_out(tmp_path: Path) -> None:
    """Only what is not in the ledger is to be done."""
    inputs = saved(tmp_path, everyone("a", "b"))
    every = tasks(inputs)
    finished = {task.key for task in every[1:4]}
    assert tasks(inputs, finished) == [every[0], *every[4:]]


def test_what_finishes_meanwhile_is_left_out_too(tmp_path: Path) -> None:
    """The ledger is looked at when a task's turn comes, not when the schedule is made."""
    inputs = saved(tmp_path, everyone("a", "b"))
    finished: set[bytes] = set()
    stream = unfinished_tasks(inputs, GradingPrompt(), JUDGE, finished.__contains__)
    next(stream)
    finished.update(
        cell.key for cell in cells(inputs, JUDGE) if cell.query_id == "alpha" and cell.key
    )
    assert pairs(list(stream)) == [("zeta", "b"), ("mid", "a"), ("mid", "b")]


@pytest.mark.parametrize("change", ["judge", "query", "response", "items"])
def test_every_part_of_the_prompt_is_in_the_identity(tmp_path: Path, change: str) -> None:
    """Another judge, query, response or checklist is another judgment."""
    query = Query("q", "Why?")
    base = saved(tmp_path / "base", [Response("q", "a", "So.")], queries=[query])
    other = saved(
        tmp_path / "other",
        [Response("q", "a", "Thus." if change == "response" else "So.")],
        queries=[Query("q", "How?") if change == "query" else query],
        items={"q": ("Is it wrong?",)} if change == "items" else None,
    )
    judge = b"k" * 16 if change == "judge" else JUDGE
    (one,), (two,) = list(cells(base, JUDGE)), list(cells(other, judge))
    assert one.key != two.key


def test_names_are_not_in_the_identity(tmp_path: Path) -> None:
    """Renaming a query or a candidate does not pay for a judgment again."""
    one = saved(tmp_path / "1", [Response("q", "a", "So.")], queries=[Query("q", "Why?")])
    two = saved(tmp_path / "2", [Response("r", "b", "So.")], queries=[Query("r", "Why?")])
    assert [cell.key for cell in cells(one, JUDGE)] == [cell.key for cell in cells(two, JUDGE)]


def test_cells_and_tasks_agree(tmp_path: Path) -> None:
    """Identities from stored hashes are those of the tasks made from the texts."""
    inputs = saved(tmp_path, everyone("a", "b", "c"))
    assert [cell.key for cell in cells(inputs, JUDGE)] == [task.key for task in tasks(inputs)]
