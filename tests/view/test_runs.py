"""The list of runs: grouped by queries, newest first, robust to damaged folders."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from rocketeval.errors import StoreError
from rocketeval.store.files import write_json
from rocketeval.store.run import RunStore
from rocketeval.view import run_list
from rocketeval.view.catalog import MOST_OPEN, find_target
from support.make import write_benchmark
from support.viewing import View, Viewing, files_of, finish


async def lines(view: View) -> dict[str, dict[str, Any]]:
    """Return the list entries by name."""
    return {line["name"]: line for line in (await view.json("/runs.json"))["runs"]}


def backdate(path: Path, created: str) -> None:
    """Change the creation time of a run."""
    manifest = json.loads((path / "manifest.json").read_text())
    write_json(path / "manifest.json", {**manifest, "created": created})


async def test_list_entry_of_a_run(tmp_path: Path, viewing: Viewing) -> None:
    """An entry has judge, method, scorer, sizes, cost and ranking."""
    price = {"prompt": 1.0, "completion": 1.0, "currency": "USD"}
    judge = {"engine": "scripted", "model": "scripted", "price": price}
    finish(tmp_path, "one", judge=judge)
    finish(tmp_path, "two")
    view = await viewing(tmp_path / "runs")
    assert b"one" in (await view.get("/")).body
    found = await lines(view)
    one = found["one"]
    expected = f"{tmp_path.name}/benchmark"
    assert (await view.json("/run/one/head.json"))["benchmark"] == expected
    assert one["at"] == "run/one/"
    assert (one["state"], one["why"], one["done"], one["total"]) == ("finished", "", 6, 6)
    assert (one["judge"], one["method"], one["scorer"]) == ("scripted", "checklist", "mean")
    assert (one["queries"], one["candidates"]) == (3, 2)
    assert one["benchmark"] == found["two"]["benchmark"] == expected
    assert one["prompt_tokens"] > 0
    assert one["cost"] > 0
    assert (one["currency"], found["two"]["cost"]) == ("USD", None)
    assert [row["name"] for row in one["ranking"]] == ["left", "right"]
    assert one["ranking"][0]["score"]["value"] == pytest.approx(9.1)
    assert one["trust"] is None or one["trust"]["title"]
    assert (await view.get("/run/two/")).status == 200
    assert (await view.json("/run/two/head.json"))["index_at"] == "../../"


async def test_runs_are_grouped_by_their_queries(tmp_path: Path, viewing: Viewing) -> None:
    """Equal queries are one benchmark, in any folder; others get a different name."""
    backdate(finish(tmp_path, "old"), "2024-01-01T00:00:00+00:00")
    copy = shutil.copytree(tmp_path / "benchmark", tmp_path / "copy")
    finish(tmp_path, "new", benchmark={"path": str(copy)})
    other = write_benchmark(tmp_path / "more" / "copy")
    queries = (other / "queries.jsonl").read_text().replace("Why", "How")
    (other / "queries.jsonl").write_text(queries)
    backdate(finish(tmp_path, "other", benchmark={"path": str(other)}), "2023-01-01T00:00:00+00:00")
    view = await viewing(tmp_path / "runs")
    listed = (await view.json("/runs.json"))["runs"]
    assert [line["name"] for line in listed] == ["new", "old", "other"]
    new, old, other_line = (line["benchmark"] for line in listed)
    assert new == old
    assert new != other_line
    assert new.startswith("copy [")
    assert other_line.startswith("copy [")


async def test_runs_created_at_the_same_time_are_ordered_by_name(
    tmp_path: Path, viewing: Viewing
) -> None:
    """Numbers in names count by value, in the list and among the baselines; v10 is the newest."""
    for name in ("v10", "v1", "v2"):
        backdate(finish(tmp_path, name), "2024-01-01T00:00:00+00:00")
    backdate(finish(tmp_path, "a-later"), "2024-01-01T00:00:00.001+00:00")
    view = await viewing(tmp_path / "runs")
    listed = (await view.json("/runs.json"))["runs"]
    assert [line["name"] for line in listed] == ["a-later", "v10", "v2", "v1"]
    baselines = await view.json("/run/a-later/baselines.json")
    assert [each["name"] for each in baselines] == ["v10", "v2", "v1"]


async def test_runs_without_known_queries_join_no_group(tmp_path: Path, viewing: Viewing) -> None:
    """Runs that are not loaded, and damaged ones, are not grouped with others."""
    finish(tmp_path, "good")
    unloaded = finish(tmp_path, "unloaded")
    manifest = json.loads((unloaded / "manifest.json").read_text())
    del manifest["stages"]["load"]
    write_json(unloaded / "manifest.json", manifest)
    torn = shutil.copytree(unloaded, tmp_path / "runs" / "torn")
    (torn / "run.yaml").unlink()
    found = await lines(await viewing(tmp_path / "runs"))
    name = f"{tmp_path.name}/benchmark"
    assert {run: line["benchmark"] for run, line in found.items()} == {
        "good": name,
        "unloaded": f"{name} [queries unknown]",
        "torn": "",
    }


async def test_damaged_runs_are_listed_with_a_reason(tmp_path: Path, viewing: Viewing) -> None:
    """A damaged folder has one entry with a reason; the others are unaffected."""
    good = finish(tmp_path, "good")
    runs = tmp_path / "runs"
    damage = {
        "torn": ("manifest.json", '{"run_id": '),
        "foreign": ("manifest.json", '{"name": "An extension", "version": 2}'),
        "list": ("manifest.json", "[1, 2]"),
        "noyaml": ("run.yaml", None),
        "nomanifest": ("manifest.json", None),
        "badyaml": ("run.yaml", "a: [b"),
        "noinputs": ("inputs/summary.json", None),
        "badranking": ("ranking.json", '{"rows": 3}'),
        "deepyaml": ("run.yaml", "[" * 1000 + "]" * 1000),
    }
    for name, (file, content) in damage.items():
        path = shutil.copytree(good, runs / name) / file
        path.unlink() if content is None else path.write_text(content)
    (runs / "noinputs" / "scores.parquet").unlink()
    (runs / "notes").mkdir()
    (runs / "notes" / "readme.txt").write_text("not a run")
    view = await viewing(runs)
    found = await lines(view)
    assert set(found) == {"good", *damage}
    assert found["good"]["state"] == "finished"
    for name in damage:
        assert found[name]["state"] == "damaged", name
        assert found[name]["why"], name
        page = await view.get(f"/run/{name}/")
        if name not in ("foreign", "noyaml"):
            assert page.status == 500, name
        assert b"Traceback" not in page.body
        assert b"Internal Server Error" not in page.body, name
    assert (await view.get("/")).status == 200
    assert (await view.get("/run/good/")).status == 200
    assert (await view.get("/run/notes/")).status == 404


async def test_runs_one_level_down_are_found_and_runs_inside_runs_are_not(
    tmp_path: Path, viewing: Viewing
) -> None:
    """Methods inside a run, hidden folders and caches are not listed."""
    good = finish(tmp_path, "good")
    runs = tmp_path / "runs"
    shutil.copytree(good, runs / "good" / "methods" / "direct")
    shutil.copytree(good, runs / "week 1" / "good")
    shutil.copytree(good, runs / "week 2" / "good")
    shutil.copytree(good, runs / "deep" / "deeper" / "good")
    shutil.copytree(good, runs / ".hidden")
    view = await viewing(runs)
    listed = (await view.json("/runs.json"))["runs"]
    assert [line["name"] for line in listed] == ["good"] * 3
    places = {line["at"] for line in listed}
    assert len(places) == 3
    for place in places:
        assert (await view.get(f"/{place}")).status == 200


async def test_new_run_changes_the_version(tmp_path: Path, viewing: Viewing) -> None:
    """The version of the list changes if and only if the list does."""
    runs = tmp_path / "runs"
    runs.mkdir()
    view = await viewing(runs)
    empty = await view.json("/pulse.json")
    assert (await view.get("/")).status == 200
    finish(tmp_path, "one")
    one = await view.json("/pulse.json")
    assert one != empty
    assert await view.json("/pulse.json") == one
    assert (await view.get("/")).status == 302
    finish(tmp_path, "two")
    assert await view.json("/pulse.json") != one


async def test_only_recently_viewed_runs_stay_in_memory(tmp_path: Path, viewing: Viewing) -> None:
    """The cache is limited when many runs are opened."""
    good = finish(tmp_path, "run-0")
    names = [f"run-{n}" for n in range(MOST_OPEN + 3)]
    for name in names[1:]:
        shutil.copytree(good, tmp_path / "runs" / name)
    view = await viewing(tmp_path / "runs")
    for name in [*names, *names]:
        assert (await view.get(f"/run/{name}/")).status == 200
    assert len(view.shelf._open) == MOST_OPEN


async def test_unchanged_runs_are_read_once(
    tmp_path: Path, viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list reads the results of a run again only after they changed, and writes nothing."""
    good = finish(tmp_path, "run-000")
    for number in range(1, 40):
        shutil.copytree(good, tmp_path / "runs" / f"run-{number:03d}")
    before = files_of(tmp_path)
    read: list[str] = []

    def count(store: RunStore) -> tuple[str, run_list.RunLine]:
        read.append(store.path.name)
        return original(store)

    original = run_list._read
    monkeypatch.setattr(run_list, "_read", count)
    view = await viewing(tmp_path / "runs")
    for _ in range(2):
        assert len((await view.json("/runs.json"))["runs"]) == 40
    assert len(read) == len(set(read)) == 40
    assert files_of(tmp_path) == before
    backdate(good, "2024-01-01T00:00:00+00:00")
    await view.json("/runs.json")
    assert read[40:] == ["run-000"]


