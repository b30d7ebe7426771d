"""A running run in another process: progress, provisional figures, and its end."""

from __future__ import annotations

import asyncio
import gzip
import json
import shlex
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import Stopped
from rocketeval.pipeline import Run
from rocketeval.store.run import RunStore
from rocketeval.view import live_run as watched
from rocketeval.view.provisional import provisional_figures
from rocketeval.view.run_list import ProgressMeter
from support.forked import Forked, run_forked
from support.make import make_config, write_jsonl
from support.viewing import View, Viewing, files_of, prefer_left

QUERIES = 40
CONFIG = """\
name: live
benchmark: {{path: benchmark}}
judge: {{engine: scripted, model: scripted, concurrency: 2, options: {{delay: {delay}}}}}
scorer: {{kind: {scorer}}}
ranking: {{bootstrap: 50}}
"""


def write_many(folder: Path) -> None:
    """Write a benchmark of forty queries and two candidates."""
    names = [f"q{number}" for number in range(QUERIES)]
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Why {q}?"} for q in names])
    for candidate in ("left", "right"):
        rows = [{"query_id": q, "text": f"{candidate} explains {q}"} for q in names]
        write_jsonl(folder / "responses" / f"{candidate}.jsonl", rows)
    items = ["Is it right?", "Is it clear?"]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": items} for q in names])


@pytest.fixture
def started(tmp_path: Path) -> Iterator[Any]:
    """Start runs in processes that end with the test."""
    processes: list[Forked] = []

    def start(delay: float = 0.1, scorer: str = "mean") -> Forked:
        write_many(tmp_path / "benchmark")
        config = tmp_path / "rocketeval.yaml"
        config.write_text(CONFIG.format(delay=delay, scorer=scorer))
        processes.append(Forked(tmp_path, ("run", "--quiet")))
        return processes[-1]

    yield start
    for process in processes:
        process.kill()
        process.communicate()


async def until(view: View, place: str, wanted: Any, seconds: float = 240.0) -> Any:
    """Poll until the answer matches."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        answer = await view.get(place)
        if answer.status == 200 and wanted(answer.json):
            return answer.json
        await asyncio.sleep(0.05)
    raise AssertionError(f"{place}: {answer.status} {answer.body[:500]!r}")


def go_on(process: Forked, run: Path) -> None:
    """Let a run judge some more responses, then suspend it."""

    def written() -> int:
        return sum(path.stat().st_size for path in run.glob("ledger/journal-*.jsonl"))

    before = written()
    process.send_signal(signal.SIGCONT)
    while written() == before:
        assert process.returncode is None
        time.sleep(0.01)
    process.send_signal(signal.SIGSTOP)


async def test_running_run_is_shown(
    tmp_path: Path, viewing: Viewing, started: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`done` grows, provisional figures get new versions, and the last ones are final."""
    monkeypatch.setattr(watched, "REFRESH_SECONDS", 0.5)
    (tmp_path / "runs").mkdir()
    view = await viewing(tmp_path / "runs")
    process = started(delay=0.2)
    go_on(process, tmp_path / "runs" / "live")
    await until(view, "/runs.json", lambda head: head["runs"] and head["runs"][0]["done"] > 0)
    listed = (await view.json("/runs.json"))["runs"][0]
    assert (listed["state"], listed["total"]) == ("going", 2 * QUERIES)

    head = await view.json("/run/live/head.json")
    live = head["live"]
    assert (live["state"], live["stage"], live["total"]) == ("going", "grade", 2 * QUERIES)
    assert 0 < live["done"] < 2 * QUERIES
    assert f"of {2 * QUERIES} responses judged so far" in head["provisional"]
    missing = sum(one["missing"] for one in head["candidates"] if one["rank"] is not None)
    assert missing > 0
    block = await view.get(f"/run/live/block/queries?version={live['version']}")
    assert len(json.loads(gzip.decompress(block.body))["id"]) == QUERIES
    assert (await view.get(f"/run/live/block/query-0?version={live['version']}")).status == 200
    assert (await view.get("/run/live/")).status == 200

    await view.json("/run/live/pulse.json")
    go_on(process, tmp_path / "runs" / "live")
    pulse = await until(view, "/run/live/pulse.json", lambda now: now["version"] != live["version"])
    assert pulse["done"] > live["done"]
    assert pulse["rate"] > 0
    assert pulse["seconds_left"] > 0
    again = await view.json("/run/live/head.json")
    assert again["provisional"] != head["provisional"]

    process.send_signal(signal.SIGCONT)
    assert await asyncio.to_thread(process.wait) == 0
    end = await until(view, "/run/live/pulse.json", lambda now: now["state"] == "finished")
    assert end["done"] == end["total"] == 2 * QUERIES
    final = await view.json("/run/live/head.json")
    assert final["provisional"] == ""
    assert final["live"]["version"] == (await view.json("/run/live/pulse.json"))["version"]


