"""The CI gate: two runs compared, the comment, and the steps of the action run as a script."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from rocketeval import ScriptedEngine, evaluate
from rocketeval.cli.compare import GATE_FAILED
from rocketeval.cli.gate import command
from rocketeval.errors import ConfigError
from rocketeval.gate.ci import compare_runs, gate_comment
from rocketeval.judges.runs import open_run
from rocketeval.view.changes import diff_page, response_diff

ROOT = Path(__file__).parents[2]
ITEMS = ["Is it fine?", "Is it short?"]


def p_yes(prefix: str, item: str) -> float:
    """Return a high probability for responses that say good."""
    return 0.9 if "good" in prefix else 0.2


def graded(
    folder: Path, name: str, *texts: str, judge: str = "scripted", candidates: str = "bot"
) -> Path:
    """Grade a response per text, by default eight; return the run directory.

    A response that says lost gets no score.
    """
    every = texts if len(texts) > 1 else texts * 8
    rows = [
        {"question": f"query | {n} <b>", "model": who, "output": f"{text} {n}"}
        for n, text in enumerate(every)
        for who in candidates.split()
    ]
    engine = ScriptedEngine(p_yes, model=judge, fail_on="lost")
    evaluate(rows, judge=engine, checklists=ITEMS, name=name, output=folder, progress=False)
    return folder / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of a good and a bad version, and of another judge."""
    folder = tmp_path_factory.mktemp("runs")
    return {
        "good": graded(folder, "good", "good"),
        "bad": graded(folder, "bad", "bad"),
        "mostly_bad": graded(folder, "mostly_bad", *["bad"] * 7, "good"),
        "other": graded(folder, "other", "good", judge="other"),
        "lost": graded(folder, "lost", *["good"] * 6, "lost", "lost"),
        "bad_lost": graded(folder, "bad_lost", *["bad"] * 6, "lost", "lost"),
        "first_lost": graded(folder, "first_lost", *["lost"] * 4, *["good"] * 4),
        "last_lost": graded(folder, "last_lost", *["good"] * 4, *["lost"] * 4),
        "four": graded(folder, "four", *["bad"] * 4),
        "old": graded(folder, "old", "good", candidates="bot old"),
        "new": graded(folder, "new", "good", candidates="bot new"),
    }


def gate(*arguments: str | Path) -> tuple[int, str]:
    """Run the verb; return its exit code and what it prints."""
    done = CliRunner().invoke(command, [str(one) for one in arguments])
    return done.exit_code, done.output


def test_worse_version_fails(runs: dict[str, Path]) -> None:
    """A significant fall fails the gate, and names every query that fell."""
    outcome = compare_runs(runs["bad"], runs["good"])
    (failed,) = outcome.failed
    assert failed.comparison.effect.value == pytest.approx(-6.3)
    assert len(failed.falls) == 8
    code, told = gate(runs["bad"], runs["good"])
    assert code == GATE_FAILED
    # A query without an id of its own is shown with its text.
    assert re.search(r'^  [0-9a-f]{12,} "query \| \d <b>": 9.10 -> 2.80', told, re.MULTILINE)
    assert compare_runs(runs["good"], runs["bad"]).failed == ()
    assert compare_runs(runs["good"], runs["good"], max_drop=0.0).failed == ()


def test_comment_holds_untrusted_text(runs: dict[str, Path]) -> None:
    """The comment has the verdict and the falls; text of a query cannot leave its cell."""
    comment = gate_comment(compare_runs(runs["bad"], runs["good"]), "https://example.org/report")
    assert "gate failed" in comment
    assert "| bot | scores significantly lower | -6.300 |" in comment
    assert "query \\| 0 \\<b\\>" in comment
    assert "[Report](https://example.org/report)" in comment


def test_other_judge_is_refused(runs: dict[str, Path]) -> None:
    """Scores of two judges are not compared."""
    with pytest.raises(ConfigError, match=r"another judge \(model: other -> scripted\)"):
        compare_runs(runs["good"], runs["other"])


