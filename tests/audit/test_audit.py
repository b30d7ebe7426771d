"""The whole audit and its advice, with much, little and no reference data."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.audit.advice import advice, on_votes
from rocketeval.audit.audit import Audit, audit
from rocketeval.audit.conclusion import conclusion, doubt, in_brief
from rocketeval.audit.figures import (
    GUESS,
    LABELER,
    LONGER,
    TIE,
    Agreement,
    MeasuredFigure,
    MeasuredVotes,
)
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Basis, Gold, Interval, Label, Rating, Vote
from rocketeval.stats.permutation import queries_needed

CONFIG = RankingConfig(bootstrap=200)


def made(
    queries: int = 40,
    candidates: int = 12,
    noise: float = 0.5,
    seed: int = 0,
) -> tuple[ScoreGrid, Gold]:
    """Return scores that follow a truth with noise; labels and two voters know it exactly."""
    rng = np.random.default_rng(seed)
    truth = np.clip(5.5 + rng.normal(size=(queries, candidates)), 1.0, 10.0)
    ids = tuple(f"q{row}" for row in range(queries))
    names = tuple(f"c{column}" for column in range(candidates))
    grid = ScoreGrid(ids, names, truth + noise * rng.normal(size=truth.shape))
    labels = [
        Label(ids[row], names[column], float(truth[row, column]))
        for row in range(queries)
        for column in range(candidates)
    ]
    votes = [
        Vote(ids[row], names[c], names[c + 1], _winner(truth[row, c] - truth[row, c + 1]), voter)
        for row in range(queries)
        for c in range(candidates - 1)
        for voter in ("v1", "v2")
    ]
    return grid, Gold(labels, votes)


def _winner(gap: float) -> str:
    return "tie" if abs(gap) < 0.1 else "a" if gap > 0 else "b"


def audited(
    grid: ScoreGrid,
    gold: Gold,
    *,
    rivals: Mapping[str, ScoreGrid] | None = None,
    basis: Mapping[tuple[str, str], Basis] | None = None,
    categories: Mapping[str, str] | None = None,
    scale: tuple[float, float] = (1.0, 10.0),
) -> Audit:
    lengths = {
        (query, name): float(100 + (row * 37 + column * 11) % 53)
        for row, query in enumerate(grid.query_ids)
        for column, name in enumerate(grid.candidates)
    }
    return audit(
        grid,
        rivals or {},
        lengths,
        grid.mean_by_candidate(),
        gold,
        basis or {},
        CONFIG,
        categories=categories,
        scale=scale,
    )


def words(found: Audit) -> str:
    return "\n".join(advice(found, queries_needed))


def test_good_judge_beats_every_baseline() -> None:
    """Methods are in order, the labeler is perfect, paired leads and advice are positive."""
    grid, gold = made()
    found = audited(grid, gold)
    assert list(found.agreement) == ["judge", LABELER, LONGER, TIE, GUESS]
    labeler = found.agreement[LABELER]
    assert labeler.with_ties is not None
    assert labeler.with_ties.value == 1.0
    for name in (LONGER, TIE, GUESS):
        lead = found.vote_differences[name].without_ties
        assert lead is not None
        assert lead.value.low > 0.0
    assert list(found.labels["all labels"]) == ["judge", LONGER]
    assert found.labels["all labels"][LONGER].rmse is None
    text = words(found)
    assert "significantly better than the baseline 'random guess' on decided votes" in text
    assert "Labels used as scores agree with 100% of the" in text
    assert "Human-human agreement is significantly higher" in text
    assert "significantly better than 'longer response' on labels" in text
    brief = conclusion(found)
    assert brief.startswith("This judge passes: ")
    assert f"of {found.agreement['judge'].used:,} human votes" in brief
    assert "more than every baseline" in brief


def test_margins_include_the_runs_own_and_follow_the_scale() -> None:
    """On a scale a ninth as wide, margins are a ninth; the run's own margin is included."""
    grid, gold = made(queries=8)
    by_margin = {row.margin: row for row in audited(grid, gold).margins}
    assert list(by_margin) == [0.0, 0.05, 0.1, 0.2, 0.5, 1.0]
    own = audited(grid, gold).agreement["judge"].with_ties
    assert by_margin[0.1].with_ties == own
    shares = [row.ties for row in by_margin.values()]
    assert shares == sorted(shares, key=lambda share: share or 0.0)
    narrow = ScoreGrid(grid.query_ids, grid.candidates, (grid.scores - 1.0) / 9.0)
    other = [row.margin for row in audited(narrow, Gold(votes=gold.votes), scale=(0, 1)).margins]
    assert other == pytest.approx([0.0, 0.005556, 0.011111, 0.022222, 0.055556, 0.1, 0.111111])


