"""Exports match the results of the run and are readable by other tools."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import rocketeval
from rocketeval.benchmarks.rocketeval import JUDGED, RocketEvalBenchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ExportError, StageMissing
from rocketeval.exports import folder as export_folder
from rocketeval.exports.formats import FORMATS, make_request
from rocketeval.exports.stage import export_stream
from rocketeval.pipeline import Run
from rocketeval.scoring.stage import read_grid
from rocketeval.stats.bradley_terry import ELO_PER_STRENGTH, fit, pair_counts, win_totals
from rocketeval.text import disarm
from support.hostile_run import ITEMS, NAMES, QUERIES
from support.make import make_config, write_benchmark, write_jsonl

RESPONSES = len(NAMES) * len(QUERIES)


def text_of(run: Run, to: str, what: str | None = None, **options: bool) -> str:
    """Return the export as text."""
    stream = io.BytesIO()
    export_stream(run.store, make_request(to, what, **options), stream)
    return stream.getvalue().decode()


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of a CSV."""
    return list(csv.DictReader(io.StringIO(text, newline="")))


def lines(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a JSONL file."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_exported_ranking_equals_ranking_csv(run: Run) -> None:
    """No candidate's name is a formula in either."""
    text = text_of(run, "csv")
    assert (run.store.path / "ranking.csv").read_bytes().decode() == text
    names = [row["candidate"] for row in rows_of(text)]
    assert sorted(names) == sorted(map(disarm, NAMES))
    assert "'=1+1" in names
    assert "'-5" in names
    assert sorted(row["candidate"] for row in rows_of(text_of(run, "csv", raw=True))) == sorted(
        NAMES
    )
    assert text_of(run, "csv", bom=True) == "\ufeff" + text


def test_scores_are_the_same_in_three_formats(run: Run, tmp_path: Path) -> None:
    """CSV, JSONL and Parquet have the run's scores, including missing ones."""
    pandas = pytest.importorskip("pandas", reason="pandas is the outside reader")
    done = run.export("parquet", tmp_path / "s.parquet")
    assert done.rows == RESPONSES
    (note,) = done.notes
    assert "without a score" in note
    assert "1." in note
    table = pandas.read_parquet(tmp_path / "s.parquet")
    own = run.store.scores().to_pandas()
    np.testing.assert_array_equal(table["score"], own["score"])
    assert table["score"].isna().sum() == 1
    assert set(table["category"].dropna()) == {"even"}
    assert set(table["judge"]) == {"a/b: judge"}
    run.export(None, tmp_path / "s.jsonl", what="scores")
    found = pandas.read_json(tmp_path / "s.jsonl", lines=True, precise_float=True)
    np.testing.assert_array_equal(found["score"], table["score"])
    rows = rows_of(text_of(run, "csv", "scores", raw=True))
    assert [float(row["score"] or "nan") for row in rows] == pytest.approx(
        table["score"].tolist(), abs=0, nan_ok=True
    )
    assert [row["candidate"] for row in rows] == table["candidate"].tolist()


def test_judgments_have_one_row_per_answer(run: Run, tmp_path: Path) -> None:
    """Responses that share a judgment each get its answers; unjudged responses are counted."""
    done = run.export("parquet", tmp_path / "j.parquet", what="judgments")
    rows = pq.read_table(tmp_path / "j.parquet").to_pylist()
    assert done.rows == len(rows) == sum(2 + n % 2 for n in range(40)) * len(NAMES) - 3
    assert list(done.left_out.values()) == [1]
    for row in rows:
        assert row["item_text"] == ITEMS[row["item"] - 1]
        assert 0 <= row["p_yes"] <= 1
    shared = {
        name: [row["p_yes"] for row in rows if (row["query_id"], row["candidate"]) == ("q00", name)]
        for name in ("plain", "org/plain")
    }
    assert shared["plain"] == shared["org/plain"]
    means = {}
    for row in rows:
        means.setdefault((row["query_id"], row["candidate"]), []).append(row["p_yes"])
    for row in run.store.scores().to_pylist():
        if row["score"] is not None:
            own = means[row["query_id"], row["candidate"]]
            assert row["score"] == pytest.approx(1 + 9 * sum(own) / len(own))
    cells = rows_of(text_of(run, "csv", "judgments"))
    assert {cell["item_text"] for cell in cells} == set(map(disarm, ITEMS))
    assert [json.loads(line) for line in text_of(run, "jsonl", "judgments").splitlines()] == rows


def test_wins_are_a_matrix_or_pairs(run: Run) -> None:
    """CSV has one row and one column per candidate; other formats have one row per pair."""
    wins = json.loads((run.store.path / "ranking.json").read_text())["wins"]
    matrix = list(csv.reader(io.StringIO(text_of(run, "csv", "wins", raw=True), newline="")))
    assert matrix[0] == ["candidate", *wins["candidates"]]
    assert [row[0] for row in matrix[1:]] == wins["candidates"]
    shares = [[None if cell == "" else float(cell) for cell in row[1:]] for row in matrix[1:]]
    assert shares == wins["shares"]
    pairs = [json.loads(line) for line in text_of(run, "jsonl", "wins").splitlines()]
    assert len(pairs) == len(NAMES) * (len(NAMES) - 1)
    place = wins["candidates"].index
    for pair in pairs:
        own = wins["shares"][place(pair["candidate"])][place(pair["opponent"])]
        assert pair["win_share"] == own


def test_the_audit_export_is_complete(run: Run) -> None:
    """Every figure of audit.json is a row; Markdown shows the main ones."""
    audit = json.loads((run.store.path / "audit.json").read_text())
    rows = {(r["section"], r["figure"]): r for r in rows_of(text_of(run, "csv", "audit"))}
    own = audit["agreement"]["judge"]["with_ties"]
    found = rows["agreement", "judge > with_ties"]
    assert [float(found[name]) for name in ("value", "low", "high")] == list(own.values())
    assert rows["agreement", "judge > votes"]["value"] == "40"
    assert len(rows) == len(rows_of(text_of(run, "csv", "audit")))
    page = text_of(run, "markdown", "audit")
    assert f"| {own['value']:.2f} (" in page
    assert "Spearman" in page


@pytest.mark.parametrize("to", ["markdown", "latex"])
@pytest.mark.parametrize("what", ["ranking", "audit", "wins"])
def test_pages_have_no_control_characters(run: Run, to: str, what: str) -> None:
    """A name cannot break a row or redraw a terminal."""
    page = text_of(run, to, what)
    assert all(sign.isprintable() for sign in page.replace("\n", ""))
    if what != "audit":
        ends = {"markdown": " |", "latex": r" \\"}[to]
        assert sum(line.endswith(ends) for line in page.splitlines()) >= len(NAMES) + 1


def test_evalica_reproduces_the_ratings_from_matches(run: Run, tmp_path: Path) -> None:
    """evalica gives the same fit, and the run's ratings up to the virtual game."""
    evalica = pytest.importorskip("evalica", reason="evalica is the outside oracle")
    done = run.export("matches", tmp_path / "m.jsonl")
    matches = lines(tmp_path / "m.jsonl")
    pairs = len(NAMES) * (len(NAMES) - 1) // 2
    assert done.rows == len(matches) == pairs * len(QUERIES) - (len(NAMES) - 1)
    assert list(done.left_out.values()) == [len(NAMES) - 1]
    outcome = {
        "model_a": evalica.Winner.X, "model_b": evalica.Winner.Y, "tie": evalica.Winner.Draw
    }  # fmt: skip
    theirs = evalica.bradley_terry(
        [match["model_a"] for match in matches],
        [match["model_b"] for match in matches],
        [outcome[match["winner"]] for match in matches],
        tolerance=1e-14,
        limit=100_000,
    ).scores
    grid = read_grid(run.store)
    strengths = np.log([theirs[name] for name in grid.candidates])
    strengths -= strengths.mean()
    margin = run.config.ranking.tie_margin
    ours = fit(
        win_totals(grid.scores, margin).sum(axis=0), pair_counts(grid.scores), virtual_ties=0
    )
    np.testing.assert_allclose(strengths, ours, atol=1e-7)
    ranking = json.loads((run.store.path / "ranking.json").read_text())["rows"]
    ratings = {row["candidate"]: row["rating"]["value"] for row in ranking}
    expected = 1000 + ELO_PER_STRENGTH * strengths
    for name, rating in zip(grid.candidates, expected, strict=True):
        assert ratings[name] == pytest.approx(rating, abs=0.5)


def test_matches_have_the_format_of_mt_bench_votes(run: Run) -> None:
    """They have all fields of MT-Bench's vote files, with the same values for the winner."""
    match = json.loads(text_of(run, "matches").splitlines()[0])
    fields = {"judge", "model_a", "model_b", "question_id", "turn", "winner"}
    assert fields <= match.keys()
    assert match["turn"] == 2  # q00 has a history
    found = {json.loads(line)["winner"] for line in text_of(run, "matches").splitlines()}
    assert found == {"model_a", "model_b", "tie"}


def test_rocketeval_files_round_trip(run: Run, tmp_path: Path) -> None:
    """The benchmark reader finds the same queries, responses and checklists; the judge's scores
    are labels only if the config names them."""
    done = run.export("rocketeval", tmp_path / "out")
    files = json.loads((tmp_path / "out" / "export.json").read_text())["files"]
    assert files["plain"] != files["org/plain"]
    assert set(files) == set(NAMES)
    assert done.files == {name: stem for name, stem in files.items() if name != stem}
    inside = (tmp_path / "out").resolve()
    assert all(path.resolve().is_relative_to(inside) for path in inside.rglob("*"))
    assert not (tmp_path / "escape.jsonl").exists()
    back = BenchmarkConfig(kind="rocketeval", path=inside)
    reader, inputs = RocketEvalBenchmark.create(back), run.store.inputs
    assert list(reader.queries()) == list(inputs.queries.values())
    assert {(c.query_id, c.items) for c in reader.checklists()} == {
        (c.query_id, c.items) for c in inputs.checklists().values()
    }
    responses = {(r.query_id, r.candidate): r.text for r in reader.responses()}
    assert responses == {(r.query_id, files[r.candidate]): r.text for r in inputs.responses()}
    assert list(reader.labels()) == []
    assert reader.left_out() == {JUDGED: RESPONSES - 1}
    (judge,) = (path.name for path in (inside / "score").iterdir())
    named = RocketEvalBenchmark.create(back.model_copy(update={"options": {"labeler": judge}}))
    assert {(s.query_id, s.candidate): s.value for s in named.labels()} == {
        (row["query_id"], files[row["candidate"]]): row["score"]
        for row in run.store.scores().to_pylist()
        if row["score"] is not None
    }
    left_out = {what.split()[0]: count for what, count in done.left_out.items()}
    assert left_out == {"judgments": 1, "scores": 1, "labels": RESPONSES, "votes": 40}


def test_a_judge_is_not_audited_against_itself(tmp_path: Path) -> None:
    """A run on an exported folder has no labels, and counts the scores that it ignored."""
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine())
    Run(config).export("rocketeval", tmp_path / "official")
    path = str(tmp_path / "official")
    again = make_config(tmp_path, "again", benchmark={"kind": "rocketeval", "path": path})
    rocketeval.run(again, judge=ScriptedEngine())
    store = Run(again).store
    assert store.inputs.labels() == []
    assert store.manifest().stages.load.left_out_by_config == {JUDGED: 6}
    assert json.loads((store.path / "audit.json").read_text())["labels"] == {}
    page = (store.path / "report.html").read_text()
    assert f"{JUDGED} left out" in page


