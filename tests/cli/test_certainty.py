"""End-to-end tests of `compare`, `labels estimate` and `labels next`."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result

from rocketeval.cli.compare import show_comparison
from rocketeval.cli.labels import estimate_conclusion
from rocketeval.cli.main import group
from rocketeval.compare.pair import compare
from rocketeval.compare.stage import Estimates
from rocketeval.config import dump_config
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Label
from rocketeval.stats.prediction_powered import LabeledSample, estimate
from support.scored import scored_run, scores_and_labels


@pytest.fixture
def config(tmp_path: Path) -> str:
    """The config of a scored run with labels of both candidates on 40 of 120 queries."""
    scores, labels = scores_and_labels(120, 40)
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores, labels)), encoding="utf-8")
    return str(path)


def cli(*args: str, code: int = 0) -> Result:
    """Run a verb and check its exit code."""
    done = CliRunner().invoke(group, args, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    assert (done.return_value or 0) == code, done.output
    return done


def test_compare_prints_verdict_and_figures(config: str) -> None:
    """The output has the verdict, the difference, p-value, counts and power."""
    shown = cli("compare", "new", "old", config).stdout
    for text in (
        "new scores significantly higher than old",
        "not audited yet",
        "p < 0.001",
        "120 queries with both",
        "won",
    ):
        assert text in shown
    assert "needed" not in shown
    # The judge was not checked: the line of the verdict calls nobody better either.
    assert "higher score" in shown
    assert "better" not in shown
    assert json.loads(cli("compare", "new", "old", config, "--json").stdout)["verdict"] == "better"


def test_compare_counts_clusters_that_are_too_few(capsys: pytest.CaptureFixture[str]) -> None:
    """Thirty queries in three clusters are too few, and the message says why."""
    scores = np.column_stack([np.arange(30.0), np.arange(30.0) - 1])
    clusters = tuple(f"c{number // 10}" for number in range(30))
    grid = ScoreGrid(tuple(f"q{number}" for number in range(30)), ("a", "b"), scores, clusters)
    show_comparison(compare(grid, "a", "b"))
    shown = capsys.readouterr().out
    assert "Too few queries to compare a with b: 30 in 3 clusters." in shown
    assert "verdict     too few queries" in shown


def test_needed_queries_add_up(capsys: pytest.CaptureFixture[str]) -> None:
    """The queries that are needed are those of the run and the others, as printed."""
    scores = np.column_stack([np.arange(24) % 2 + 0.0, np.full(24, 0.3)])
    grid = ScoreGrid(tuple(f"q{number}" for number in range(24)), ("a", "b"), scores)
    found = replace(compare(grid, "a", "b"), queries_needed=122)
    show_comparison(found)
    assert "about 122 queries (98 more)" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["new", "old"], 0),
        (["old", "new"], 7),
        (["old", "new", "--fail-if", "never"], 0),
        (["new", "old", "--fail-if", "not-better"], 0),
        (["old", "new", "--fail-if", "not-better"], 7),
        (["new", "old", "--fail-if", "not-better", "--min-effect", "3"], 7),
        (["new", "old", "--fail-if", "maybe-worse", "--min-effect", "0.1"], 0),
        (["old", "new", "--fail-if", "maybe-worse", "--min-effect", "0.1"], 7),
        (["old", "new", "--fail-if", "maybe-worse", "--min-effect", "3"], 0),
    ],
)
def test_compare_exit_code(config: str, options: list[str], code: int) -> None:
    """The exit code is 7 if and only if the verdict matches --fail-if."""
    cli("compare", *options, config, code=code)


def test_too_few_queries_fail_a_strict_gate_only(tmp_path: Path) -> None:
    """With five queries there is no conclusion: the default gate passes, a strict one fails."""
    scores, _ = scores_and_labels(5, 0)
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores)), encoding="utf-8")
    shown = cli("compare", "old", "new", str(path)).stdout
    assert "verdict     too few queries" in shown
    assert "no interval" in shown
    assert "Too few queries" in shown
    strict = ["--fail-if", "maybe-worse", "--min-effect", "5"]
    cli("compare", "new", "old", str(path), *strict, code=7)


def test_equal_scores_on_few_queries_fail_a_strict_gate(tmp_path: Path) -> None:
    """Six equal scores have an exact interval, wide and without power; 200 pass the gate."""
    strict = ["--fail-if", "maybe-worse", "--min-effect", "0.2"]
    for queries, code in ((6, 7), (200, 0)):
        folder = tmp_path / str(queries)
        folder.mkdir()
        scores: dict[str, list[float | None]] = {"new": [10.0] * queries, "old": [10.0] * queries}
        path = folder / "rocketeval.yaml"
        path.write_text(dump_config(scored_run(folder, scores)), encoding="utf-8")
        shown = cli("compare", "new", "old", str(path), *strict, code=code).stdout
        assert ("equal enough" in shown) == (code == 0)
        assert "exact" in shown
        assert "power" not in shown
        assert "resamples" not in shown
        found = json.loads(cli("compare", "new", "old", str(path), "--json").stdout)
        assert found["detectable"] is None


def test_a_constant_lead_passes_a_strict_gate(tmp_path: Path) -> None:
    """Without an interval, the verdict decides whether the candidate may be worse."""
    path = tmp_path / "rocketeval.yaml"
    config = scored_run(tmp_path, {"new": [9.0] * 6, "old": [8.0] * 6})
    path.write_text(dump_config(config), encoding="utf-8")
    strict = ["--fail-if", "maybe-worse", "--min-effect", "0.2"]
    assert "no interval" in cli("compare", "new", "old", str(path), *strict).stdout
    cli("compare", "old", "new", str(path), *strict, code=7)


def test_a_constant_lead_within_the_minimum_effect(tmp_path: Path) -> None:
    """The conclusion names the difference; a candidate that wins every query passes the gate."""
    path = tmp_path / "rocketeval.yaml"
    config = scored_run(tmp_path, {"new": [7.3] * 20, "old": [7.0] * 20})
    path.write_text(dump_config(config), encoding="utf-8")
    strict = ["--fail-if", "maybe-worse", "--min-effect", "0.5"]
    conclusion, verdict, *_ = cli("compare", "new", "old", str(path), *strict).stdout.splitlines()
    assert "0.3 higher than old's on 20 queries" in conclusion
    assert "within the minimum effect" in conclusion
    assert "can't tell" in verdict
    other = cli("compare", "old", "new", str(path), *strict, code=7).stdout
    assert "0.3 lower" in other


def test_compare_as_json(config: str) -> None:
    """The document has the verdict, the effect and the queries needed."""
    found = json.loads(cli("compare", "new", "old", config, "--json").stdout)
    assert found["verdict"] == "better"
    assert found["effect"]["low"] > 0
    assert found["queries_needed"] < 120


def test_unknown_candidate_names_the_nearest(config: str) -> None:
    """The hint names the nearest candidate."""
    with pytest.raises(ConfigError, match="no candidate 'nwe'") as error:
        cli("compare", "nwe", "old", config)
    assert "'new'" in error.value.hint


def test_estimate_with_scores_and_labels_alone(config: str) -> None:
    """The table has both estimates, and the assumption is stated."""
    shown = cli("labels", "estimate", config).stdout
    for text in ("40/120", "with scores", "labels alone", "equals", "random sample"):
        assert text in shown
    shown = cli("labels", "estimate", config, "--candidate", "new", "--against", "old").stdout
    assert "new - old" in shown
    found = json.loads(cli("labels", "estimate", config, "--json").stdout)
    assert [row["candidate"] for row in found["rows"]] == ["new", "old"]


def test_labels_next_prints_a_table_and_writes_a_list(config: str, tmp_path: Path) -> None:
    """The list goes to the file; the table and the next command go to the terminal."""
    out = tmp_path / "labels_wanted.jsonl"
    target = ["--candidate", "new", "--against", "old"]
    shown = cli("labels", "next", config, *target, "--queries", "15", "--out", str(out)).stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 30
    wanted = {"query": "?", "response": "x", "value": None}
    assert {name: rows[0][name] for name in wanted} == wanted
    assert set(rows[0]) == {"query_id", "candidate", "stratum", "order", *wanted}
    assert "Wrote 30 responses to label on 15 queries" in shown
    assert "`collected: labels_wanted.jsonl`" in shown
    assert "40 of 120 queries are labeled" in shown
    assert (
        f"rocketeval labels estimate --candidate new --against old --strata 3 {config}\n" in shown
    )
    lines = cli(
        "labels", "next", config, *target, "--queries", "15", "--out", "-"
    ).stdout.splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_pairs_of_unknown_or_repeated_candidates_are_refused(config: str) -> None:
    """Instead of no pairs, or a vote on a response against itself."""
    words = ("labels", "next", config, "--pairs", "--candidate", "new", "--candidate")
    with pytest.raises(ConfigError, match="no candidate 'odl'") as wrong:
        cli(*words, "odl")
    assert "old" in wrong.value.hint
    with pytest.raises(ConfigError, match="Invalid candidates: 'new', 'new'"):
        cli(*words, "new")


def test_written_pairs_are_votes_without_a_winner(config: str, tmp_path: Path) -> None:
    """Each row has the texts to compare; the output says where the votes go."""
    out = tmp_path / "pairs.jsonl"
    shown = cli("labels", "next", config, "--top", "2", "--pairs", "--out", str(out)).stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 20
    assert (rows[0]["response_a"], rows[0]["query"], rows[0]["winner"]) == ("x", "?", None)
    assert "Wrote 20 pairs to vote on" in shown
    assert "a, b or tie" in shown


def test_labels_next_names_the_file_that_the_config_reads(config: str, tmp_path: Path) -> None:
    """If the config already reads a file, the new rows belong there."""
    text = Path(config).read_text(encoding="utf-8")
    Path(config).write_text(text.replace("benchmark:\n", "benchmark:\n  collected: mine.jsonl\n"))
    out = str(tmp_path / "wanted.jsonl")
    done = cli("labels", "next", config, "--top", "1", "--out", out)
    assert "mine.jsonl" in done.stdout
    assert "add the line" not in done.stdout
    assert "mine.jsonl, which does not exist" in done.stderr
    (tmp_path / "mine.jsonl").touch()
    assert "does not exist" not in cli("labels", "next", config, "--top", "1").stderr


def test_missing_labels_give_a_command_that_works(tmp_path: Path) -> None:
    """The hint has the config and --top, so that it can be copied."""
    scores, _ = scores_and_labels(20, 0)
    path = tmp_path / "my.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores)), encoding="utf-8")
    with pytest.raises(BenchmarkError, match="labeled") as error:
        cli("labels", "estimate", str(path))
    assert str(path) in error.value.hint
    command = shlex.split(error.value.hint.split("`")[1])
    cli(*command[1:-3], "--out", str(tmp_path / "out.jsonl"), command[-1])


def test_the_reason_for_no_interval_is_true(tmp_path: Path) -> None:
    """Few labels and identical labels are different reasons."""
    scores, _ = scores_and_labels(20, 0)
    same = [Label(f"q{row}", name, 4.0) for row in range(12) for name in ("new", "old")]
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores, same)), encoding="utf-8")
    shown = cli("labels", "estimate", str(path)).stdout
    assert "all 12 labels are identical" in shown
    assert "95% interval." not in shown.splitlines()[0]
    pair = ("--candidate", "new", "--against", "old")
    shown = cli("labels", "estimate", str(path), *pair).stdout
    assert "Too few" not in shown
    assert "same amount on all 12 queries" in shown


def test_labels_of_one_cluster_are_not_called_identical() -> None:
    """Different labels of one cluster have no interval either."""
    labels = np.where(np.arange(20) < 12, np.arange(20.0), np.nan)
    clusters = np.repeat([0, 1], [12, 8])
    names = tuple(f"q{number}" for number in range(20))
    sample = LabeledSample("a", names, np.arange(20.0) % 7, labels, np.zeros(20, int), clusters)
    for against in (None, "b"):
        found = Estimates((estimate(sample, against=against),), 0, 0, 0, False)
        assert "of one cluster" in estimate_conclusion(found, 0.95)


def test_few_labels_are_counted(tmp_path: Path) -> None:
    """Below the minimum, the output says how many labels there are and how many are needed."""
    scores, labels = scores_and_labels(20, 5)
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores, labels)), encoding="utf-8")
    assert "5 labels and an interval needs 10" in cli("labels", "estimate", str(path)).stdout


def test_labels_next_without_out_writes_no_file(config: str) -> None:
    """Without --out, no file is written, and the output names the option."""
    shown = cli("labels", "next", config, "--top", "1").stdout
    assert "--out FILE" in shown
    assert json.loads(cli("labels", "next", config, "--top", "1", "--json").stdout)["wanted"]


@pytest.mark.parametrize(
    ("queries", "labeled", "chosen", "words"),
    [
        (20, 5, 2, "10 labeled queries, and these make 7: use --queries 5."),
        (8, 0, 4, "10 labeled queries: too few have scores."),
        (20, 5, 5, "5 of 20 queries are labeled for the mean label of new.\n"),
    ],
)
def test_labels_next_names_the_fewest_queries(
    tmp_path: Path, queries: int, labeled: int, chosen: int, words: str
) -> None:
    """If the chosen queries are too few for an interval, the output says how many are enough."""
    path = tmp_path / "rocketeval.yaml"
    made = scored_run(tmp_path, *scores_and_labels(queries, labeled))
    path.write_text(dump_config(made), encoding="utf-8")
    call = ("labels", "next", str(path), "--candidate", "new", "--queries", str(chosen))
    shown = cli(*call).stdout
    assert words in " ".join(shown.split("\n\n")[0].split()) + "\n"
    assert "labeled queries   width with scores" in shown


def test_labels_next_does_not_overwrite_without_force(config: str, tmp_path: Path) -> None:
    """An existing file may contain labels and needs --force."""
    out = tmp_path / "wanted.jsonl"
    out.write_text("labels of a week\n")
    call = ("labels", "next", config, "--top", "1", "--out", str(out))
    with pytest.raises(ConfigError, match="already exists") as error:
        cli(*call)
    assert "--force" in error.value.hint
    assert out.read_text() == "labels of a week\n"
    cli(*call, "--force")
    assert "query_id" in out.read_text()


def test_labels_next_names_the_same_run(config: str, tmp_path: Path) -> None:
    """The next command names this config and this run, on one line."""
    (tmp_path / "runs" / "run").rename(tmp_path / "runs" / "my trial")
    out = str(tmp_path / "wanted.jsonl")
    call = ("labels", "next", config, "--name", "my trial", "--candidate", "new", "--out", out)
    shown = cli(*call).stdout.splitlines()
    options = ["--candidate", "new", "--strata", "3", "--name", "my trial"]
    assert shlex.split(shown[-1]) == ["rocketeval", "labels", "estimate", *options, config]


def test_command_with_control_characters_is_not_printed(tmp_path: Path) -> None:
    """A path with control characters gives no command to copy."""
    scores, labels = scores_and_labels(120, 40)
    folder = tmp_path / "a\x07b"
    folder.mkdir()
    path = folder / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(folder, scores, labels)), encoding="utf-8")
    shown = cli(
        "labels", "next", str(path), "--top", "1", "--out", str(folder / "wanted.jsonl")
    ).stdout
    assert "\x07" not in shown
    assert shown.endswith("`rocketeval labels estimate`, with the same options.\n")


def test_quiet_does_not_suppress_out_to_stdout(config: str) -> None:
    """`--out -` prints the list even with --quiet."""
    loud = cli("labels", "next", config, "--top", "1", "--out", "-").stdout
    assert cli("labels", "next", config, "--top", "1", "--out", "-", "--quiet").stdout == loud != ""


def test_no_resamples_are_named_without_an_interval(tmp_path: Path) -> None:
    """If the interval is unknown, the output does not mention resamples."""
    scores, _ = scores_and_labels(5, 0)
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores)), encoding="utf-8")
    assert "resamples" not in cli("compare", "old", "new", str(path)).stdout