def test_random_judge_is_tied_and_gets_a_number_of_votes_to_collect() -> None:
    """A random judge is tied with the baseline, and the advice says how many votes to collect."""
    grid, gold = made(queries=20, noise=30.0, seed=4)
    found = audited(grid, Gold(votes=gold.votes))
    text = words(found)
    assert "is tied with" in text
    assert "significantly better" not in text
    assert "more votes on" in text or "over 100 times the votes" in text
    assert "not significantly more than the best baseline" in conclusion(found)


def test_inverted_judge_is_not_trusted() -> None:
    """Scores that prefer the worse response lose against guessing."""
    grid, gold = made()
    upside_down = ScoreGrid(grid.query_ids, grid.candidates, 11.0 - grid.scores)
    found = audited(upside_down, gold)
    text = words(found)
    assert "The judge is significantly worse than" in text
    assert "Do not trust its scores here." in text
    assert conclusion(found).startswith("This judge does not pass: ")


def test_weak_category_is_named_with_its_chance() -> None:
    """One of four categories is scored at random and reported as weaker."""
    grid, gold = made(queries=80)
    rng = np.random.default_rng(1)
    scores = np.array(grid.scores)
    scores[::4] = rng.normal(size=scores[::4].shape)
    kinds = {query: f"kind{row % 4}" for row, query in enumerate(grid.query_ids)}
    broken = ScoreGrid(grid.query_ids, grid.candidates, scores)
    text = words(audited(broken, Gold(votes=gold.votes), categories=kinds))
    assert "Weaker on kind0 (" in text
    assert "4 categories compared, at least one would" in text
    assert "about 10% of audits" in text
    few = {query: f"kind{row}" for row, query in enumerate(grid.query_ids)}
    one_voter = [vote for vote in gold.votes if vote.voter == "v1"]
    text = words(audited(grid, Gold(votes=one_voter), categories=few))
    assert "Every category has fewer than 20 votes" in text


def test_tied_simpler_score_is_named() -> None:
    """An identical score is reported as not different; a much worse one is not mentioned."""
    grid, gold = made()
    worse, _ = made(noise=5.0)
    worse = ScoreGrid(grid.query_ids, grid.candidates, worse.scores)
    text = words(audited(grid, gold, rivals={"same": grid, "worse": worse}))
    assert "No significant difference from the simpler score 'same' on decided votes" in text
    assert "No significant difference from the simpler score 'same' on labels" in text
    assert "'worse'" not in text
    back = words(audited(worse, gold, rivals={"better": grid}))
    assert "The simpler score 'better' is significantly better on decided votes" in back


def test_flattering_candidate_means_give_a_warning() -> None:
    """Candidate means correlate well while single responses hardly do."""
    rng = np.random.default_rng(3)
    truth = np.broadcast_to(np.linspace(4.0, 7.0, 12), (60, 12))
    scores, labels = truth + 3.0 * rng.normal(size=(2, 60, 12))
    grid, _ = made(queries=60)
    grid = ScoreGrid(grid.query_ids, grid.candidates, scores)
    gold = [
        Label(grid.query_ids[row], grid.candidates[column], float(labels[row, column]))
        for row in range(60)
        for column in range(12)
    ]
    assert "Agreement is higher for candidate means" in words(audited(grid, Gold(labels=gold)))
    noise, exact = made(queries=20, noise=30.0, seed=4)
    assert "overstate agreement, and are uncertain" in words(
        audited(noise, Gold(labels=exact.labels))
    )
    same, exact = made(noise=0.01)
    found = audited(same, Gold(labels=exact.labels))
    assert "about as closely as single responses" in words(found)
    assert conclusion(found).startswith("This judge passes: Spearman ")


def by_difficulty(noise: float) -> tuple[ScoreGrid, list[Label]]:
    """Return scores and labels that both follow the difficulty of a query."""
    rng = np.random.default_rng(2)
    difficulty = rng.normal(5.5, 2.0, size=(60, 1))
    own = 0.7 * rng.normal(size=(60, 4))
    scores = difficulty + own + noise * rng.normal(size=(60, 4))
    labels = difficulty + (own if noise < 1.0 else 0.7 * rng.normal(size=(60, 4)))
    ids, names = tuple(f"q{row}" for row in range(60)), tuple("abcd")
    return ScoreGrid(ids, names, scores), [
        Label(ids[row], names[column], float(labels[row, column]))
        for row in range(60)
        for column in range(4)
    ]