@pytest.mark.parametrize(
    "judge", ["x.json", "x.jsonl", "..", "CON", "a/b\x1b[31m: =1\n", "x" * 300]
)
@pytest.mark.parametrize("to", ["rocketeval", "wildbench"])
def test_any_judge_name_gives_a_folder(tmp_path: Path, judge: str, to: str) -> None:
    """Its files are inside the export folder, complete and replaceable."""
    config = make_config(tmp_path, judge={"engine": "scripted", "model": judge})
    rocketeval.run(config, judge=ScriptedEngine(model=judge))
    out = tmp_path / "exports" / "out"
    Run(config).export(to, out)
    Run(config).export(to, out, force=True)
    about = json.loads((out / "export.json").read_text())
    files = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    assert set(about["written"]) == files
    assert about["judge"] == judge
    arrays = [path for path in out.rglob("*.json") if path.is_file() and path.name != "export.json"]
    assert [len(json.loads(path.read_text())) for path in arrays] == [3, 3]
    assert [path.name for path in out.parent.iterdir()] == ["out"]


def test_rocketeval_judgments_match_the_ledger(run: Run, tmp_path: Path) -> None:
    """Lists are in checklist order, and their mean gives the score."""
    run.export("rocketeval", tmp_path / "out")
    folders = list((tmp_path / "out" / "judgment").iterdir())
    assert len(folders) == 1
    assert folders[0].name == next((tmp_path / "out" / "score").iterdir()).name
    rows = lines(folders[0] / "PLAIN.jsonl")
    scores = {
        row["session_id"]: row
        for row in json.loads(
            (tmp_path / "out" / "score" / folders[0].name / "PLAIN.json").read_text()
        )
    }
    assert len(rows) == len(scores) == 40
    for row in rows:
        assert row["model_test"] == "PLAIN"
        probabilities = row["norm_probability"]
        mean = sum(probabilities) / len(probabilities)
        assert scores[row["session_id"]]["score"] == pytest.approx(1 + 9 * mean)
        for answer, p in zip(row["judgment"], probabilities, strict=True):
            assert answer == f"{'Yes' if p > 0.5 else 'No'} ({100 * p:.1f})%"