def test_find_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A target is a config, a run or a folder; the default is rocketeval.yaml or ./runs."""
    path = finish(tmp_path)
    monkeypatch.chdir(tmp_path)
    assert find_target(path).alone
    assert not find_target(tmp_path / "runs").alone
    assert find_target(None).folder == tmp_path / "runs"
    config = tmp_path / "rocketeval.yaml"
    config.write_text("name: other\nbenchmark: {path: benchmark}\njudge: {model: m}\n")
    target = find_target(None)
    assert (target.folder, target.alone) == (tmp_path / "runs" / "other", True)
    assert target.runs() == {}
    assert target.command == "rocketeval run rocketeval.yaml"
    with pytest.raises(StoreError, match="does not exist"):
        find_target(tmp_path / "nothing")


async def test_changes_since_a_baseline(tmp_path: Path, viewing: Viewing) -> None:
    """Baselines with reasons, the diff, and one response; unknown names are not found."""
    finish(tmp_path, "old")
    finish(tmp_path, "new")
    finish(tmp_path, "hard", scorer={"kind": "hard"})
    view = await viewing(tmp_path / "runs")
    usable, other = await view.json("/run/new/baselines.json")
    assert (usable["slug"], usable["why"]) == ("old", "")
    assert other["slug"] == "hard"
    assert "another scorer" in other["why"]
    page = await view.json("/run/new/diff.json?base=old")
    assert (page["refused"], len(page["candidates"]), page["changes"]) == ("", 2, [])
    assert "another scorer" in (await view.json("/run/new/diff.json?base=hard"))["refused"]
    one = await view.json("/run/new/response.json?base=old&query=sky&candidate=left")
    assert one["before"] == one["now"]
    assert all(item["before"] == item["now"] for item in one["items"])
    for place in ("diff.json?base=no", "diff.json", "response.json?base=old&query=no"):
        assert (await view.get(f"/run/new/{place}")).status == 404
    found = await lines(view)
    assert found["new"]["series"] == found["old"]["series"] != found["hard"]["series"]