@pytest.mark.parametrize(
    ("named", "lacking", "not_lacking"),
    [
        (
            ["bot", "typo"],
            "'typo' is missing in this run (new) and in the baseline (old)",
            "'bot' is",
        ),
        (["bot", "new"], "'new' is missing in the baseline (old)", "this run"),
        (["old"], "'old' is missing in this run (new)", "baseline"),
    ],
)
def test_unknown_candidate_is_an_error(
    runs: dict[str, Path], named: list[str], lacking: str, not_lacking: str
) -> None:
    """A name that a run lacks is refused with that run and the names that both have."""
    with pytest.raises(ConfigError) as error:
        compare_runs(runs["new"], runs["old"], candidates=named)
    assert lacking in error.value.message
    assert not_lacking not in error.value.message
    assert error.value.hint == "Both runs have: 'bot'."


def test_names_of_many_candidates_are_shortened(tmp_path: Path) -> None:
    """The error about an unknown candidate names ten and counts the others."""
    many = " ".join(f"bot{n:02}" for n in range(12))
    run = graded(tmp_path, "many", "good", "good", candidates=many)
    with pytest.raises(ConfigError) as error:
        compare_runs(run, run, candidates=["typo"])
    assert "'bot09' and 2 more" in (error.value.hint or "")


def test_candidate_given_twice_is_compared_once(runs: dict[str, Path]) -> None:
    """A repeated name is no second comparison."""
    outcome = compare_runs(runs["good"], runs["bad"], candidates=["bot", "bot"])
    assert [one.candidate for one in outcome.diff.candidates] == ["bot"]


def test_pass_without_scores_of_the_base_says_so(runs: dict[str, Path], tmp_path: Path) -> None:
    """Scores that only the base has are counted in the last line, the notes and the comment."""
    code, printed = gate(runs["lost"], runs["good"], "--comment", tmp_path / "comment.md")
    assert code == 0
    last = printed.splitlines()[-1]
    assert last == "Gate passed, but this run lacks 2 scores that the base has (bot: 2)."
    assert "on 6 of 8 queries" in printed
    assert "a score is missing: bot 2 queries (2 in this run)." in printed
    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("### RocketEval gate passed, with missing scores\n")
    assert "This branch lacks 2 scores that the base has" in comment
    assert "| 6 of 8 |" in comment
    assert "bot 2 queries \\(2 in this run\\)" in comment


def test_failure_counts_the_missing_scores(runs: dict[str, Path], tmp_path: Path) -> None:
    """Missing scores do not hide a fall, and a failed gate counts them too."""
    code, printed = gate(runs["bad_lost"], runs["good"], "--comment", tmp_path / "comment.md")
    assert code == 7
    assert "a score is missing: bot 2 queries (2 in this run)." in printed
    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("### RocketEval gate failed, with missing scores\n")


def test_scores_that_the_base_lacks_are_counted(runs: dict[str, Path]) -> None:
    """They are in the notes with their side, and the gate passes as usual."""
    code, printed = gate(runs["good"], runs["lost"])
    assert code == 0
    assert "a score is missing: bot 2 queries (2 in the baseline)." in printed
    assert printed.endswith("Gate passed.\n")


def test_candidate_without_common_scores_is_an_error(runs: dict[str, Path]) -> None:
    """It is named, with the number of missing scores on each side."""
    counts = "missing scores: 4 in this run, 4 in the baseline"
    with pytest.raises(ConfigError, match=rf"'bot' has no query .*{counts}"):
        compare_runs(runs["first_lost"], runs["last_lost"])


def test_candidates_of_one_run_are_printed(runs: dict[str, Path]) -> None:
    """Candidates that are not compared are named on the terminal, as in the comment."""
    _, printed = gate(runs["new"], runs["old"])
    assert "Only in this run, and not compared: new." in printed
    assert "Only in the baseline, and not compared: old." in printed


@pytest.mark.parametrize(("level", "shown"), [("0.95", "95%"), ("0.9", "90%"), ("0.975", "97.5%")])
def test_interval_has_its_level(
    runs: dict[str, Path], tmp_path: Path, level: str, shown: str
) -> None:
    """The terminal and the comment name the level that was given."""
    given = (runs["mostly_bad"], runs["good"], "--level", level)
    _, printed = gate(*given, "--comment", tmp_path / "comment.md")
    assert re.search(rf"\({shown} interval -6.300 to -\d.\d+, p = 0.016\)", printed)
    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert f"| {shown} interval |" in comment