def test_difficulty_of_queries_is_no_skill() -> None:
    """A judge that does not know which response to a query is better does not pass."""
    blind, labels = by_difficulty(noise=1.0)
    found = audited(blind, Gold(labels=labels))
    judge = found.labels["all labels"]["judge"]
    assert judge.spearman is not None
    assert judge.spearman.low > 0.5
    assert "within a query" in doubt(found)
    assert conclusion(found).startswith("Undecided: ")
    assert "the labels do not back the order of candidates" in words(found)
    assert "within a query" in next(in_brief(found))
    seeing, labels = by_difficulty(noise=0.1)
    found = audited(seeing, Gold(labels=labels))
    assert doubt(found) == ""
    assert found.query_differences is not None
    assert found.query_differences["all labels"].value.low > 0.0
    assert found.query_differences["all labels"].gold == 240


@pytest.mark.parametrize("noise", [0.1, 1.0])
def test_few_queries_with_several_labels_do_not_back_an_order(noise: float) -> None:
    """With one label per query, blind and seeing judges look alike; one more label adds little."""
    grid, labels = by_difficulty(noise)
    for second in (0, 1, 5):
        found = audited(grid, Gold(labels=[*labels[::4], *labels[1 : 4 * second : 4]]))
        judge = found.labels["all labels"]["judge"]
        assert judge.responses == 60 + second
        assert "could not be tested within a query" in doubt(found)
        assert conclusion(found).startswith("Undecided: ")
        assert ("Label several responses per query" in words(found)) == (second == 0)
    ten = audited(grid, Gold(labels=[*labels[::4], *labels[1:40:4]]))
    assert "could not be tested" not in doubt(ten)


def test_baseline_that_is_not_beaten_decides() -> None:
    """The best baseline is beaten significantly; another one varies more and is not."""
    some = {
        GUESS: MeasuredFigure(Interval(0.10, 0.02, 0.18), 120, 120, 0.5),
        LONGER: MeasuredFigure(Interval(0.11, -0.01, 0.23), 120, 120, 0.7),
    }
    shares = {"judge": 0.60, LONGER: 0.49, GUESS: 0.50}
    audit_of_both = Audit(
        agreement={
            name: Agreement(*2 * [Interval(share, share - 0.08, share + 0.08)], 120, 120, 120, 0)
            for name, share in shares.items()
        },
        vote_differences={name: MeasuredVotes(one, one) for name, one in some.items()},
    )
    assert f"not significantly better than the baseline '{LONGER}'" in doubt(audit_of_both)
    brief = conclusion(audit_of_both)
    assert brief.startswith("Undecided: ")
    assert f"the baseline ('{LONGER}', 49%)" in brief
    assert f"tied with the baseline ('{LONGER}', 49%)" in next(in_brief(audit_of_both))
    assert f"tied with the baseline '{LONGER}'" in next(on_votes(audit_of_both, queries_needed))


def test_without_reference_data_the_advice_says_what_to_collect() -> None:
    """Without reference data there is no verdict, but a number of votes to collect."""
    grid, _ = made(queries=5)
    found = audited(grid, Gold())
    assert (found.agreement, found.labels, found.voters, found.margins) == ({}, {}, None, ())
    nothing, collect = advice(found, queries_needed)
    assert "no votes, labels or reference ratings" in nothing
    assert "about 52 votes" in collect
    assert "70% from guessing, 200" in collect
    assert conclusion(found).startswith("No verdict")


def test_ratings_test_only_the_order() -> None:
    """Ratings are reported, and votes or labels are still asked for."""
    grid, _ = made(queries=5)
    ratings = [Rating(name, float(place)) for place, name in enumerate(grid.candidates)]
    text = words(audited(grid, Gold(ratings=ratings)))
    assert "Reference ratings of 12 candidates: Spearman" in text
    assert "To find out, collect votes" in text
    assert "It is unknown" not in text
    few = words(audited(grid, Gold(ratings=ratings[:2])))
    assert "No conclusion from the reference ratings: only 2 candidates" in few


@pytest.mark.parametrize(
    ("means", "text"),
    [
        ((1.0, 2.0, 4.0, 3.0, 5.0), "Candidate means may overstate agreement, and are uncertain"),
        ((1.0, 2.0, 3.0, 4.0, 5.0), "for single responses: Spearman 1.00"),
    ],
    ids=["one exchanged", "all in order"],
)
def test_few_candidates_are_significant_only_in_perfect_order(
    means: tuple[float, ...], text: str
) -> None:
    """Five in order have p = 1/60; with two swapped, p = 1/12."""
    rng = np.random.default_rng(5)
    ids, names = tuple(f"q{row}" for row in range(40)), tuple("abcde")
    noise = rng.normal(size=(2, 40, 5))
    noise -= noise.mean(axis=1, keepdims=True)
    scores = np.array(means) + 8.0 * noise[0]
    labels = np.arange(5.0) + 8.0 * noise[1]
    gold = [
        Label(ids[row], names[column], float(labels[row, column]))
        for row in range(40)
        for column in range(5)
    ]
    words_of = words(audited(ScoreGrid(ids, names, scores), Gold(labels=gold)))
    assert text in words_of


