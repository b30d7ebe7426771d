"""The schedule: query order, identical responses once, no task without a checklist."""

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
    """Save inputs to disk; by default every query has a checklist of one item."""
    inputs = Inputs(tmp_path)
    inputs.save(queries, responses, [], [], [])
    inputs.save_checklists(
        Checklist(query.id, (items or {}).get(query.id, ("Is it right?",)))
        for query in queries
        if query.id not in without
    )
    return inputs


def everyone(*candidates: str, queries: list[Query] = QUERIES) -> list[Response]:
    """Return every candidate's response to every query, candidate by candidate."""
    return [
        Response(query.id, candidate, f"{candidate} on {query.id}")
        for candidate in candidates
        for query in queries
    ]


def tasks(inputs: Inputs, finished: set[bytes] | None = None) -> list[GradingTask]:
    """Return all unfinished tasks."""
    done = finished or set()
    return list(unfinished_tasks(inputs, GradingPrompt(), JUDGE, done.__contains__))


def pairs(found: list[GradingTask]) -> list[tuple[str, str]]:
    """Return query and candidate of each task."""
    return [(task.query_id, task.candidate) for task in found]


def test_tasks_come_query_by_query(tmp_path: Path) -> None:
    """Tasks follow the benchmark's query order, so that prefixes are shared."""
    found = pairs(tasks(saved(tmp_path, everyone("b", "a"))))
    assert found == [(query, name) for query in ("zeta", "alpha", "mid") for name in ("a", "b")]


def test_identical_responses_are_one_task(tmp_path: Path) -> None:
    """Candidates with the same text share one judgment; other queries are separate."""
    twins = [Response("zeta", name, "the same words") for name in ("a", "b", "c")]
    inputs = saved(tmp_path, [*twins, Response("alpha", "a", "the same words")])
    found = tasks(inputs)
    assert pairs(found) == [("zeta", "a"), ("alpha", "a")]
    keys = [cell.key for cell in cells(inputs, JUDGE)]
    assert keys[0] == keys[1] == keys[2] == found[0].key
    assert keys[3] == found[1].key


def test_identical_queries_are_one_task(tmp_path: Path) -> None:
    """Two queries with the same text share judgments, even in flight at once."""
    queries = [Query("one", "Why?"), Query("two", "Why?"), Query("three", "Why?", category="x")]
    responses = [Response(query.id, "a", "Because.") for query in queries]
    found = tasks(saved(tmp_path, responses, queries=queries))
    assert pairs(found) == [("one", "a")]


def test_other_history_is_another_task(tmp_path: Path) -> None:
    """The conversation history is part of what a judge sees."""
    answers = [
        Response("zeta", "a", "same", history=(Turn("user", "hello"),)),
        Response("zeta", "b", "same"),
    ]
    assert len(tasks(saved(tmp_path, answers))) == 2


def test_queries_without_checklist_are_skipped(tmp_path: Path) -> None:
    """They give no task, and their cells have no identity."""
    inputs = saved(tmp_path, everyone("a"), without=("alpha",))
    assert pairs(tasks(inputs)) == [("zeta", "a"), ("mid", "a")]
    assert [cell.query_id for cell in cells(inputs, JUDGE) if cell.key is None] == ["alpha"]


def test_finished_tasks_are_skipped(tmp_path: Path) -> None:
    """Only judgments that are not in the ledger are tasks."""
    inputs = saved(tmp_path, everyone("a", "b"))
    every = tasks(inputs)
    finished = {task.key for task in every[1:4]}
    assert tasks(inputs, finished) == [every[0], *every[4:]]


def test_tasks_finished_meanwhile_are_skipped(tmp_path: Path) -> None:
    """The ledger is checked when a task's turn comes, not when the schedule is made."""
    inputs = saved(tmp_path, everyone("a", "b"))
    finished: set[bytes] = set()
    stream = unfinished_tasks(inputs, GradingPrompt(), JUDGE, finished.__contains__)
    next(stream)
    finished.update(
        cell.key for cell in cells(inputs, JUDGE) if cell.query_id == "alpha" and cell.key
    )
    assert pairs(list(stream)) == [("zeta", "b"), ("mid", "a"), ("mid", "b")]


@pytest.mark.parametrize("change", ["judge", "query", "response", "items"])
def test_identity_covers_every_part_of_the_prompt(tmp_path: Path, change: str) -> None:
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


def test_identity_excludes_names(tmp_path: Path) -> None:
    """Renaming a query or a candidate keeps its judgments."""
    one = saved(tmp_path / "1", [Response("q", "a", "So.")], queries=[Query("q", "Why?")])
    two = saved(tmp_path / "2", [Response("r", "b", "So.")], queries=[Query("r", "Why?")])
    assert [cell.key for cell in cells(one, JUDGE)] == [cell.key for cell in cells(two, JUDGE)]


def test_cells_and_tasks_agree(tmp_path: Path) -> None:
    """Identities from stored hashes equal those from the texts."""
    inputs = saved(tmp_path, everyone("a", "b", "c"))
    assert [cell.key for cell in cells(inputs, JUDGE)] == [task.key for task in tasks(inputs)]