@pytest.fixture(scope="module")
def rude(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Runs of a rude version and a polite one on twelve queries, judged by a penalty."""
    folder = tmp_path_factory.mktemp("rude")
    items = ["Is it fine?", {"text": "Is it rude?", "weight": -1}]

    def rudeness(prefix: str, item: str) -> float:
        return 0.9 if "rude" not in item or "impolite" in prefix else 0.1

    for name, text in (("head", "impolite"), ("base", "kind")):
        rows = [
            {"question": f"query {n}", "model": "bot", "output": f"{text} {n}"} for n in range(12)
        ]
        engine = ScriptedEngine(rudeness)
        evaluate(rows, judge=engine, checklists=items, name=name, output=folder, progress=False)
    return folder / "head", folder / "base"


def test_worse_answers_count_penalties(rude: tuple[Path, Path], tmp_path: Path) -> None:
    """A penalty that flipped to yes is a worse answer; rows that are not shown are counted."""
    code, printed = gate(*rude, "--comment", tmp_path / "comment.md")
    assert code == 7
    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    rows = [line for line in comment.splitlines() if ": query " in line]
    assert [row.split(" | ")[-1] for row in rows] == ["1 |"] * 10
    assert "12 queries with a lower score" in comment
    assert "and 2 more" in comment
    assert "| < 0.001 | 12 |" in comment
    assert "p < 0.001" in printed
    assert printed.count(", 1 worse answer") == 3
    assert "and 9 more queries" in printed


def test_better_penalty_is_no_worse_answer(rude: tuple[Path, Path]) -> None:
    """A penalty that flipped to no is an improvement, for the gate and on the page of changes."""
    outcome = compare_runs(rude[1], rude[0])
    assert outcome.diff.candidates[0].falls == ()
    changes = outcome.diff.candidates[0].changes
    assert [(one.worse_answers, one.better_answers) for one in changes] == [(0, 1)] * 12
    head, base = (open_run(path) for path in reversed(rude))
    (line,) = diff_page(head, base).candidates
    assert (line.worse_answers, line.better_answers) == (0, 12)
    shown = response_diff(head, base, changes[0].query, "bot")
    assert shown is not None
    assert [(item.before, item.now, item.flipped) for item in shown.items] == [
        (0.9, 0.9, ""),
        (0.9, 0.1, "better"),
    ]


def test_too_few_queries_for_an_interval(runs: dict[str, Path], tmp_path: Path) -> None:
    """Unknown bounds are explained, not printed as numbers."""
    _, printed = gate(runs["four"], runs["good"], "--comment", tmp_path / "comment.md")
    assert "-6.300 (no interval: 4 queries are too few, p = 0.125) on 4 queries" in printed
    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert "| -6.300 | no interval: 4 queries are too few | 0.125 | 4 |" in comment
    assert "nan" not in printed + comment


def test_too_few_queries_are_no_pass(runs: dict[str, Path], tmp_path: Path) -> None:
    """The exit code stays 0, but terminal, comment and page say that nothing was tested."""
    code, printed = gate(runs["four"], runs["good"], "--comment", tmp_path / "comment.md")
    assert code == 0
    assert printed.startswith("bot: too few queries, mean difference -6.300")
    assert printed.splitlines()[-1].startswith("Nothing was tested: too few queries.")
    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert comment.startswith("### RocketEval gate without a test, too few queries\n")
    assert "| bot | too few queries | -6.300 |" in comment
    assert "no significant difference" not in printed + comment
    assert "passed" not in printed + comment
    page = diff_page(open_run(runs["four"]), open_run(runs["good"]))
    assert page.conclusion == "Too few queries to test bot."
    assert page.candidates[0].verdict == "too few queries"


def test_largest_fall_is_checked_with_few_queries(runs: dict[str, Path]) -> None:
    """With --max-drop the gate can fail; if it passes, it says what was not tested."""
    code, printed = gate(runs["four"], runs["good"], "--max-drop", "7")
    assert code == 0
    assert printed.endswith("Gate passed, but too few queries to test bot.\n")
    assert gate(runs["four"], runs["good"], "--max-drop", "1")[0] == GATE_FAILED


@pytest.mark.parametrize("queries", [2, 3, 4, 5])
def test_fall_of_exactly_the_largest_allowed_passes(tmp_path: Path, queries: int) -> None:
    """Rounding in the mean does not count."""

    def judge(prefix: str, item: str) -> float:
        return 0.9 if "good" in prefix else 0.8

    for name, text in (("base", "good"), ("head", "plain")):
        rows = [{"question": f"query {n}", "model": "bot", "output": text} for n in range(queries)]
        evaluate(
            rows,
            judge=ScriptedEngine(judge),
            checklists=ITEMS,
            name=name,
            output=tmp_path,
            progress=False,
        )
    fell = 9 * 0.9 - 9 * 0.8
    assert not compare_runs(tmp_path / "head", tmp_path / "base", max_drop=0.9).failed
    assert compare_runs(tmp_path / "head", tmp_path / "base", max_drop=fell - 0.001).failed


def test_number_of_tests_is_noted_once(tmp_path: Path) -> None:
    """Several candidates are tested without correction: terminal, comment and page say so."""
    both = graded(tmp_path, "both", "good", candidates="bot old")
    _, printed = gate(both, both, "--level", "0.975")
    comment = gate_comment(compare_runs(both, both))
    notes = "\n".join(diff_page(open_run(both), open_run(both)).notes)
    assert "2 candidates are tested, each at 97.5% without correction" in printed
    assert "about 0.1 of 2 unchanged ones would look changed" in comment
    assert [text.count("without correction") for text in (printed, comment, notes)] == [1, 1, 1]
    _, one = gate(both, both, "--candidate", "bot")
    assert "without correction" not in one


def project(folder: Path) -> None:
    """Write a project with a config, judged by the scripted engine."""
    benchmark = folder / "benchmark"
    (benchmark / "responses").mkdir(parents=True)
    queries = [{"id": f"q{n}", "text": f"query {n}"} for n in range(8)]
    lists = [{"query_id": f"q{n}", "items": ["Is it fine?", "Is it a?", "b?"]} for n in range(8)]
    texts = [{"query_id": f"q{n}", "candidate": "bot", "text": f"reply {n}"} for n in range(8)]
    for name, rows in (("queries", queries), ("checklists", lists), ("responses/bot", texts)):
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (benchmark / f"{name}.jsonl").write_text(lines)
    config = {
        "name": "head",
        "benchmark": {"path": "benchmark"},
        "judge": {"model": "m", "engine": "scripted"},
    }
    (folder / "rocketeval.yaml").write_text(yaml.safe_dump(config))


@pytest.fixture
def action(tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The action's own script, run in a project; settings of its environment may be given."""
    project(tmp_path)
    action = yaml.safe_load((ROOT / "action.yml").read_text())
    (step,) = [step for step in action["runs"]["steps"] if step.get("id") == "gate"]
    script = step["run"]
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "GITHUB_OUTPUT": str(tmp_path / "output"),
        "GITHUB_STEP_SUMMARY": str(tmp_path / "summary"),
        "CONFIG": action["inputs"]["config"]["default"],
        "BASE_RUN": "",
        "MAX_DROP": "",
        "REPORT_URL": "",
    }
    shell = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]

    def run(**given: str) -> subprocess.CompletedProcess[str]:
        found = {**environment, **given}
        return subprocess.run(shell, cwd=tmp_path, env=found, capture_output=True, text=True)

    return run


