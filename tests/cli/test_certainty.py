"""compare, estimate and advise as a person or a CI job uses them."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rocketeval.cli.main import group
from rocketeval.config import dump_config
from rocketeval.errors import ConfigError
from support.scored import scored_run, scores_and_labels


@pytest.fixture
def config(tmp_path: Path) -> str:
    """The config of a scored run with labels of both candidates on 40 of 120 queries."""
    scores, labels = scores_and_labels(120, 40)
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores, labels)), encoding="utf-8")
    return str(path)


def cli(*args: str, code: int = 0) -> Result:
    """Run the verb; it returns its exit code."""
    done = CliRunner().invoke(group, args, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    assert (done.return_value or 0) == code, done.output
    return done


def test_compare_says_it_in_words(config: str) -> None:
    """Verdict, effect with interval, p-value, counts and power are printed."""
    shown = cli("compare", "new", "old", config).stdout
    for text in (
        "new is significantly better than old",
        "p < 0.001",
        "120 queries with both",
        "won",
    ):
        assert text in shown
    assert "needed" not in shown


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
def test_compare_is_a_gate(config: str, options: list[str], code: int) -> None:
    """The exit code is 7 exactly when --fail-if says so."""
    cli("compare", *options, config, code=code)


def test_too_few_queries_fail_a_strict_gate_only(tmp_path: Path) -> None:
    """Five queries prove neither better nor worse: the default gate passes, a strict one fails."""
    scores, _ = scores_and_labels(5, 0)
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores)), encoding="utf-8")
    shown = cli("compare", "old", "new", str(path)).stdout
    assert "can't tell" in shown
    assert "(unknown)" in shown
    assert "Too few queries" in shown
    strict = ["--fail-if", "maybe-worse", "--min-effect", "5"]
    cli("compare", "new", "old", str(path), *strict, code=7)


def test_compare_as_json_is_complete(config: str) -> None:
    """JSON has every field, and the verdict as a word."""
    found = json.loads(cli("compare", "new", "old", config, "--json").stdout)
    assert found["verdict"] == "better"
    assert found["effect"]["low"] > 0
    assert found["queries_needed"] < 120


def test_an_unknown_candidate_names_the_nearest(config: str) -> None:
    """A typo is an error that helps."""
    with pytest.raises(ConfigError, match="no candidate 'nwe'") as error:
        cli("compare", "nwe", "old", config)
    assert "'new'" in error.value.hint


def test_estimate_shows_both_and_what_labels_are_worth(config: str) -> None:
    """With scores and alone stand side by side; the assumption is stated."""
    shown = cli("labels", "estimate", config).stdout
    for text in ("40 of 120", "with scores", "labels alone", "equals", "random sample"):
        assert text in shown
    shown = cli("labels", "estimate", config, "--candidate", "new", "--against", "old").stdout
    assert "new - old" in shown
    found = json.loads(cli("labels", "estimate", config, "--json").stdout)
    assert [row["candidate"] for row in found["rows"]] == ["new", "old"]


def test_labels_next_prints_a_table_and_writes_what_to_label(config: str, tmp_path: Path) -> None:
    """The list goes to the file, the table to the terminal, with the command to go on with."""
    out = tmp_path / "labels_wanted.jsonl"
    target = ["--candidate", "new", "--against", "old"]
    shown = cli("labels", "next", config, *target, "--queries", "15", "--out", str(out)).stdout
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 30
    assert set(rows[0]) == {"query_id", "candidate", "stratum", "order"}
    assert "40 of 120 queries are labeled" in shown
    assert (
        f"rocketeval labels estimate --candidate new --against old --strata 3 {config}\n" in shown
    )
    lines = cli(
        "labels", "next", config, *target, "--queries", "15", "--out", "-"
    ).stdout.splitlines()
    assert [json.loads(line) for line in lines] == rows


def test_labels_next_tells_the_file_is_not_written_without_out(config: str) -> None:
    """Without --out nothing is written, and the way to get the list is named."""
    shown = cli("labels", "next", config, "--top", "1").stdout
    assert "--out FILE" in shown
    assert json.loads(cli("labels", "next", config, "--top", "1", "--json").stdout)["wanted"]


def test_labels_next_replaces_nothing_unasked(config: str, tmp_path: Path) -> None:
    """A file that is there may hold somebody's labels."""
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
    """The command to go on with means this config and this run, and is whole."""
    (tmp_path / "runs" / "run").rename(tmp_path / "runs" / "my trial")
    out = str(tmp_path / "wanted.jsonl")
    call = ("labels", "next", config, "--name", "my trial", "--candidate", "new", "--out", out)
    shown = cli(*call).stdout.splitlines()
    options = ["--candidate", "new", "--strata", "3", "--name", "my trial"]
    assert shlex.split(shown[-1]) == ["rocketeval", "labels", "estimate", *options, config]


def test_a_command_that_cannot_be_shown_is_left_out(tmp_path: Path) -> None:
    """A name or a path with control characters makes no line that could be copied."""
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


def test_stdout_that_was_asked_for_is_not_silenced(config: str) -> None:
    """--quiet is about words for people; --out - is not one."""
    loud = cli("labels", "next", config, "--top", "1", "--out", "-").stdout
    assert cli("labels", "next", config, "--top", "1", "--out", "-", "--quiet").stdout == loud != ""


def test_no_interval_is_said_to_come_from_nothing(tmp_path: Path) -> None:
    """Where the interval is unknown, there are no resamples to speak of."""
    scores, _ = scores_and_labels(5, 0)
    path = tmp_path / "rocketeval.yaml"
    path.write_text(dump_config(scored_run(tmp_path, scores)), encoding="utf-8")
    assert "resamples" not in cli("compare", "old", "new", str(path)).stdout
