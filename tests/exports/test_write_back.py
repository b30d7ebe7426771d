"""Scores for the tools that the data came from: readable there, and the same when written again."""

from __future__ import annotations

import gzip
import json
import math
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

import rocketeval
from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.inspect_logs import InspectLogs
from rocketeval.config import BenchmarkConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.pipeline import Run
from support.data_files import PEERS, langfuse
from support.in_process import cli
from support.make import make_config, write_jsonl


def judged(folder: Path, data: Path, *options: str) -> str:
    """Judge a data file with the scripted engine; return the name of the config."""
    cli(folder, "init", ".", "--data", str(data), "--model", "m", *options)
    config = folder / "rocketeval.yaml"
    config.write_text(config.read_text().replace("model: m\n", "model: m\n  engine: scripted\n"))
    cli(folder, "run", "-q", code=(0, 3))
    return config.name


def shares(folder: Path) -> dict[tuple[str, str], float]:
    """Return the scores of the run as shares of its scale."""
    rows = lines(next((folder / "runs").glob("*/scores.jsonl")).read_text())
    config = yaml.safe_load(next((folder / "runs").glob("*/run.yaml")).read_text())
    low, high = config["scorer"]["scale"]
    return {
        (row["query_id"], row["candidate"]): round((row["score"] - low) / (high - low), 6)
        for row in rows
    }


def lines(text: str) -> list[dict[str, Any]]:
    """Return JSON lines as objects."""
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("name", ["inspect", "inspect_json"])
def test_inspect_logs_get_scores(name: str, tmp_path: Path) -> None:
    """Every sample of the copy has the run's score; its own scores stay; writing again is equal."""
    judged(tmp_path, PEERS / name, "--checklist", "general")
    cli(tmp_path, "export", "--to", "inspect", "-o", "back")
    copies = sorted(path for path in (tmp_path / "back").iterdir() if path.name != "export.json")
    first = [path.read_bytes() for path in copies]
    cli(tmp_path, "export", "--to", "inspect", "-o", "back", "--force")
    assert [path.read_bytes() for path in copies] == first
    logs = tmp_path / "logs"
    logs.mkdir()
    for path in copies:
        path.rename(logs / path.name)
    reader = open_benchmark(BenchmarkConfig(kind="inspect", path=logs))
    assert isinstance(reader, InspectLogs)
    labels = {
        (label.query_id, label.candidate): label.value
        for label in reader.labels()
        if label.labeler == "rocketeval"
    }
    assert labels == pytest.approx(shares(tmp_path))
    assert {label.labeler for label in reader.labels()} == {"includes", "rocketeval"}


def test_scores_written_twice_are_one(tmp_path: Path) -> None:
    """A log that has our score already gets a new one in its place."""
    judged(tmp_path, PEERS / "inspect_json", "--checklist", "general")
    cli(tmp_path, "export", "--to", "inspect", "-o", "back")
    log = json.loads((tmp_path / "back" / "good.json").read_text())
    assert [each["name"] for each in log["results"]["scores"]] == ["includes", "rocketeval"]
    again = tmp_path / "again"
    again.mkdir()
    (again / "good.json").write_text(json.dumps(log))
    judged(again, again / "good.json", "--checklist", "general")
    cli(again, "export", "--to", "inspect", "-o", "back")
    twice = json.loads((again / "back" / "good.json").read_text())
    assert [each["name"] for each in twice["results"]["scores"]] == ["includes", "rocketeval"]


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_numbers_that_are_none_stay_in_a_log(suffix: str, tmp_path: Path) -> None:
    """Inspect writes NaN for a metric of no samples; the copy keeps it, gzipped as the log is."""
    log = json.loads(next((PEERS / "inspect_json").glob("*.json")).read_text())
    log["results"]["scores"][0]["metrics"]["empty"] = {"name": "empty", "value": float("nan")}
    content, path = json.dumps(log).encode(), tmp_path / f"log{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith("gz") else content)
    judged(tmp_path, path, "--checklist", "general")
    cli(tmp_path, "export", "--to", "inspect", "-o", "back")
    written = (tmp_path / "back" / path.name).read_bytes()
    copy = json.loads(gzip.decompress(written) if suffix.endswith("gz") else written)
    first, own = copy["results"]["scores"]
    assert math.isnan(first["metrics"]["empty"]["value"])
    assert own["name"] == "rocketeval"


def test_langfuse_scores(tmp_path: Path) -> None:
    """One score per observation, with a stable id."""
    judged(tmp_path, langfuse(tmp_path), "--checklist", "general")
    rows = lines(cli(tmp_path, "export", "--to", "langfuse").stdout)
    assert [row["observation_id"] for row in rows] == [
        "o-small-0",
        "o-small-1",
        "o-large-0",
        "o-large-1",
    ]
    assert len({row["score_id"] for row in rows}) == 4
    assert all(0 <= row["value"] <= 1 and row["trace_id"] for row in rows)
    assert lines(cli(tmp_path, "export", "--to", "langfuse").stdout) == rows