def keep_as_base(folder: Path) -> Path:
    """Move the run in the action's outputs, and return its new path."""
    outputs = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
    return (folder / outputs["run"]).rename(folder / "base")


def test_steps_of_the_action_run(
    tmp_path: Path, action: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """The action's own script grades, compares, writes outputs and a summary, and exits with 0."""
    first = action()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "nothing to compare with" in first.stdout
    second = action(BASE_RUN=str(keep_as_base(tmp_path)))
    assert second.returncode == 0, second.stdout + second.stderr
    assert "Gate passed." in second.stdout
    assert "no significant difference" in (tmp_path / "summary").read_text()


def test_action_continues_after_a_missing_answer(
    tmp_path: Path, action: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    """A run that lacks an answer is kept as an output, and the gate decides; an error stops."""
    config = tmp_path / "rocketeval.yaml"
    settings = yaml.safe_load(config.read_text())
    settings["judge"]["options"] = {"fail_on": "reply 7"}
    config.write_text(yaml.safe_dump(settings))
    first = action()
    assert first.returncode == 0, first.stdout + first.stderr
    assert "1 response could not be judged" in first.stdout
    base = str(keep_as_base(tmp_path))
    second = action(BASE_RUN=base)
    assert second.returncode == 0, second.stdout + second.stderr
    assert "on 7 of 8 queries" in second.stdout
    assert "Gate passed" in second.stdout
    stopped = action(CONFIG="absent.yaml", BASE_RUN=base)
    assert stopped.returncode == 2, stopped.stdout + stopped.stderr
    assert "Gate passed" not in stopped.stdout