def test_wildbench_files_have_the_original_format(run: Run, tmp_path: Path) -> None:
    """One array per candidate; scores are numbers as text."""
    done = run.export("wildbench", tmp_path / "out")
    assert list(done.left_out.values()) == [1]
    (folder,) = (tmp_path / "out" / "score.v2").iterdir()
    assert folder.name.startswith("eval=b_ judge-")
    files = json.loads((tmp_path / "out" / "export.json").read_text())["files"]
    grid = read_grid(run.store)
    means = grid.mean_by_candidate()
    for name, stem in files.items():
        entries = json.loads((folder / f"{stem}.json").read_text())
        assert {entry["model_test"] for entry in entries} == {name}
        scores = [float(entry["score"]) for entry in entries]
        assert math.fsum(scores) / len(scores) == pytest.approx(means[name])
        assert all(len(entry["model_output"].strip()) > 0 for entry in entries)
    named = os.environ.get("ROCKETEVAL_SHARED_DATA")
    shared = Path(named) if named else Path(__file__).parents[3] / "shared" / "data"
    sample = shared / "native_samples" / "wildbench.eval_results.score.v2.json"
    if not sample.exists():
        pytest.skip("recorded files are absent; set ROCKETEVAL_SHARED_DATA")
    theirs = json.loads(sample.read_text())[0]
    assert theirs.keys() == entries[0].keys()
    assert theirs["parsed_result"].keys() == entries[0]["parsed_result"].keys()
    assert type(theirs["score"]) is type(entries[0]["score"])


