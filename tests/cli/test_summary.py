"""The summary of a run: table widths, missing data and the next command."""

from __future__ import annotations

import math
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from rich.cells import cell_len

from rocketeval.audit.audit import Audit
from rocketeval.cli import text as tables
from rocketeval.cli.progress_text import FANCY, PLAIN
from rocketeval.cli.ranking import ranking_lines
from rocketeval.cli.run import Missing, Typed, find_missing, missing_in_words, next_step
from rocketeval.cli.stages import show_learned
from rocketeval.cli.text import as_argument, make_console, make_table, shown_path
from rocketeval.pipeline import Outcome
from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.records import Interval
from rocketeval.scoring.split import RefusedGold
from rocketeval.stats.correlation import Correlation
from rocketeval.store.manifest import ChecklistFacts, GradeFacts, LearnedFacts, ScoreFacts, Stages

LONG = "a-very-long-name-of-a-model/with-its-version-and-quantisation-and-prompt-number-17"
COMPLETE = Missing(0, 0, 0, 0, 0, 0)
NO_GOLD = Audit({}, None, None, {}, RefusedGold(0, 0))
RATED = replace(NO_GOLD, ratings=Correlation(None, None, 2, (), "too few"))


def row(name: str, rank: int, group: int, beats_next: bool | None) -> RankedCandidate:
    """Return a candidate with plausible figures."""
    rating = Interval(1400.0 - 100 * rank, 1300.0 - 100 * rank, 1500.0 - 100 * rank)
    mean = Interval(8.0 - rank, 7.5 - rank, 8.5 - rank)
    return RankedCandidate(name, rank, rank, rank + 1, rating, mean, 12, 3, group, 1, beats_next)


def ranking(*rows: RankedCandidate) -> Ranking:
    """Return a ranking of these rows."""
    return Ranking(rows, (), 0.1, 50, 0, 0.95, 12, 1)


@pytest.mark.parametrize("width", [44, 60, 79, 99, 119, 159, 200])
@pytest.mark.parametrize("marks", [FANCY, PLAIN])
def test_figures_are_never_cut(width: int, marks: object) -> None:
    """Names are shortened instead of figures, and no line is wider than the terminal."""
    found = ranking(row(LONG, 1, 1, False), row("b\x1b[2J", 2, 1, True), row("c", 3, 2, None))
    lines = ranking_lines(found, width, marks)  # type: ignore[arg-type]
    assert max(map(cell_len, lines)) <= max(width, 56)
    shown = "\n".join(lines)
    for figure in ("1300 (1200-1400)", "7.00 (6.50-7.50)", "1 (1-2)", "c"):
        assert figure in shown
    assert shown.isprintable() or "\x1b" not in shown
    assert "a-ve" in shown
    assert "17" in shown


def test_bracket_joins_tied_candidates() -> None:
    """Two tied candidates are in one bracket, the third is not."""
    found = ranking(row("a", 1, 1, False), row("b", 2, 1, True), row("c", 3, 2, None))
    assert [line[0] for line in ranking_lines(found, 79, PLAIN)] == [" ", "/", "\\", " "]


def test_wide_terminal_draws_intervals() -> None:
    """Intervals are drawn on one scale in a wide terminal, but not in a pipe."""
    found = ranking(row("a", 1, 1, True), row("b", 2, 2, None))
    header, first, second = ranking_lines(found, 159, PLAIN)
    assert header.split()[-2:] == ["1100", "1400"]
    assert first.endswith("-|")
    assert second.index("|-") < first.index("|-")
    assert "|-" not in "".join(ranking_lines(found, None, PLAIN))


def typed(config: str | None = None, name: str | None = None) -> Typed:
    """Return the command line of a user."""
    return Typed(("run", "my config.yaml", "--limit", "3"), config, name)


def test_next_command_keeps_judge_and_limit() -> None:
    """The command repeats --limit, which determines the run's name, and --judge."""
    given = replace(
        typed("my config.yaml", "demo-first-3"), judge=("--judge", "b"), run=("--limit", "3")
    )
    assert given.of_work("run", "--evaluator", "e.npz") == (
        "rocketeval run --evaluator e.npz --limit 3 --judge b 'my config.yaml'"
    )


def outcome(found: Ranking, audit: Audit) -> Outcome:
    """Return the outcome of a finished run."""
    return Outcome(Path("runs/x"), found, audit, Path("runs/x/report.html"), Stages())


def test_next_step_after_failures_is_the_same_command() -> None:
    """Failures are retried by the same command, quoted for a shell."""
    found = outcome(ranking(row("a", 1, 1, None)), NO_GOLD)
    step = next_step(found, replace(COMPLETE, responses_not_judged=2), typed())
    assert step.command == "rocketeval run 'my config.yaml' --limit 3"


def test_next_step_without_reference_data_is_labels_next() -> None:
    """Without reference data, the next step is `labels next` on the same run."""
    found = outcome(ranking(row("a", 1, 1, True), row("b", 2, 2, None)), NO_GOLD)
    step = next_step(found, COMPLETE, typed("my config.yaml", "trial"))
    words = shlex.split(step.command)
    assert words[:5] == ["rocketeval", "labels", "next", "--top", "2"]
    assert words[-3:] == ["--name", "trial", "my config.yaml"]


