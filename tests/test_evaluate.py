"""`rocketeval.evaluate`: frames and lists in, records and tables out."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import rocketeval
from rocketeval import ScriptedEngine, evaluate, evaluate_async
from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.evaluation import ProgressLine, snapshot
from rocketeval.gate.pytest_plugin import describe
from rocketeval.results import ReportFrame
from support.data_files import PEERS
from support.needs import need

QUESTIONS = ("What is 1?", "And what is 2?", "What about 3?")
ITEMS = ["Is it good?", "Is it short?"]


def rows() -> list[dict[str, Any]]:
    """Return the responses of a good and a bad version to three questions."""
    return [
        {"question": text, "version": version, "output": f"{version} says {text}"}
        for version in ("good", "bad")
        for text in QUESTIONS
    ]


def judge(calls: list[str] | None = None) -> ScriptedEngine:
    """Return a judge that prefers the good version."""

    def p_yes(prefix: str, item: str) -> float:
        if calls is not None:
            calls.append(item)
        return 0.9 if "good says" in prefix else 0.2

    return ScriptedEngine(p_yes)


FRAMES = {
    "list": rows,
    "generator": lambda: (row for row in rows()),
    "pandas": lambda: pd.DataFrame(rows()),
    "pyarrow": lambda: pa.Table.from_pylist(rows()),
    "wide": lambda: [
        {"question": text, "output_good": f"good says {text}", "output_bad": f"bad says {text}"}
        for text in QUESTIONS
    ],
    "mixed pandas": lambda: pd.DataFrame({**pd.DataFrame(rows()), "extra": [1, "x", None] * 2}),
}


@pytest.mark.parametrize("name", FRAMES)
def test_frames_are_ranked(name: str) -> None:
    """Lists, pandas and pyarrow, long and wide, give the same ranking, scores and answers."""
    result = evaluate(FRAMES[name](), judge=judge(), checklists=ITEMS)
    assert [row.candidate for row in result.ranking] == ["good", "bad"]
    assert {round(row.score, 6) for row in result.scores if row.score} == {9.1, 2.8}
    assert len(result.answers) == 12
    assert result.answers[0].item_text == ITEMS[0]
    assert "unchecked judge" in result.verdict


def test_polars_frames() -> None:
    """A polars frame is read through Arrow, and tables convert to polars."""
    need("polars", "polars is not installed", in_ci=False)
    import polars

    result = evaluate(polars.DataFrame(rows()), judge=judge(), checklists=ITEMS)
    assert result.scores.to_polars().height == 6


def test_frames_without_a_package() -> None:
    """Any object that exports Arrow is a frame."""

    class Stream:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return pa.Table.from_pylist(rows()).__arrow_c_stream__(requested_schema)

    result = evaluate(Stream(), judge=judge(), checklists=ITEMS)
    assert len(result.scores) == 6


def test_results_convert() -> None:
    """Records, slices, pandas and Arrow agree; HTML escapes text of responses."""
    result = evaluate(rows(), judge=judge(), checklists=["Is <b>it</b> good?"])
    frame = result.scores.to_pandas()
    assert list(frame["score"]) == [row.score for row in result.scores]
    assert result.ranking.to_arrow().num_rows == 2
    assert [row.rank for row in result.ranking[:2]] == [1, 2]
    assert pa.table(result.scores).num_rows == 6
    assert "&lt;b&gt;" in result.answers._repr_html_()
    assert "good" in result._repr_html_()
    assert "good" in repr(result)
    with pytest.raises(IndexError):
        result.ranking[2]


def test_skipped_rows_are_said() -> None:
    """A row without a response is counted and named, in text and in HTML."""
    given = [*rows(), {"question": "And 4?", "version": "good", "output": None}]
    result = evaluate(given, judge=judge(), checklists=ITEMS)
    assert any("skipped 1 row: no response (data.jsonl:7)" in note for note in result.notes)
    assert "skipped 1 row" in repr(result)
    assert "skipped 1 row" in result._repr_html_()
    assert evaluate(rows(), judge=judge(), checklists=ITEMS).notes == ()


def test_printed_texts_do_not_steer_the_terminal() -> None:
    """Escape sequences and line breaks in names and responses are shown as marks."""
    given = [{**row, "version": f"{row['version']}\x1b[2J"} for row in rows()]
    assert "\x1b" not in repr(evaluate(given, judge=judge(), checklists=ITEMS))
    named = [{**row, "version": f"{row['version']}\u3000B\xa0C"} for row in rows()]
    assert "good\u3000B\xa0C" in repr(evaluate(named, judge=judge(), checklists=ITEMS))
    with rocketeval.Grader(judge()) as grader:
        told = describe(grader.grade("1?", "\x1b]0;title\x07bad", ITEMS))
    assert "title" in told
    assert not {"\x1b", "\x07"} & {*told}


def test_printed_result_names_ranks_that_mean_scores_contradict() -> None:
    """Many narrow wins outrank a few large ones; the printed result says so."""
    rows = [
        {"question": f"{n}?", "model": name, "output": f"{name} {'low' if large else 'close'}"}
        for n, large in enumerate([True] * 9 + [False] * 11)
        for name in ("narrow", "large")
    ]
    chances = {"narrow low": 0.1, "large low": 0.9, "narrow close": 0.6, "large close": 0.5}

    def p_yes(prefix: str, item: str) -> float:
        return next(p for words, p in chances.items() if words in prefix)

    result = evaluate(rows, judge=ScriptedEngine(p_yes), checklists=["Fine?"], progress=False)
    for shown in (repr(result), result._repr_html_()):
        assert "the order by mean score differs" in shown
        assert "narrow is ranked above large, but the mean score of large" in shown


def test_compare_audit_and_report() -> None:
    """A result compares candidates, audits labels, and shows its report in a frame."""
    labeled = [{**row, "score": 9 if row["version"] == "good" else 2} for row in rows()]
    result = evaluate(labeled, judge=judge(), checklists=ITEMS)
    assert result.compare("good", "bad").effect.value > 0
    assert result.audit().has_gold
    assert "<iframe" in ReportFrame(result.outcome.report)._repr_html_()


def test_temporary_runs_end_and_named_ones_continue(tmp_path: Path) -> None:
    """Without a name, the folder goes with the result; with one, nothing is asked twice."""
    result = evaluate(rows(), judge=judge(), checklists=ITEMS)
    path = result.path
    assert path.exists()
    kept = result.keep(tmp_path / "kept")
    del result
    assert not path.exists()
    assert (kept / "scores.parquet").exists()
    asked: list[str] = []
    for _ in range(2):
        named = evaluate(rows(), judge=judge(asked), checklists=ITEMS, name="demo", output=tmp_path)
    assert named.path == tmp_path / "demo"
    assert len(asked) == 12
    more = [*rows(), {"question": QUESTIONS[0], "version": "new", "output": "good says more"}]
    evaluate(more, judge=judge(asked), checklists=ITEMS, name="demo", output=tmp_path)
    assert len(asked) == 14


async def test_inside_a_running_loop() -> None:
    """Both the synchronous and the asynchronous form work where a loop runs."""
    calm = evaluate(rows(), judge=judge(), checklists=ITEMS)
    awaited = await evaluate_async(rows(), judge=judge(), checklists=ITEMS)
    both = await asyncio.gather(
        *(evaluate_async(rows(), judge=judge(), checklists=ITEMS) for _ in range(2))
    )
    assert {len(each.scores) for each in (calm, awaited, *both)} == {6}


def test_checklists_by_query_text(tmp_path: Path) -> None:
    """Checklists may be named by the text of their query; a wrong name gets the nearest."""
    own = {text: [f"Is it {n}?"] for n, text in enumerate(QUESTIONS)}
    result = evaluate(rows(), judge=judge(), checklists=own)
    assert {row.item_text for row in result.answers} == {"Is it 0?", "Is it 1?", "Is it 2?"}
    with pytest.raises(ConfigError, match=r"What is 11\?") as refused:
        evaluate(rows(), judge=judge(), checklists={**own, "What is 11?": ["?"]})
    assert "What is 1?" in refused.value.hint
    with pytest.raises(ConfigError, match="1 of 3 queries"):
        evaluate(rows(), judge=judge(), checklists=dict(list(own.items())[:2]))


def test_checklists_of_queries_with_the_same_text() -> None:
    """A text means every query that has it; an id means one query, wherever it appears."""
    given = [
        {"query_id": name, "question": "And then?", "version": "good", "output": "x"}
        for name in ("a", "b", "c")
    ]
    own = {"b": ["Is it b?"], "And then?": ["Is it any?"], "c": ["Is it c?"]}
    result = evaluate(given, judge=judge(), checklists=own)
    asked = {row.query_id: row.item_text for row in result.answers}
    assert asked == {"a": "Is it any?", "b": "Is it b?", "c": "Is it c?"}


def test_config_adds_to_the_sections_of_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings of benchmark, judge and author are kept together with those that arguments set."""
    monkeypatch.chdir(tmp_path)
    given = [{"query_id": row["question"][-2], **row} for row in rows()]
    label = {"query_id": "1", "candidate": "good", "value": 7}
    Path("labels.jsonl").write_text(json.dumps(label), encoding="utf-8")
    Path("ids.txt").write_text("1\n2\n", encoding="utf-8")
    config: dict[str, Any] = {
        "benchmark": {
            "collected": "labels.jsonl",
            "queries": "ids.txt",
            "candidates": ["good"],
            "options": {"columns": {"category": "version"}},
        },
        "judge": {"datamarking": True, "concurrency": 2},
        "author": {"options": {"reference": True}, "max_items": 20},
    }
    with pytest.raises(ConfigError, match=r"config\.benchmark\.options\.columns"):
        evaluate(given, judge=judge(), checklists=ITEMS, config=config)
    del config["benchmark"]["options"]
    seen: list[str] = []
    engine = ScriptedEngine(lambda prefix, item: seen.append(prefix) or 0.5)
    settings = evaluate(given, judge=engine, checklists=ITEMS, config=config).run.config
    assert settings.benchmark.collected == tmp_path / "labels.jsonl"
    assert settings.benchmark.queries == tmp_path / "ids.txt"
    assert len(seen) == 4
    assert all("good^says" in prompt for prompt in seen)
    assert settings.judge.concurrency == 2
    assert settings.author.options == {"items": ITEMS, "reference": True}
    assert settings.author.max_items == 20
    named = rocketeval.Judge("m", engine="scripted", concurrency=3)
    found = evaluate(rows(), judge=named, checklists=ITEMS, config={"judge": {"canaries": 0.5}})
    kept = found.run.config.judge
    assert (kept.model, kept.engine, kept.concurrency, kept.canaries) == ("m", "scripted", 3, 0.5)