def test_buffer_size_does_not_change_the_files(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small and large buffers write the same files."""
    run.export("rocketeval", tmp_path / "whole")
    monkeypatch.setattr(export_folder, "MOST_BYTES", 1)
    run.export("rocketeval", tmp_path / "pieces")
    whole = {p.relative_to(tmp_path / "whole") for p in (tmp_path / "whole").rglob("*.json*")}
    assert len(whole) == 3 * len(NAMES) + 3
    for name in whole:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "pieces" / name).read_bytes()


@pytest.mark.parametrize(
    "to",
    [
        name
        for name, form in FORMATS.items()
        # These two need the data of their tool: tests/exports/test_write_back.py.
        if not form.is_folder and name not in ("langfuse", "otel")
    ],
)
def test_files_are_not_overwritten_without_force(run: Run, tmp_path: Path, to: str) -> None:
    """With force they are replaced."""
    path = tmp_path / "there"
    path.write_text("mine")
    with pytest.raises(ExportError, match="already exists"):
        run.export(to, path)
    assert path.read_text() == "mine"
    assert run.export(to, path, force=True).path == path
    assert path.read_bytes() != b"mine"


def test_folders_are_not_overwritten_without_force(run: Run, tmp_path: Path) -> None:
    """An export replaces only files of an earlier export; other files stay."""
    out = tmp_path / "out"
    run.export("wildbench", out)
    with pytest.raises(ExportError, match="already exists"):
        run.export("wildbench", out)
    (out / "mine.txt").write_text("mine")
    stale = json.loads((out / "export.json").read_text())
    (out / "stale.json").write_text("[]")
    (tmp_path / "outside.json").write_text("mine")
    stale["written"] += ["stale.json", "../outside.json", str(tmp_path / "outside.json")]
    (out / "export.json").write_text(json.dumps(stale))
    run.export("wildbench", out, force=True)
    assert (out / "mine.txt").read_text() == "mine"
    assert not (out / "stale.json").exists()
    assert (tmp_path / "outside.json").read_text() == "mine"
    other = tmp_path / "other"
    other.mkdir()
    (other / "mine.txt").write_text("mine")
    with pytest.raises(ExportError, match="no export wrote"):
        run.export("rocketeval", other, force=True)
    assert [path.name for path in other.iterdir()] == ["mine.txt"]
    with pytest.raises(ExportError, match="is a folder"):
        run.export("csv", other, force=True)
    with pytest.raises(ExportError, match="is a file"):
        run.export("wildbench", other / "mine.txt", force=True)
    assert not list(tmp_path.glob(".*.tmp"))


def test_exports_never_write_into_their_run(run: Run) -> None:
    """Not even with force."""
    before = (run.store.path / "ranking.csv").read_bytes()
    with pytest.raises(ExportError, match="inside the run"):
        run.export("csv", run.store.path / "ranking.csv", force=True)
    assert (run.store.path / "ranking.csv").read_bytes() == before


@pytest.mark.parametrize("place", ["ranking.csv", "inputs/new/ranking.csv", "link/ranking.csv"])
def test_exports_never_write_into_other_runs(run: Run, tmp_path: Path, place: str) -> None:
    """Not into subfolders and not through symbolic links."""
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine())
    other = Run(config).store.path
    before = sorted(other.rglob("*"))
    (tmp_path / "link").symlink_to(other)
    path = tmp_path / place if place.startswith("link") else other / place
    with pytest.raises(ExportError, match="inside the run"):
        run.export("csv", path, force=True)
    with pytest.raises(ExportError, match="inside the run"):
        run.export("wildbench", path.parent / "out")
    assert sorted(other.rglob("*")) == before


def test_matches_agree_with_the_ranking_for_learned_scores(tmp_path: Path) -> None:
    """Also with a candidate without scores and one with few."""
    queries = [f"q{n:02d}" for n in range(12)]
    folder = write_benchmark(tmp_path / "benchmark")
    (folder / "votes.jsonl").unlink()
    for candidate in ("left", "right"):
        (folder / "responses" / f"{candidate}.jsonl").unlink()
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Why {q}?"} for q in queries])
    items = ["Is it right?", "Is it clear?"]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": items} for q in queries])
    for name in ("a", "b", "c", "dead", "rare"):
        asked = queries[:1] if name == "rare" else queries
        rows = [{"query_id": q, "text": f"{'FAIL' * (name == 'dead')} {name} {q}"} for q in asked]
        write_jsonl(folder / "responses" / f"{name}.jsonl", rows)
    labels = [
        {"query_id": q, "candidate": name, "value": 1 + (3 * n + len(q) * place) % 10}
        for n, q in enumerate(queries)
        for place, name in enumerate("abc")
    ]
    write_jsonl(folder / "labels.jsonl", labels)
    config = make_config(tmp_path, scorer={"kind": "isotonic"})
    rocketeval.run(config, judge=ScriptedEngine(fail_on="FAIL"))
    done = Run(config).export("matches", tmp_path / "m.jsonl")
    ranking = json.loads((Run(config).store.path / "ranking.json").read_text())
    assert ranking["unranked"] == ["dead"]
    shares: dict[tuple[str, str], list[float]] = {}
    for match in lines(tmp_path / "m.jsonl"):
        won = {"model_a": 1.0, "tie": 0.5, "model_b": 0.0}[match["winner"]]
        shares.setdefault((match["model_a"], match["model_b"]), []).append(won)
        shares.setdefault((match["model_b"], match["model_a"]), []).append(1.0 - won)
    names = ranking["wins"]["candidates"]
    for name, row in zip(names, ranking["wins"]["shares"], strict=True):
        for other, share in zip(names, row, strict=True):
            own = shares.get((name, other))
            assert share == (None if own is None else pytest.approx(np.mean(own), abs=1e-4))
    (left_out,) = done.left_out.values()
    assert left_out + done.rows == len(queries) * 10


def test_other_scales_and_methods_are_refused(tmp_path: Path) -> None:
    """Other tools would misread scores from 0 to 1, and grades."""
    config = make_config(tmp_path, scorer={"scale": [0, 1]})
    rocketeval.run(config, judge=ScriptedEngine())
    for to in ("rocketeval", "wildbench"):
        with pytest.raises(ExportError, match="from 1 to 10"):
            Run(config).export(to, tmp_path / to)
        assert not (tmp_path / to).exists()
    graded = make_config(tmp_path, "graded", method={"kind": "direct"})
    rocketeval.run(graded)
    with pytest.raises(ExportError, match="yes/no"):
        Run(graded).export("rocketeval", tmp_path / "out")
    assert Run(graded).export("wildbench", tmp_path / "out").rows == 6
    assert Run(graded).export("jsonl", tmp_path / "j.jsonl", what="judgments").rows == 6


def test_export_before_the_run_fails(tmp_path: Path) -> None:
    """It raises StageMissing and writes no file."""
    run = Run(make_config(tmp_path))
    with pytest.raises(StageMissing):
        run.export("csv", tmp_path / "r.csv")
    with pytest.raises(StageMissing):
        run.export("wildbench", tmp_path / "wb")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["benchmark"]