async def test_killed_run_is_paused_and_can_be_continued(
    tmp_path: Path, viewing: Viewing, started: Any
) -> None:
    """After SIGKILL, the page keeps the figures and names a command that continues the run."""
    process = started()
    run = tmp_path / "runs" / "live"
    while not list(run.glob("ledger/journal-*.jsonl")):
        await asyncio.sleep(0.05)
    view = await viewing(run, quiet=1.0)
    await until(view, "/run/live/pulse.json", lambda now: now["done"] > 5)
    process.send_signal(signal.SIGKILL)
    process.wait()
    pulse = await until(view, "/run/live/pulse.json", lambda now: now["state"] == "paused")
    assert pulse["rate"] is None
    assert pulse["seconds_left"] is None
    before = files_of(run)
    head = await view.json("/run/live/head.json")
    assert (head["live"]["state"], head["live"]["stage"]) == ("paused", "grade")
    assert head["provisional"].startswith("The run stopped; ")
    assert [one["name"] for one in head["candidates"]]
    assert files_of(run) == before
    command = head["provisional"].split("`")[1]
    words = shlex.split(command)
    assert words[:2] == ["rocketeval", "run"]
    done = run_forked(tmp_path, (*words[1:], "--quiet"))
    assert done.returncode == 0, done.stderr
    assert (await view.json("/run/live/pulse.json"))["state"] == "finished"


async def test_viewer_never_prevents_a_run_from_starting(
    tmp_path: Path, viewing: Viewing, started: Any
) -> None:
    """Runs start and end while a viewer polls as fast as it can."""
    view = await viewing(tmp_path)
    over = asyncio.Event()

    async def ask() -> None:
        while not over.is_set():
            await view.get("/run/live/pulse.json")
            await view.get("/run/live/head.json")
            await view.get("/runs.json")

    asking = asyncio.create_task(ask())
    for _ in range(3):
        assert await asyncio.to_thread(started(delay=0.0).wait) == 0
    over.set()
    await asking


async def test_learned_scorer_is_replaced_by_the_mean(tmp_path: Path, viewing: Viewing) -> None:
    """Provisional scores are means of the answers, and the page says so."""
    write_many(tmp_path / "benchmark")
    labels = [
        {"query_id": f"q{number}", "candidate": name, "value": 5 + number % 3}
        for number in range(QUERIES)
        for name in ("left", "right")
    ]
    write_jsonl(tmp_path / "benchmark" / "labels.jsonl", labels)
    await stop_after(tmp_path, 20, scorer={"kind": "pooled_ridge"})
    view = await viewing(tmp_path / "runs" / "run", quiet=0.0)
    head = await view.json("/run/run/head.json")
    assert "pooled_ridge" in head["provisional"]
    assert head["live"]["state"] == "paused"
    assert head["candidates"][0]["score"]["value"] == pytest.approx(9.1)