def test_config_may_name_the_author() -> None:
    """Without arguments for the checklists, the author is that of the config."""
    author = {"kind": "fixed", "options": {"items": ITEMS}}
    result = evaluate(rows(), judge=judge(), config={"author": author})
    assert {row.item_text for row in result.answers} == {*ITEMS}


def test_checklists_in_the_data_and_from_a_file() -> None:
    """A column of the data, or a promptfoo file's rubrics, are used as they are."""
    given = [{**row, "checklist": ITEMS} for row in rows()]
    assert (
        len(
            evaluate(
                given,
                judge=judge(),
            ).answers
        )
        == 12
    )
    result = evaluate(PEERS / "promptfoo" / "results.json", judge=judge())
    assert len(result.ranking) == 4


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"checklists": None}, "no checklists"),
        ({"data": 7}, "type int"),
        ({"data": "nowhere.csv"}, "nowhere.csv"),
        ({"data": []}, "no rows"),
        ({"data": [1, 2]}, "not dicts"),
        ({"data": {"a": [1]}}, "type dict"),
        ({"data": [{"ask": "1?", "output": "x"}]}, "no column looks like the query"),
        ({"columns": {"qurey": "question"}}, "qurey"),
        ({"columns": {"query": "questionn"}}, "questionn"),
        ({"checklists": ""}, "checklist file"),
        ({"checklists": [1]}, "item 1"),
        ({"checklists": ["Is it?", {"text": "Is it?", "wait": 2}]}, "unknown field 'wait'"),
        ({"checklists": "nowhere.yaml"}, "nowhere.yaml"),
        ({"base_url": "http://127.0.0.1:1/v1"}, "base_url"),
        ({"author": "x"}, "not both"),
        ({"data": [{"question": object(), "output": "x"}]}, "Row 1"),
        ({"bad_rows": "ignore"}, "bad_rows"),
        ({"name": "a/b"}, "plain folder name"),
        ({"candidates": "output"}, "a list of columns"),
        ({"data": [*rows(), "x"]}, "Row 7 of the data is of type str"),
        (
            {"data": pd.DataFrame([["1?", "a", "b"]], columns=["question", "output", "output"])},
            "two columns named 'output'",
        ),
        ({"checklists": "Is it good?"}, 'For one item, give a list: ["Is it good?"]'),
        ({"data": [{"ask": "1?", "output": "x"}]}, 'columns={"query": "COLUMN"}'),
        (
            {"data": [{"question": "1?", "he said": "x", "she said": "y"}]},
            'candidates=["he said", "she said"]',
        ),
        ({"data": [{"question": "", "output": "x"}]}, 'bad_rows="skip"'),
        (
            {"data": PEERS / "inspect_json" / "good.json", "columns": {"query": "x"}},
            'Drop `columns` and `candidates`, or add format="table".',
        ),
        ({"data": PEERS / "long.csv", "format": "rocketeval"}, "Drop `format`."),
        ({"config": {"name": "x"}}, "`config.name` is decided by the argument `name`"),
        ({"config": {"output": "x"}}, "argument `output`"),
        ({"config": {"until": "best"}, "until": "top:1"}, "argument `until`"),
        ({"config": {"benchmark": {"path": "x"}}}, "argument `data`"),
        ({"config": {"benchmark": {"kind": "table"}}}, "argument `format`"),
        ({"config": {"benchmark": {"limit": 1}}}, "argument `limit`"),
        ({"config": {"benchmark": {"options": {"split": "x"}}}}, "argument `data`"),
        ({"config": {"judge": {"model": "x"}}}, "argument `judge`"),
        ({"config": {"judge": {"timeout": 5}}}, "`config.judge.timeout`"),
        ({"config": {"judge": {"datamarkin": True}}}, "Did you mean 'datamarking'?"),
        (
            {"config": {"judge": {"base_url": "x"}}, "judge": "m"},
            "`config.judge.base_url` is decided by the argument `base_url`",
        ),
        ({"config": {"author": {"kind": "imported"}}}, "argument `checklists`"),
        ({"config": {"author": {"options": {"items": ["?"]}}}}, "argument `checklists`"),
        ({"config": {"author": {"engine": {"model": "x"}}}}, "argument `author`"),
        ({"config": {"judge": "m"}}, "`config.judge` must be a mapping"),
        ({"config": "run.yaml"}, "`config` must be a mapping"),
    ],
)
def test_mistakes_are_explained(change: dict[str, Any], words: str, tmp_path: Path) -> None:
    """A mistake is a RocketEvalError that names it, never another exception."""
    given: dict[str, Any] = {"data": rows(), "judge": judge(), "checklists": ITEMS, **change}
    with pytest.raises(RocketEvalError) as refused:
        evaluate(given.pop("data"), output=tmp_path, **given)
    assert words in str(refused.value)


