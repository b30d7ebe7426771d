"""Two runs compared: what is comparable, verdicts, flipped answers and changed responses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from rocketeval import ScriptedEngine, evaluate
from rocketeval.errors import ConfigError
from rocketeval.judges.runs import JudgedRun, open_run
from rocketeval.report.run_diff import MissingScores, diff_runs, why_not_comparable
from rocketeval.view.changes import diff_page, response_diff

ITEMS = ["Is it fine?", "Is it short?"]


def p_yes(prefix: str, item: str) -> float:
    """Return a high probability for responses that say good; the second item never moves."""
    return 0.9 if "good" in prefix and "fine" in item else 0.2


def graded(folder: Path, name: str, **changes: object) -> JudgedRun:
    """Grade eight responses of `bot` and `old`; `good` counts those of `bot` that say good.

    The responses of `bot` to the queries in `lost` get no score.
    """
    good, model = changes.get("good", 8), str(changes.get("judge", "scripted"))
    lost = changes.get("lost", ())
    rows = [
        {"question": f"{changes.get('ask', 'query')} {n}", "model": who, "output": f"{text} {n}"}
        for n in range(8)
        for who, text in (("bot", "good" if n < good else "bad"), ("old", "fair"))  # type: ignore[operator]
        if who in changes.get("candidates", ("bot", "old"))  # type: ignore[operator]
    ]
    for row in rows:
        if row["model"] == "bot" and int(row["question"].split()[-1]) in lost:  # type: ignore[operator]
            row["output"] = "lost"
    items = changes.get("items", ITEMS)
    engine = ScriptedEngine(p_yes, model=model, fail_on="lost")
    evaluate(rows, judge=engine, checklists=items, name=name, output=folder, progress=False)
    return open_run(folder / name)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, JudgedRun]:
    folder = tmp_path_factory.mktemp("runs")
    return {
        "good": graded(folder, "good"),
        "bad": graded(folder, "bad", good=1),
        "judge": graded(folder, "judge", judge="other"),
        "asked": graded(folder, "asked", ask="question"),
        "items": graded(folder, "items", items=["Is it fine?", "Is it long?"]),
        "bot": graded(folder, "bot", candidates=("bot",)),
        "head_lost": graded(folder, "head_lost", lost=(0, 1, 2)),
        "base_lost": graded(folder, "base_lost", lost=(2, 3)),
    }


def test_regression_with_its_flipped_answers(runs: dict[str, JudgedRun]) -> None:
    """The worse candidate comes first, with one worse answer per rewritten response."""
    page = diff_page(runs["bad"], runs["good"])
    assert page.refused == ""
    worse, same = page.candidates
    assert (worse.candidate, worse.mood, worse.worse, worse.same) == ("bot", "worse", 7, 1)
    assert (worse.worse_answers, worse.better_answers, worse.rewritten) == (7, 0, 7)
    assert (same.candidate, same.mood, same.effect.value) == ("old", "", 0.0)
    assert worse.effect.high < 0 < worse.before - worse.now
    assert {change.candidate for change in page.changes} == {"bot"}
    assert len(page.changes) == 7
    assert page.conclusion == "bot scores significantly lower."
    # The test of several candidates is said to be uncorrected.
    assert any("2 candidates are tested" in note for note in page.notes)
    assert [(one.before, one.now) for one in page.best] == []


def test_equal_scores_are_no_change_without_a_margin(runs: dict[str, JudgedRun]) -> None:
    """With a tie margin of 0, who was best stays best, and a rounding error is no fall."""
    ranking = runs["good"].config.ranking.model_copy(update={"tie_margin": 0.0})
    config = runs["good"].config.model_copy(update={"ranking": ranking})
    found = diff_runs(JudgedRun(runs["good"].store, config), runs["bad"])
    bot = next(one for one in found.candidates if one.candidate == "bot")
    assert bot.comparison.tie_margin == 0.0
    assert found.best == ()
    same = replace(bot.changes[0], before=2.8 + 1e-15, now=2.8)
    fall = replace(same, now=2.7)
    assert replace(bot, changes=(same, fall)).falls == (fall,)


def test_one_response_in_both_runs(runs: dict[str, JudgedRun]) -> None:
    """Texts and answers of both, the flipped item marked."""
    query = diff_page(runs["bad"], runs["good"]).changes[0].query
    found = response_diff(runs["bad"], runs["good"], query, "bot")
    assert found is not None
    assert (found.before or "")[:4] == "good"
    assert (found.now or "")[:3] == "bad"
    assert [(item.before, item.now, item.flipped) for item in found.items] == [
        (0.9, 0.2, "worse"),
        (0.2, 0.2, ""),
    ]
    assert response_diff(runs["bad"], runs["good"], "nobody", "bot") is None


@pytest.mark.parametrize(
    ("base", "why"),
    [("judge", "another judge"), ("asked", "another benchmark")],
)
def test_other_runs_are_refused(runs: dict[str, JudgedRun], base: str, why: str) -> None:
    """With the reason, in the list of baselines, on the page and on the command line."""
    assert why in why_not_comparable(runs["good"], runs[base])
    assert why in diff_page(runs["good"], runs[base]).refused
    with pytest.raises(ConfigError, match=why):
        diff_runs(runs["good"], runs[base])


def test_other_checklists_are_refused(runs: dict[str, JudgedRun]) -> None:
    """No query is left if all checklists changed."""
    assert "checklist" in diff_page(runs["good"], runs["items"]).refused


def test_other_candidates_are_named(runs: dict[str, JudgedRun]) -> None:
    """Shared candidates are compared by score, and ratings are not."""
    page = diff_page(runs["bot"], runs["good"])
    assert [line.candidate for line in page.candidates] == ["bot"]
    notes = " ".join(page.notes)
    assert "Only in the baseline, and not compared: old." in notes
    assert "Ratings depend on all candidates" in notes


def test_missing_scores_are_counted_by_side(runs: dict[str, JudgedRun]) -> None:
    """Queries without a score are in the notes, with the candidate and the run that lacks them."""
    found = diff_runs(runs["head_lost"], runs["base_lost"])
    missing = {one.candidate: one.missing for one in found.candidates}
    assert missing == {"bot": MissingScores(2, 1, 1), "old": MissingScores(0, 0, 0)}
    (note,) = (note for note in found.notes if "missing" in note)
    assert note.endswith(": bot 4 queries (2 in this run, 1 in the baseline, 1 in both).")
    assert note in diff_page(runs["head_lost"], runs["base_lost"]).notes


def test_answers_to_items_that_do_not_apply_never_flip(tmp_path: Path) -> None:
    """They count neither on the page nor in a response, whichever run says that they do not."""
    items = ["Is it fine?", {"text": "Does it compile?", "na": True}]

    def run(name: str, text: str, p_na: float) -> JudgedRun:
        engine = ScriptedEngine(
            lambda prefix, item: 0.2 if "good" in prefix else 0.9, p_na=lambda prefix, item: p_na
        )
        rows = [
            {"question": f"query {n}", "model": "bot", "output": f"{text} {n}"} for n in range(8)
        ]
        evaluate(rows, judge=engine, checklists=items, name=name, output=tmp_path, progress=False)
        return open_run(tmp_path / name)

    # Judgments are shared between runs: an equal response would have equal answers.
    base, applies, other = (
        run("base", "fair", 0.1),
        run("new", "good", 0.2),
        run("na", "no good", 0.9),
    )
    for head, flips in ((applies, 2), (other, 1)):
        page = diff_page(head, base)
        assert page.candidates[0].worse_answers == 8 * flips
        found = response_diff(head, base, page.changes[0].query, "bot")
        assert found is not None
        assert [item.flipped for item in found.items] == ["worse"] * flips + [""] * (2 - flips)