def test_random_guess_uses_the_same_votes_as_the_judge() -> None:
    """Votes without names or scores count for neither."""
    grid, gold = made(queries=8)
    unknown = [Vote("?", "c0", "c1", "a"), Vote("q0", "c0", "?", "b")]
    found = audited(grid, Gold(votes=[*gold.votes, *unknown])).agreement
    judge, guess = found["judge"], found[GUESS]
    assert (guess.votes, guess.used, guess.decisive, guess.unusable) == (
        judge.votes,
        judge.used,
        judge.decisive,
        2,
    )


def test_training_data_is_refused_as_test_data() -> None:
    """Refused data is not audited, and the advice says why nothing is left."""
    grid, gold = made(queries=5)
    fitted = {(query, name): Basis.FITTED for query in grid.query_ids for name in grid.candidates}
    found = audited(grid, gold, basis=fitted)
    assert (found.agreement, found.labels) == ({}, {})
    assert "fitted on all reference data" in words(found)
    assert "fitted on all reference data" in conclusion(found)


def test_one_query_gives_no_verdict() -> None:
    """Figures have no intervals, and there is no verdict."""
    grid, gold = made(queries=1)
    found = audited(grid, gold)
    text = words(found)
    assert "Too few votes" in text
    assert "1 query; at least 6 are needed" in text
    for verdict in ("significantly", "matters", "overstate", "is higher for"):
        assert verdict not in text
    assert conclusion(found).startswith("Undecided, too few votes")


def test_all_ties_give_no_verdict() -> None:
    """No baseline is beaten or lost to; the share of ties by score is reported."""
    grid, gold = made(queries=10)
    ties = [Vote(vote.query_id, vote.candidate_a, vote.candidate_b, "tie") for vote in gold.votes]
    found = audited(grid, Gold(votes=ties))
    assert found.agreement["judge"].without_ties is None
    text = words(found)
    assert "All 220 votes are ties" in text
    for verdict in ("is significantly", "'always a tie'", "matters"):
        assert verdict not in text


def test_only_unusable_votes_give_no_figure() -> None:
    """Unknown names leave no figure, and the advice says so."""
    grid, _ = made(queries=3)
    found = audited(grid, Gold(votes=[Vote("nowhere", "x", "y", "a")]))
    assert found.agreement["judge"].unusable == 1
    assert words(found).startswith("No usable vote among 1 vote")


def test_labeler_needs_labels_of_both_responses() -> None:
    """Labels of other candidates do not count; a few labels give a figure."""
    grid, gold = made(queries=10)
    apart = Gold([each for each in gold.labels if each.candidate == "c0"], gold.votes)
    found = audited(grid, apart)
    assert LABELER not in found.agreement
    assert "No vote compares two labeled responses" in words(found)
    some = Gold([each for each in gold.labels if each.candidate in ("c0", "c1")], gold.votes)
    assert audited(grid, some).agreement[LABELER].used == 20


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_advice_never_fails_and_never_shows_nan(data: st.DataObject) -> None:
    """Any reference data on any cells gives an audit with advice."""
    queries, candidates = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 3))
    grid, gold = made(queries=queries, candidates=candidates, seed=data.draw(st.integers(0, 99)))
    scores = np.array(grid.scores).round(data.draw(st.integers(-1, 1)))
    scores[data.draw(st.integers(0, queries - 1)), 0] = np.nan
    grid = ScoreGrid(grid.query_ids, grid.candidates, scores)
    kept = Gold(
        data.draw(st.lists(st.sampled_from(gold.labels), max_size=6)),
        data.draw(st.lists(st.sampled_from(gold.votes), max_size=8)) if gold.votes else [],
        data.draw(st.sampled_from([(), (Rating("c0", 1.0),)])),
    )
    kinds = {query: f"kind{row % 2}" for row, query in enumerate(grid.query_ids)}
    found = audited(grid, kept, rivals={"same": grid}, categories=kinds)
    text = advice(found, queries_needed)
    assert text
    for sentence in (*text, conclusion(found)):
        assert sentence.endswith((".", "`."))
        assert "nan" not in sentence.split()
        assert "None" not in sentence.removeprefix("None of ")