async def test_unjudged_responses_count_as_missing(tmp_path: Path, viewing: Viewing) -> None:
    """Responses that are not judged yet are counted as missing per candidate."""
    write_many(tmp_path / "benchmark")
    await stop_after(tmp_path, 9)
    view = await viewing(tmp_path / "runs" / "run", quiet=0.0)
    head = await view.json("/run/run/head.json")
    done = head["live"]["done"]
    assert f"{done} of {2 * QUERIES} responses judged so far" in head["provisional"]
    assert sum(one["queries"] for one in head["candidates"]) == done
    assert sum(one["missing"] for one in head["candidates"]) == 2 * QUERIES - done
    line = (await view.json("/runs.json"))["runs"][0]
    assert (line["state"], line["done"], line["total"]) == ("paused", done, 2 * QUERIES)
    sizes = dict(head["sizes"])
    assert (sizes["judgments"], sizes["answers"]) == (done, 2 * done)
    lost = {loss["what"]: (loss["count"], loss["of"]) for loss in head["losses"]}
    assert lost["responses not judged"] == (2 * QUERIES - done, 2 * QUERIES)
    grade = next(cost for cost in head["costs"] if cost["stage"] == "grade")
    assert grade["requests"] > 0
    assert head["trust"][2]["verdict"] == "no unanswered items"
    assert head["conclusion"] == ""


async def test_facts_of_an_earlier_grading_are_not_shown(tmp_path: Path, viewing: Viewing) -> None:
    """The manifest of a finished run does not apply after the inputs changed."""
    write_many(tmp_path / "benchmark")
    await asyncio.to_thread(
        rocketeval.run, make_config(tmp_path), judge=ScriptedEngine(prefer_left)
    )
    left = tmp_path / "benchmark" / "responses" / "left.jsonl"
    left.write_text(left.read_text().replace("left explains", "left tells"))
    await Run(make_config(tmp_path), judge=ScriptedEngine(prefer_left)).to_checklists()
    head = await (await viewing(tmp_path / "runs" / "run", quiet=0.0)).json("/run/run/head.json")
    assert dict(head["sizes"])["judgments"] == QUERIES
    assert {cost["stage"] for cost in head["costs"]} <= {"load", "checklist", "grade", "score"}


async def test_run_without_usable_answers_shows_the_reason(
    tmp_path: Path, viewing: Viewing
) -> None:
    """All responses are judged but none has a score; the page shows counts and reason."""
    text = "I would rather not say."
    judge = {"engine": "scripted", "model": "scripted", "options": {"text": text}}
    config = make_config(tmp_path, judge=judge, method={"kind": "cot"})
    with pytest.raises(rocketeval.RocketEvalError):
        await asyncio.to_thread(rocketeval.run, config)
    view = await viewing(tmp_path / "runs" / "run", quiet=0.0)
    head = await view.json("/run/run/head.json")
    assert "6 of 6 responses judged so far" in head["provisional"]
    assert "none of 6 answers" in head["provisional"]
    lost = {loss["what"]: (loss["count"], loss["of"]) for loss in head["losses"]}
    assert lost["responses without a score"] == (6, 6)
    assert [pair for what, pair in lost.items() if what.startswith("answers: ")] == [(6, 6)]
    assert "responses not judged" in head["nothing_lost"]
    assert dict(head["sizes"])["judgments"] == 6
    assert [one["rank"] for one in head["candidates"]] == [None, None]
    block = await view.get("/run/run/block/query-0")
    odd = json.loads(gzip.decompress(block.body))["odd"]
    (why,) = {why for *_, why in odd}
    assert why in head["provisional"]
    assert (await view.get("/run/run/")).status == 200


async def test_run_before_its_first_judgment_is_shown(tmp_path: Path, viewing: Viewing) -> None:
    """After `rocketeval run --only checklist`, there is a page without figures."""
    run = Run(make_config(tmp_path), judge=ScriptedEngine(prefer_left))
    await run.to_checklists()
    view = await viewing(tmp_path / "runs" / "run", quiet=0.0)
    head = await view.json("/run/run/head.json")
    assert (head["live"]["done"], head["live"]["total"]) == (0, 6)
    assert head["live"]["state"] == "paused"
    assert "0 of 6 responses judged so far" in head["provisional"]
    assert sorted(one["name"] for one in head["candidates"]) == ["left", "right"]
    assert all(one["rank"] is None for one in head["candidates"])
    lost = {loss["what"]: loss["count"] for loss in head["losses"]}
    assert (lost["responses without a score"], lost["responses not judged"]) == (6, 6)
    assert not [what for what in head["nothing_lost"] if what.startswith("answers:")]
    assert (await view.get("/run/run/")).status == 200
    assert (await view.get("/run/run/block/queries")).status == 200


