"""The summary of a run: tables that fit, and the command that helps most."""

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
from rocketeval.cli.missing import Missing, find_missing, missing_in_words
from rocketeval.cli.progress_text import FANCY, PLAIN
from rocketeval.cli.ranking import ranking_lines
from rocketeval.cli.run import Typed, next_step
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
    """A candidate with plausible figures."""
    rating = Interval(1400.0 - 100 * rank, 1300.0 - 100 * rank, 1500.0 - 100 * rank)
    mean = Interval(8.0 - rank, 7.5 - rank, 8.5 - rank)
    return RankedCandidate(name, rank, rank, rank + 1, rating, mean, 12, 3, group, 1, beats_next)


def ranking(*rows: RankedCandidate) -> Ranking:
    """A ranking of these rows."""
    return Ranking(rows, (), 0.1, 50, 0, 0.95, 12, 1)


@pytest.mark.parametrize("width", [44, 60, 79, 99, 119, 159, 200])
@pytest.mark.parametrize("marks", [FANCY, PLAIN])
def test_figures_are_never_cut(width: int, marks: object) -> None:
    """Names give way to figures at every width, and no line is wider than the terminal."""
    found = ranking(row(LONG, 1, 1, False), row("b\x1b[2J", 2, 1, True), row("c", 3, 2, None))
    lines = ranking_lines(found, width, marks)  # type: ignore[arg-type]
    assert max(map(cell_len, lines)) <= max(width, 56)
    shown = "\n".join(lines)
    for figure in ("1300 (1200-1400)", "7.00 (6.50-7.50)", "1 (1-2)", "c"):
        assert figure in shown
    assert shown.isprintable() or "\x1b" not in shown
    assert "a-ve" in shown
    assert "17" in shown


def test_a_bracket_joins_a_group() -> None:
    """Two that are not told apart stand in one bracket, the third stands alone."""
    found = ranking(row("a", 1, 1, False), row("b", 2, 1, True), row("c", 3, 2, None))
    assert [line[0] for line in ranking_lines(found, 79, PLAIN)] == [" ", "/", "\\", " "]


def test_a_wide_terminal_draws_intervals() -> None:
    """Each interval ends where its figures say, on one scale; a pipe gets no drawing."""
    found = ranking(row("a", 1, 1, True), row("b", 2, 2, None))
    header, first, second = ranking_lines(found, 159, PLAIN)
    assert header.split()[-2:] == ["1100", "1400"]
    assert first.endswith("-|")
    assert second.index("|-") < first.index("|-")
    assert "|-" not in "".join(ranking_lines(found, None, PLAIN))


def typed(config: str | None = None, name: str | None = None) -> Typed:
    """What a user typed."""
    return Typed(("run", "my config.yaml", "--limit", "3"), config, name)


def test_work_goes_on_with_the_same_judge_and_queries() -> None:
    """A run of a few queries has a name of its own, which the limit gives it."""
    given = replace(
        typed("my config.yaml", "demo-first-3"), judge=("--judge", "b"), run=("--limit", "3")
    )
    assert given.of_work("run", "--evaluator", "e.npz") == (
        "rocketeval run --evaluator e.npz --limit 3 --judge b 'my config.yaml'"
    )


def outcome(found: Ranking, audit: Audit) -> Outcome:
    """A finished run."""
    return Outcome(Path("runs/x"), found, audit, Path("runs/x/report.html"), Stages())


def test_failures_come_first() -> None:
    """What failed is tried again by the very same command, quoted for a shell."""
    found = outcome(ranking(row("a", 1, 1, None)), NO_GOLD)
    step = next_step(found, replace(COMPLETE, responses_not_judged=2), typed())
    assert step.command == "rocketeval run 'my config.yaml' --limit 3"


def test_without_gold_labels_come_next() -> None:
    """Nothing is known about the judge: `labels next` says what to label, of the same run."""
    found = outcome(ranking(row("a", 1, 1, True), row("b", 2, 2, None)), NO_GOLD)
    step = next_step(found, COMPLETE, typed("my config.yaml", "trial"))
    words = shlex.split(step.command)
    assert words[:5] == ["rocketeval", "labels", "next", "--top", "2"]
    assert words[-3:] == ["--name", "trial", "my config.yaml"]


def test_the_two_best_are_compared() -> None:
    """Hostile names reach the shell as single words, and never as options."""
    names = ("-rf; $(reboot) 'x'", "b")
    found = outcome(ranking(row(names[0], 1, 1, False), row(names[1], 2, 1, None)), RATED)
    step = next_step(found, COMPLETE, typed("c.yaml"))
    assert shlex.split(step.command) == ["rocketeval", "compare", "--", *names, "c.yaml"]


@pytest.mark.parametrize(("name", "beats"), [("a\x1b[2J", False), ("a", True)])
def test_otherwise_there_is_something_to_look_at(name: str, beats: bool) -> None:
    """A name that no terminal can show is not put into a command; a clear winner needs none."""
    found = outcome(ranking(row(name, 1, 1, beats), row("b", 2, 1, None)), RATED)
    assert next_step(found, COMPLETE, typed()).command == "rocketeval view runs/x"


def test_many_missing_answers_lead_to_the_doctor() -> None:
    """They never come back by themselves: the judge is examined, the one that was named."""
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


def test_a_comparison_that_could_say_nothing_is_not_advised() -> None:
    """Too few queries, or no difference at all, and the reason says which."""
    one, two = row("a", 1, 1, False), row("b", 2, 1, None)
    unknown = replace(one, mean_score=Interval(7.0, math.nan, math.nan))
    few = next_step(outcome(ranking(unknown, two), RATED), COMPLETE, typed())
    assert (few.command, "too few queries" in few.why) == ("rocketeval view runs/x", True)
    same = replace(two, mean_score=one.mean_score)
    equal = next_step(outcome(ranking(one, same), RATED), COMPLETE, typed())
    assert (equal.command, "same mean score" in equal.why) == ("rocketeval view runs/x", True)
    told = next_step(outcome(ranking(one, two), RATED), COMPLETE, typed())
    assert "how many queries" not in told.why


def test_what_was_not_judged_is_listed_once() -> None:
    """Responses without a score are those that were judged; equal responses are several."""
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


def test_names_are_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    """Brackets and colons of a candidate's name are printed as they are."""
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


def test_every_console_takes_text_as_it_is() -> None:
    """No file of the command line makes a console of its own, which would read markup."""
    files = Path(tables.__file__).parent.glob("*.py")
    makers = [path.name for path in files if re.search(r"\bConsole\(", path.read_text())]
    assert not makers


def test_paths_are_shown_from_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies below the working directory is short; the rest is whole."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert shown_path(tmp_path / "here" / "a\x1b" / "b") == "a\ufffd/b"
    assert shown_path(tmp_path / "other") == str(tmp_path / "other")
    assert shown_path(Path("../other")) == "../other"
    assert as_argument(tmp_path / "here" / "-x") == "./-x"