async def test_judge_answers_single_questions() -> None:
    """A judge object answers without a run, scores on a scale, and can be shared."""
    shared = rocketeval.Judge(engine=judge())
    answers = await shared.answers("What is 1?", "good says 1", ITEMS)
    assert [answer.p_yes for answer in answers] == [0.9, 0.9]
    assert await shared.score("What is 1?", "bad", ITEMS, scale=(0, 1)) == pytest.approx(0.2)
    result = await evaluate_async(rows(), judge=shared, checklists=ITEMS)
    assert result.ranking[0].candidate == "good"
    with pytest.raises(ConfigError):
        rocketeval.Judge()
    with pytest.raises(ConfigError, match="checklist"):
        await shared.answers("q", "r", "Is it a text?")


RUBRIC: list[str | dict[str, object]] = [
    {"text": "Is it good?", "weight": 3},
    {"text": "Is it rude?", "weight": -1},
    {"text": "How clear is it?", "levels": ["unclear", "fine", "clear"]},
    {"text": "Has at most 2 words", "check": {"fn": "words", "args": {"max": 2}}, "weight": 2},
]


def test_rubrics_in_python() -> None:
    """Weights, penalties, levels and checks are items like any other, for all or by query."""
    for checklists in (RUBRIC, dict.fromkeys(QUESTIONS, RUBRIC)):
        result = evaluate(rows(), judge=judge(), checklists=checklists, progress=False)
        assert [row.candidate for row in result.ranking] == ["good", "bad"]