def test_otel_and_mlflow_rows(tmp_path: Path) -> None:
    """Events carry the span and the response id; feedback carries the judge."""
    judged(tmp_path, PEERS / "otel_genai.jsonl", "--checklist", "general")
    events = lines(cli(tmp_path, "export", "--to", "otel").stdout)
    assert len(events) == 6
    assert {len(event["trace_id"]) for event in events} == {32}
    assert events[0]["attributes"]["gen_ai.response.id"] == "small-0"
    assert events[0]["attributes"]["gen_ai.evaluation.name"] == "rocketeval"
    feedback = lines(cli(tmp_path, "export", "--to", "mlflow").stdout)
    assert feedback[0]["source"] == {"source_type": "LLM_JUDGE", "source_id": "m"}
    assert feedback[0]["trace_id"] == events[0]["trace_id"]


def test_feedback_of_other_data(tmp_path: Path) -> None:
    """MLflow rows need no trace; Langfuse rows do, and say so."""
    judged(tmp_path, PEERS / "long.csv", "--checklist", "general")
    rows = lines(cli(tmp_path, "export", "--to", "mlflow").stdout)
    assert {row["metadata"]["candidate"] for row in rows} == {"prompt_a", "prompt_b"}
    refused = cli(tmp_path, "export", "--to", "langfuse", code=2)
    assert "no ids of traces" in refused.stderr
    assert "Inspect logs" in cli(tmp_path, "export", "--to", "inspect", "-o", "x", code=2).stderr


def test_only_judged_responses_get_a_score(tmp_path: Path) -> None:
    """A second response that the run refused has none, and it is counted; nor has changed data."""
    data = langfuse(tmp_path)
    rows = lines(data.read_text())
    other = {**rows[0], "id": "again", "output": {"role": "assistant", "content": "I refuse."}}
    text = "".join(json.dumps(row) + "\n" for row in (*rows, other))
    data.write_text(text)
    judged(tmp_path, data, "--checklist", "general", "--skip-bad")
    for name in ("langfuse", "mlflow"):
        done = cli(tmp_path, "export", "--to", name)
        assert len(lines(done.stdout)) == 4
        assert "again" not in done.stdout
        assert "(1): rows whose response is not the judged one" in done.stderr
    data.write_text(text.replace(" says", " said"))
    for name in ("langfuse", "mlflow"):
        refused = cli(tmp_path, "export", "--to", name, code=2)
        assert "another response than the judged one" in refused.stderr


def test_a_changed_sample_gets_no_score(tmp_path: Path) -> None:
    """A log that was made again has no scores of the former responses."""
    log = json.loads((PEERS / "inspect_json" / "good.json").read_text())
    data = tmp_path / "log.json"
    data.write_text(json.dumps(log))
    judged(tmp_path, data, "--checklist", "general")
    log["samples"][0]["output"]["completion"] = "changed"
    data.write_text(json.dumps(log))
    done = cli(tmp_path, "export", "--to", "inspect", "-o", "back")
    assert "(1): rows whose response is not the judged one" in done.stdout
    copy = json.loads((tmp_path / "back" / "log.json").read_text())
    scored = ["rocketeval" in sample["scores"] for sample in copy["samples"]]
    assert scored == [False, *[True] * (len(scored) - 1)]


def test_promptfoo_assertion(tmp_path: Path) -> None:
    """The assertion returns the score of a judged output, and fails for another."""
    judged(tmp_path, PEERS / "promptfoo" / "results.json")
    cli(tmp_path, "export", "--to", "promptfoo", "-o", "rocketeval_assert.py")
    get_assert = runpy.run_path(str(tmp_path / "rocketeval_assert.py"))["get_assert"]
    context = {"vars": {"question": "What is 2 + 2?"}, "prompt": "Answer: What is 2 + 2?"}
    found = get_assert("4", context)
    expected = shares(tmp_path)["test-1", "clever / short"]
    assert found["score"] == pytest.approx(expected)
    assert found["pass"] == (expected >= 0.5)
    assert "not judged" in get_assert("5", context)["reason"]