def test_next_step_for_tied_candidates_is_compare() -> None:
    """Hostile names are quoted as single words and never read as options."""
    names = ("-rf; $(reboot) 'x'", "b")
    found = outcome(ranking(row(names[0], 1, 1, False), row(names[1], 2, 1, None)), RATED)
    step = next_step(found, COMPLETE, typed("c.yaml"))
    assert shlex.split(step.command) == ["rocketeval", "compare", "--", *names, "c.yaml"]


def test_next_step_for_contradicted_ranks_is_compare() -> None:
    """A second place with a significantly higher mean is worth a comparison, and is no tie."""
    first = replace(row("a", 1, 1, False), outscored_by=("b",))
    step = next_step(
        outcome(ranking(first, row("b", 2, 2, None)), RATED), COMPLETE, typed("c.yaml")
    )
    assert shlex.split(step.command) == ["rocketeval", "compare", "a", "b", "c.yaml"]
    assert "tied" not in step.why


@pytest.mark.parametrize(("name", "beats"), [("a\x1b[2J", False), ("a", True)])
def test_next_step_is_view_otherwise(name: str, beats: bool) -> None:
    """An unprintable name is not put into a command, and a clear winner needs no comparison."""
    found = outcome(ranking(row(name, 1, 1, beats), row("b", 2, 1, None)), RATED)
    assert next_step(found, COMPLETE, typed()).command == "rocketeval view runs/x"


def test_next_step_for_many_missing_answers_is_doctor() -> None:
    """The command names the same judge and config."""
    found = outcome(ranking(row("a", 1, 1, False), row("b", 2, 1, None)), NO_GOLD)
    found = replace(found, stages=Stages(score=ScoreFacts(answers=100)))
    step = next_step(
        found,
        replace(COMPLETE, answers_missing=20),
        replace(typed("-c.yaml", "trial"), judge=("--judge", "a b")),
    )
    assert step.command == "rocketeval doctor --judge 'a b' ./-c.yaml"
    few = next_step(found, replace(COMPLETE, answers_missing=2), typed())
    assert "labels next" in few.command


def test_uninformative_comparison_is_not_advised() -> None:
    """With too few queries or equal means, the next step is view, and the reason is named.

    One candidate without an interval, such as one with the same score everywhere, is compared.
    """
    one, two = row("a", 1, 1, False), row("b", 2, 1, None)
    unknown = replace(one, mean_score=Interval(7.0, math.nan, math.nan))
    other = replace(two, mean_score=Interval(6.5, math.nan, math.nan))
    few = next_step(outcome(ranking(unknown, other), RATED), COMPLETE, typed())
    assert (few.command, "few queries" in few.why) == ("rocketeval view runs/x", True)
    perfect = next_step(outcome(ranking(unknown, two), RATED), COMPLETE, typed())
    assert "tied" in perfect.why
    same = replace(two, mean_score=one.mean_score)
    equal = next_step(outcome(ranking(one, same), RATED), COMPLETE, typed())
    assert (equal.command, "same mean score" in equal.why) == ("rocketeval view runs/x", True)
    tied = next_step(outcome(ranking(one, two), RATED), COMPLETE, typed())
    assert "tied" in tied.why


def test_missing_responses_are_counted_once() -> None:
    """Responses that were not judged are not counted again as responses without a score."""
    stages = Stages(
        checklist=ChecklistFacts(failures={"q9": "why"}),
        grade=GradeFacts(unfinished=1, responses_unfinished=2, responses_without_checklist=3),
        score=ScoreFacts(without_score=6),
    )
    assert list(missing_in_words(find_missing(stages), stages)) == [
        "1 query has no checklist (q9): 3 responses are not judged",
        "2 responses could not be judged; run it again to retry",
        "1 judged response has no score",
    ]


def test_names_are_not_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets and colons of a candidate's name are printed verbatim."""
    name = "[/x] [bold]m[/bold] :boom:"
    learned = LearnedFacts(
        labels=1,
        votes=0,
        fitted=("a",),
        held_out=(name,),
        queries_by_mean=1,
        queries_by_mean_in_a_fold=1,
        reasons={name: 1},
    )
    show_learned(learned)
    assert capsys.readouterr().out.count(name) == 2
    table = make_table(name)
    table.add_column(name)
    table.add_row(name)
    make_console().print(table)
    assert capsys.readouterr().out.count(name) == 3


def test_piped_output_has_no_trailing_spaces_and_respects_columns(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A piped table wraps only at $COLUMNS, and its cells are not padded at the line end."""
    table = make_table("title")
    table.add_column("name")
    table.add_column("text")
    table.add_row("a", "word " * 30)
    table.add_row("b", "short")
    for columns in ("", "40"):
        monkeypatch.setenv("COLUMNS", columns)
        make_console().print(table)
        shown = capsys.readouterr().out.splitlines()
        assert all(line == line.rstrip() for line in shown)
        assert (len(shown) > 4) == bool(columns)
        assert (max(map(len, shown)) <= 40) == bool(columns)


def test_every_console_comes_from_make_console() -> None:
    """No module of the CLI creates its own console, which would read markup."""
    files = Path(tables.__file__).parent.glob("*.py")
    makers = [path.name for path in files if re.search(r"\bConsole\(", path.read_text())]
    assert not makers


def test_paths_are_relative_to_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Paths below the working directory are relative; others are unchanged."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown_path(tmp_path / "here" / "a\x1b" / "b") == "a\ufffd/b"
    assert shown_path(tmp_path / "other") == str(tmp_path / "other")
    assert shown_path(Path("../other")) == "../other"
    assert as_argument(tmp_path / "here" / "-x") == "./-x"