def test_contexts_are_shown_to_the_judge() -> None:
    """A column of contexts is shown for every item."""
    seen: list[str] = []

    def p_yes(prefix: str, item: str) -> float:
        seen.append(prefix + item)
        return 0.5

    given = [{**row, "context": ["Berlin is a city."]} for row in rows()]
    evaluate(given, judge=ScriptedEngine(p_yes), checklists=ITEMS, progress=False)
    assert seen
    assert all("Berlin is a city." in prompt for prompt in seen)


async def test_judge_scores_a_rubric_by_its_weights() -> None:
    """Code decides the check; weights and the penalty enter the mean."""
    one = rocketeval.Judge(engine=ScriptedEngine(lambda prefix, item: 0.5))
    items: list[str | dict[str, object]] = [*RUBRIC[:2], RUBRIC[3]]
    short, long = [
        await one.score("What?", text, items, scale=(0.0, 1.0))
        for text in ("Two words", "These are more than two")
    ]
    assert (short, long) == (pytest.approx(4 / 6), pytest.approx(2 / 6))


async def test_judge_over_http() -> None:
    """A judge on a server is asked in whichever loop runs, and closes its connections."""
    from fakes.openai_server import MODEL, FakeOpenAI, serving

    async with serving(FakeOpenAI()) as server:
        async with rocketeval.Judge(MODEL, server.base_url) as served:
            answers = await served.answers("What is 1?", "It is 1.", ITEMS)
        assert [answer.status for answer in answers] == ["ok", "ok"]