def test_openai_graders(tmp_path: Path) -> None:
    """A shared checklist is one grader with a label grader per item; others are one per query."""
    judged(tmp_path, PEERS / "long.csv", "--checklist", "general")
    grader = json.loads(cli(tmp_path, "export", "--to", "openai_grader").stdout)
    assert (grader["type"], len(grader["graders"])) == ("multi", 7)
    assert grader["graders"]["item_1"]["passing_labels"] == ["yes"]
    other = tmp_path / "other"
    other.mkdir()
    judged(other, PEERS / "promptfoo" / "results.json")
    several = json.loads(cli(other, "export", "--to", "openai_grader").stdout)
    assert [len(each["grader"]["graders"]) for each in several] == [2, 3, 1]
    check = several[0]["grader"]["graders"]["item_2"]
    assert (check["type"], check["operation"], check["reference"]) == (
        "string_check",
        "like",
        "Paris",
    )


def conversations(folder: Path, *lists: list[str]) -> tuple[Any, tuple[str, ...]]:
    """Return the graders of a query after other turns and of one without, and the notes."""
    before = [{"role": "user", "content": "Peru?"}, {"role": "assistant", "content": "Lima."}]
    benchmark = folder / "benchmark"
    queries = [{"id": "q1", "text": "And Chile?", "history": before}, {"id": "q2", "text": "Hi"}]
    write_jsonl(benchmark / "queries.jsonl", queries)
    write_jsonl(
        benchmark / "responses.jsonl",
        [{"query_id": q, "candidate": "a", "text": f"{q} is fine"} for q in ("q1", "q2")],
    )
    write_jsonl(
        benchmark / "checklists.jsonl",
        [{"query_id": q, "items": own} for q, own in zip(("q1", "q2"), lists, strict=True)],
    )
    config = make_config(folder)
    rocketeval.run(config, judge=ScriptedEngine())
    notes = Run(config).export("openai_grader", folder / "graders.json").notes
    return json.loads((folder / "graders.json").read_text()), notes


def test_graders_show_the_conversation(tmp_path: Path) -> None:
    """Earlier turns are above the query; a grader of a query without any is as it was."""
    (chat, plain), _ = conversations(tmp_path / "two", ["Is it right?"], ["Is it nice?"])
    assert chat["item"]["history"] == "user: Peru?\n\nassistant: Lima."
    assert "history" not in plain["item"]
    asked, other = (
        each["grader"]["graders"]["item_1"]["input"][1]["content"] for each in (chat, plain)
    )
    assert asked.index("{{ item.history }}") < asked.index("{{ item.query }}")
    assert other.startswith("Query:\n{{ item.query }}")
    shared, notes = conversations(tmp_path / "one", ["Is it right?"], ["Is it right?"])
    assert "{{ item.history }}" in shared["graders"]["item_1"]["input"][1]["content"]
    assert any("`item.history`" in note for note in notes)


RUBRIC = """\
for_all:
  items:
    - {text: "Is it right?", weight: 3}
    - {text: "Is it rude?", weight: -1}
    - {text: "How clear is it?", levels: [unclear, fine, clear]}
    - text: no apology
      check: {fn: contains, args: {text: sorry, ignore_case: true, negate: true}}
    - {text: few words, check: {fn: words, args: {max: 2}}, weight: 2}
"""


def test_graders_of_a_rubric(tmp_path: Path) -> None:
    """Weights, penalties, levels and text checks are computed; other checks are named."""
    (tmp_path / "mine.yaml").write_text(RUBRIC)
    judged(tmp_path, PEERS / "long.csv", "--checklist", "mine.yaml")
    done = cli(tmp_path, "export", "--to", "openai_grader")
    grader = json.loads(done.stdout)
    assert list(grader["graders"]) == ["item_1", "item_2", "item_3", "item_4"]
    assert grader["graders"]["item_3"]["range"] == [1, 3]
    assert grader["graders"]["item_4"]["operation"] == "ilike"
    names = {"item_1": 1, "item_2": 1, "item_3": 2, "item_4": 0}
    share = eval(grader["calculate_output"], {}, names)
    assert share == pytest.approx((3 * 1 + 0 + 0.5 + 1) / 6)
    assert "items with a check" in done.stderr


def test_promptfoo_chat_prompts(tmp_path: Path) -> None:
    """A prompt of chat messages is found by its last user message, as the reader reads it."""
    asked = [{"role": "system", "content": "Be brief"}, {"role": "user", "content": "Say: 1+1?"}]
    raw = json.dumps(asked)
    rubric = {"vars": {"q": "1+1?"}, "assert": [{"type": "llm-rubric", "value": "Is it good?"}]}
    result = {
        "promptIdx": 0, "testIdx": 0, "provider": {"id": "p"}, "prompt": {"raw": raw, "label": "x"},
        "vars": {"q": "1+1?"}, "testCase": rubric, "response": {"output": "two"}, "success": True,
        "score": 1, "gradingResult": {"componentResults": []},
    }  # fmt: skip
    data = tmp_path / "chat.json"
    data.write_text(json.dumps({"results": {"version": 3, "results": [result]}, "config": {}}))
    judged(tmp_path, data)
    cli(tmp_path, "export", "--to", "promptfoo", "-o", "rocketeval_assert.py")
    get_assert = runpy.run_path(str(tmp_path / "rocketeval_assert.py"))["get_assert"]
    found = get_assert("two", {"vars": {"q": "1+1?"}, "prompt": raw})
    assert found["namedScores"] == {"rocketeval": found["score"]}