async def test_run_before_its_audit_shows_final_ranks(tmp_path: Path, viewing: Viewing) -> None:
    """The page shows the ranking of `rocketeval run --only rank`."""
    run = Run(make_config(tmp_path, scorer={"kind": "hard"}), judge=ScriptedEngine(prefer_left))
    await run.to_judgments()
    run.score()
    ranking = run.rank()
    view = await viewing(tmp_path / "runs" / "run", quiet=0.0)
    head = await view.json("/run/run/head.json")
    assert (head["live"]["state"], head["live"]["stage"]) == ("paused", "audit")
    assert head["provisional"].startswith("Scores and ranks are final")
    assert [one["score"]["value"] for one in head["candidates"]] == [
        row.mean_score.value for row in ranking.rows
    ]
    assert (dict(head["sizes"])["judgments"], head["scorer"]) == (6, "hard")
    assert "responses not judged" in head["nothing_lost"]


def test_figures_can_be_computed_while_the_ledger_grows(tmp_path: Path) -> None:
    """While another thread writes, every snapshot is complete."""
    write_many(tmp_path / "benchmark")
    config = make_config(tmp_path)
    asyncio.run(stop_after(tmp_path, 3))
    config = config.model_copy(update={"judge": config.judge.model_copy(update={"concurrency": 1})})
    engine = ScriptedEngine(prefer_left, delay=0.002)
    writing = threading.Thread(target=rocketeval.run, args=(config,), kwargs={"judge": engine})
    writing.start()
    store, seen = RunStore(config.run_path), []
    while writing.is_alive():
        figures = provisional_figures(RunStore(store.path))
        seen.append(figures.words(True))
        for name in ("queries", "scores", "answers", "items", "pairs", "query-0"):
            figures.source.block(name)
    writing.join()
    assert len(set(seen)) > 1


async def test_changed_response_is_not_counted_as_judged(tmp_path: Path) -> None:
    """Judgments of texts that are no longer in the benchmark do not count as progress."""
    await asyncio.to_thread(
        rocketeval.run, make_config(tmp_path), judge=ScriptedEngine(prefer_left)
    )
    left = tmp_path / "benchmark" / "responses" / "left.jsonl"
    left.write_text(left.read_text().replace("left explains", "left tells"))
    await Run(make_config(tmp_path), judge=ScriptedEngine(prefer_left)).to_checklists()
    progress = ProgressMeter(tmp_path / "runs" / "run", quiet=0.0).look()
    assert (progress.state, progress.done, progress.total) == ("paused", 3, 6)


def test_rate_is_that_of_the_last_minute(tmp_path: Path) -> None:
    """Old samples do not count, and an unknown rate is None."""
    now = [0.0]
    meter = ProgressMeter(tmp_path, clock=lambda: now[0])
    assert meter._rate(0) is None
    now[0] = 10.0
    assert meter._rate(100) == 10.0
    now[0] = 65.0
    assert meter._rate(155) == pytest.approx(1.0)
    now[0] = 200.0
    assert meter._rate(155) is None


async def stop_after(folder: Path, judged: int, **changes: Any) -> None:
    """Run until this many responses are judged, then stop."""
    config = make_config(folder, **changes)
    config = config.model_copy(update={"judge": config.judge.model_copy(update={"concurrency": 1})})
    run = Run(config, judge=ScriptedEngine(prefer_left, delay=0.001))

    class StopAfter(rocketeval.Observer):
        seen = 0

        def judged(self, judgment: rocketeval.Judgment) -> None:
            self.seen += 1
            if self.seen == judged:
                run.stop.set()

    run.observer = StopAfter()
    with pytest.raises(Stopped):
        await run.all()