def test_progress_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    """A terminal's line is rewritten and removed; a notebook's display is updated in place."""
    evaluate(rows(), judge=judge(), checklists=ITEMS, progress=ProgressLine())
    written = capsys.readouterr().err
    assert "grade 6 of 6" in written
    assert "\n" not in written
    assert written.endswith("\r")
    shown: list[str] = []

    class Display:
        def update(self, data: dict[str, str], *, raw: bool) -> None:
            shown.append(data["text/plain"])

    evaluate(rows(), judge=judge(), checklists=ITEMS, progress=ProgressLine(Display()))
    assert "rocketeval: grade 6 of 6" in shown
    assert shown[-1] == ""
    assert capsys.readouterr().err == ""


def test_snapshot_formats(tmp_path: Path) -> None:
    """Frames are kept as Parquet, rows as JSON lines; only one of them stays."""
    assert snapshot(pd.DataFrame(rows()), tmp_path).name == "data.parquet"
    assert snapshot(rows(), tmp_path).name == "data.jsonl"
    assert [path.name for path in tmp_path.iterdir()] == ["data.jsonl"]


def test_help_is_a_tutorial() -> None:
    """help(rocketeval) explains frames, results, kept runs and judges."""
    done = subprocess.run(
        [sys.executable, "-c", "help(__import__('rocketeval'))"],
        capture_output=True,
        text=True,
        check=True,
    )
    for words in ("Rank what a data frame holds", "result.compare", "await judge.answers"):
        assert words in done.stdout


def test_pairs_in_memory_are_votes() -> None:
    """Rows of chosen and rejected responses are detected as in a file, with their votes."""
    pairs = [{"prompt": f"{n}?", "chosen": f"good says {n}", "rejected": "no"} for n in range(3)]
    result = evaluate(pairs, judge=judge(), checklists=ITEMS)
    assert result.audit().has_gold
    assert result.data.parts["vote"] == "the chosen response wins"


def test_result_says_how_data_was_read() -> None:
    """The mapping is part of the result, its text and its HTML."""
    result = evaluate(rows(), judge=judge(), checklists=ITEMS)
    assert result.data.parts["candidate"] == "column 'version'"
    assert "6 rows, 2 candidates, 3 queries" in repr(result)
    assert "column &#x27;question&#x27;" in result._repr_html_()


def test_report_outlives_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """A frame keeps its folder; a browser gets a copy that stays."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    frame = evaluate(rows(), judge=judge(), checklists=ITEMS).show()
    assert "<iframe" in frame._repr_html_()
    del frame
    copy = Path(opened[0].removeprefix("file://"))
    assert copy.is_file()
    shutil.rmtree(copy.parent)


def test_a_failed_call_keeps_the_snapshot(tmp_path: Path) -> None:
    """Data that cannot be written does not replace what a named run has."""
    evaluate(rows(), judge=judge(), checklists=ITEMS, name="w", output=tmp_path)
    before = (tmp_path / "w" / "data.jsonl").read_bytes()
    bad = [*rows()[:1], {"question": "x", "version": "good", "output": object()}]
    with pytest.raises(ConfigError):
        evaluate(bad, judge=judge(), checklists=ITEMS, name="w", output=tmp_path)
    assert (tmp_path / "w" / "data.jsonl").read_bytes() == before
    assert not list((tmp_path / "w").glob(".data*"))


def test_configs_and_dataset_names(tmp_path: Path) -> None:
    """A config is refused with the right function; hf: names a dataset."""
    path = tmp_path / "cfg.yaml"
    path.write_text("benchmark: {path: x}\n")
    with pytest.raises(ConfigError, match="is a config") as refused:
        evaluate(path, judge=judge(), checklists=ITEMS)
    assert f'rocketeval.run("{path}")' in refused.value.hint
    if find_spec("datasets") is None:
        with pytest.raises(RocketEvalError, match="needs the package datasets"):
            evaluate("hf:some/name", judge=judge(), checklists=ITEMS)


def test_labels_that_are_all_the_same() -> None:
    """One label value gives a scale that contains it, as the command line does."""
    result = evaluate([{**row, "score": 50} for row in rows()], judge=judge(), checklists=ITEMS)
    assert result.run.config.scorer.scale == (0.0, 100.0)