def test_promptfoo_chats_with_one_last_message(tmp_path: Path) -> None:
    """Two chats that end alike have their own scores; another history has none."""
    chats = [
        [{"role": "user", "content": before}, {"role": "assistant", "content": "ok"},
         {"role": "user", "content": "Go on."}]
        for before in ("Tell a joke.", "Tell a much longer and very different story.")
    ]  # fmt: skip
    rubric = {"vars": {}, "assert": [{"type": "llm-rubric", "value": "Is it good?"}]}
    results = [
        {"promptIdx": 0, "testIdx": place, "provider": {"id": "p"},
         "prompt": {"raw": json.dumps(chat), "label": "x"}, "vars": {}, "testCase": rubric,
         "response": {"output": "fine"}, "success": True, "score": 1,
         "gradingResult": {"componentResults": []}}
        for place, chat in enumerate(chats)
    ]  # fmt: skip
    data = tmp_path / "chat.json"
    data.write_text(json.dumps({"results": {"version": 3, "results": results}, "config": {}}))
    judged(tmp_path, data)
    cli(tmp_path, "export", "--to", "promptfoo", "-o", "rocketeval_assert.py")
    module = runpy.run_path(str(tmp_path / "rocketeval_assert.py"))
    found = [module["get_assert"]("fine", {"prompt": json.dumps(chat)}) for chat in chats]
    expected = shares(tmp_path)
    names = sorted(expected)
    assert [one["score"] for one in found] == [pytest.approx(expected[name]) for name in names]
    assert found[0]["score"] != found[1]["score"]
    other = [{"role": "user", "content": "Sing."}, *chats[0][1:]]
    assert "not judged" in module["get_assert"]("fine", {"prompt": json.dumps(other)})["reason"]


def promptfoo_tests(path: Path, output: object, *criteria: str) -> None:
    """Write results of one prompt with one output, from a test per criterion."""
    results = [
        {"promptIdx": 0, "testIdx": place, "provider": {"id": "p"},
         "prompt": {"raw": "Capital?", "label": "x"}, "vars": {"q": "a"}, "success": True,
         "testCase": {"vars": {}, "assert": [{"type": "llm-rubric", "value": criterion}]},
         "response": {"output": output}, "score": 1, "gradingResult": {"componentResults": []}}
        for place, criterion in enumerate(criteria)
    ]  # fmt: skip
    path.write_text(json.dumps({"results": {"version": 3, "results": results}, "config": {}}))


def test_promptfoo_tests_with_one_prompt(tmp_path: Path) -> None:
    """An output that two tests judged differently has no score, is counted, and says so."""
    context = {"vars": {"q": "a"}, "prompt": "Capital?"}
    output = {"city": "Zürich"}
    for name, criteria in (("other", ("Is right", "Is long")), ("same", ("Is right", "Is right"))):
        folder = tmp_path / name
        folder.mkdir()
        promptfoo_tests(folder / "results.json", output, *criteria)
        judged(folder, folder / "results.json")
        done = cli(folder, "export", "--to", "promptfoo", "-o", "rocketeval_assert.py")
        get_assert = runpy.run_path(str(folder / "rocketeval_assert.py"))["get_assert"]
        found = get_assert(output, context)
        if name == "other":
            assert "judged this output differently" in found["reason"]
            assert (found["pass"], found["score"]) == (False, 0.0)
            assert "(1): outputs of tests with the same prompt" in done.stdout
        else:
            assert found["score"] == pytest.approx(shares(folder)["test-0", "p"])
            assert "Left out" not in done.stdout


def test_logs_of_one_name_are_not_overwritten(tmp_path: Path) -> None:
    """Copies keep their folders, so that logs of one name stay two."""
    log = json.loads((PEERS / "inspect_json" / "good.json").read_text())
    for model in ("a", "b"):
        path = tmp_path / "logs" / model / "log.json"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps({**log, "eval": {**log["eval"], "model": model}}))
    judged(tmp_path, tmp_path / "logs", "--checklist", "general")
    cli(tmp_path, "export", "--to", "inspect", "-o", "back")
    copies = {path.parent.name: json.loads(path.read_text())
              for path in (tmp_path / "back").rglob("log.json")}  # fmt: skip
    assert {name: copy["eval"]["model"] for name, copy in copies.items()} == {"a": "a", "b": "b"}
    assert all("rocketeval" in copy["samples"][0]["scores"] for copy in copies.values())
