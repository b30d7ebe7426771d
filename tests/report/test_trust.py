"""There are always three trust figures, each with a grade and a verdict."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rocketeval.audit.audit import Audit
from rocketeval.audit.conclusion import conclusion, doubt, in_brief
from rocketeval.audit.figures import Agreement, MeasuredFigure, MeasuredVotes, VoterAgreement
from rocketeval.audit.labels import PER_QUERY, LabelCorrelation, LevelCorrelation
from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.records import Interval
from rocketeval.report.figures import figures, tables
from rocketeval.report.findings import Findings, losses
from rocketeval.report.model import TrustNumber
from rocketeval.report.trust import number, separation, trust
from rocketeval.scoring.split import RefusedGold
from rocketeval.stats.correlation import Coefficient, Correlation
from rocketeval.store.codec import decode_finding, encode_finding
from rocketeval.store.manifest import LoadFacts, Manifest, ScoreFacts, Stages

SURE = Interval(5.0, 4.0, 6.0)


def ranking(*bounds: tuple[int, int]) -> Ranking:
    rows = tuple(
        RankedCandidate(f"c{place}", place, low, high, SURE, SURE, 9, 0, place, 1)
        for place, (low, high) in enumerate(bounds, start=1)
    )
    return Ranking(rows, (), 0.1, 100, 0, 0.95, 9, 1)


def agreement(value: float, low: float, **rules: float) -> dict[str, Agreement]:
    """Return the votes of an audit."""

    def method(interval: Interval) -> Agreement:
        return Agreement(interval, None, 1200, 1200, 0, 0)

    others = {name.replace("_", " "): method(Interval(v, v, v)) for name, v in rules.items()}
    return {"judge": method(Interval(value, low, value + 0.05)), **others}


def labels_of(
    coefficient: Interval | None, responses: int = 800, reason: str | None = None
) -> LabelCorrelation:
    """Return the correlation of one method with labels."""
    none = Correlation(None, None, 0, (), "none")
    return LabelCorrelation(coefficient, coefficient, None, None, responses, 0, reason, none)


def numbers(load: dict[str, int] | None = None, **audit: Any) -> tuple[TrustNumber, ...]:
    """Return the figures of a run with this audit."""
    score = ScoreFacts(answers=200, missing_answers=3)
    manifest = Manifest(stages=Stages(load=LoadFacts(**(load or {})), score=score))
    ranked = ranking((1, 1), (2, 3), (2, 3))
    return trust(Findings(pa.table({}), ranked, Audit(**audit), manifest=manifest))


def test_without_reference_data_agreement_is_unknown() -> None:
    """The other two figures are available in every run."""
    people, apart, usable = numbers()
    assert "Agreement" in people.title
    assert people.value is None
    assert people.mood == "unknown"
    assert "no votes or labels" in people.verdict
    assert apart.verdict.startswith("2 of 3 candidate pairs differ, 1 is tied")
    assert (apart.mood, apart.value and apart.value.value) == ("unknown", pytest.approx(2 / 3))
    assert (usable.mood, usable.verdict) == ("fair", "3 of 200 unanswered")


def test_pairs_without_common_queries_are_not_tied() -> None:
    """Only pairs of one island count; the others are named as not comparable."""
    found = ranking((1, 3), (1, 3), (2, 4), (2, 4))
    rows = [replace(row, island=1 + place % 2) for place, row in enumerate(found.rows)]
    apart = separation(replace(found, rows=tuple(rows), significant_pairs=2, islands=2), None)
    assert apart.value == Interval(1.0, 1.0, 1.0)
    assert "tied" not in apart.verdict
    assert apart.verdict.startswith("2 of 2 candidate pairs differ. 4 more share no queries")
    alone = separation(replace(found, rows=tuple(rows[:2]), islands=2), None)
    assert (alone.value, "share queries" in alone.verdict) == (None, True)


@pytest.mark.parametrize(
    ("value", "low", "mood", "words"),
    [
        (0.61, 0.58, "good", "above the best baseline, "),
        (0.57, 0.55, "fair", "above every baseline, but closer to "),
        (0.55, 0.50, "poor", "not significantly better"),
        (0.50, 0.45, "poor", "no better"),
        (0.61, nan, "unknown", "too few queries"),
    ],
)
def test_votes_are_compared_with_the_best_baseline(
    value: float, low: float, mood: str, words: str
) -> None:
    """By the lower bound of the interval; the verdict also gives human-human agreement."""
    votes = agreement(value, low, longer_response=0.536, always_a_tie=0.24, random_guess=0.333)
    voters = VoterAgreement(Interval(0.641, 0.6, 0.7), None, 9, 0)
    first, *_ = numbers(agreement=votes, voters=voters)
    assert first.mood == mood
    assert first.verdict.startswith(words)
    assert "“longer response” (53.6%)" in first.verdict
    assert "human-human agreement" in first.verdict
    assert "64.1%" in first.verdict
    assert len(first.verdict) <= 140
    assert [(each.name, each.kind) for each in first.beside] == [
        ("longer response", "floor"),
        ("always a tie", "floor"),
        ("random guess", "floor"),
        ("human-human agreement", "people"),
    ]
    assert "1,200 votes" in first.how


@pytest.mark.parametrize(
    ("value", "low", "mood", "words"),
    [
        (0.61, 0.58, "good", "above the best baseline, “longer response”"),
        (
            0.55,
            0.50,
            "poor",
            "not significantly better than the baseline “longer response” (53.6%)",
        ),
        (0.50, 0.45, "poor", "no better than the baseline “longer response” (53.6%)"),
    ],
)
def test_single_votes_are_compared_with_baselines_only(
    value: float, low: float, mood: str, words: str
) -> None:
    """Human-human agreement needs two votes on the same pair."""
    first, *_ = numbers(agreement=agreement(value, low, longer_response=0.536))
    assert first.mood == mood
    assert words in first.verdict


@pytest.mark.parametrize(
    ("value", "low", "difference", "mood", "warned"),
    [
        (0.61, 0.58, Interval(0.02, -0.01, 0.05), "poor", True),
        (0.61, 0.58, Interval(0.07, 0.01, 0.1), "good", False),
        (0.56, 0.50, Interval(0.02, -0.02, 0.06), "poor", True),
        (0.56, 0.50, Interval(0.02, 0.01, 0.03), "fair", False),
    ],
)
def test_grade_agrees_with_the_warning(
    value: float, low: float, difference: Interval, mood: str, warned: bool
) -> None:
    """Whether the judge passes is decided by the paired comparison, as in the first sentence."""
    votes = agreement(value, low, longer_response=0.536)
    over = MeasuredVotes(MeasuredFigure(difference, 80, 1200, 0.1), None)
    audit = Audit(agreement=votes, vote_differences={"longer response": over})
    manifest = Manifest(stages=Stages(score=ScoreFacts(answers=200)))
    first, *_ = trust(Findings(pa.table({}), ranking((1, 1), (2, 2)), audit, manifest=manifest))
    assert (first.mood, bool(doubt(audit))) == (mood, warned)
    assert ("not significantly better" in first.verdict) == warned


def test_other_readings_of_the_judge_are_not_baselines() -> None:
    """`hard yes/no` uses the same answers, so the judge need not beat it."""
    votes = agreement(0.6, 0.58, longer_response=0.5)
    votes["hard yes/no"] = replace(votes["longer response"], with_ties=Interval(0.9, 0.9, 0.9))
    first, *_ = numbers(agreement=votes)
    assert first.mood == "good"
    assert [each.name for each in first.beside] == ["longer response"]


def test_reference_data_comes_first() -> None:
    """Votes, labels and ratings replace the figures that every run has."""
    judge, floor = labels_of(Interval(0.5, 0.4, 0.6)), labels_of(Interval(0.2, 0.1, 0.3))
    spearman = Coefficient(0.94, Interval(0.94, 0.76, 0.99), 0.001)
    found = numbers(
        agreement=agreement(0.6, 0.58, longer_response=0.5),
        labels={"all labels": {"judge": judge, "longer response": floor}},
        ratings=Correlation(spearman, None, 12, (), None),
    )
    titles = [number.title for number in found]
    for title, word in zip(titles, ("votes", "labels", "reference ratings"), strict=True):
        assert word in title
    assert [number.mood for number in found] == ["good", "fair", "good"]
    assert [each.value for each in found[1].beside] == [0.0, 0.2]


def labeled(spearman: Interval, length: float = 0.1) -> TrustNumber:
    """Return the first figure of a run with labels only."""
    rules = {"longer response": labels_of(Interval(length, length, length))}
    first, *_ = numbers(labels={"all labels": {"judge": labels_of(spearman), **rules}})
    return first


@pytest.mark.parametrize(
    ("spearman", "length", "mood", "words"),
    [
        (Interval(0.8, 0.7, 0.9), 0.1, "good", "the best baseline, “longer response” (0.10)"),
        (Interval(0.5, 0.4, 0.6), 0.1, "fair", "but single scores often differ"),
        (Interval(0.2, 0.05, 0.3), 0.1, "poor", "not significantly better"),
        (Interval(0.2, 0.05, 0.3), -0.25, "poor", "no better than the baseline “shorter response”"),
        (Interval(0.2, -0.1, 0.4), -0.1, "poor", "no significant correlation"),
        (Interval(-0.03, -0.48, 0.38), -0.11, "poor", "no significant correlation"),
        (Interval(-0.3, -0.5, -0.1), -0.4, "poor", "scores fall as labels rise"),
    ],
)
def test_labels_are_compared_with_no_correlation_and_length(
    spearman: Interval, length: float, mood: str, words: str
) -> None:
    """By Spearman's coefficient, as in the terminal."""
    found = labeled(spearman, length)
    assert "Spearman" in found.title
    assert found.value == spearman
    assert found.mood == mood
    assert words in found.verdict
    assert len(found.verdict) <= 140
    assert [(each.name, each.value) for each in found.beside] == [
        ("no correlation", 0.0),
        ("longer response" if length > 0 else "shorter response", abs(length)),
    ]


@pytest.mark.parametrize(
    ("spearman", "over", "words"),
    [
        (Interval(0.2, -0.1, 0.4), Interval(0.4, 0.2, 0.6), "no significant positive correlation"),
        (Interval(-0.3, -0.5, -0.1), Interval(0.3, 0.1, 0.5), "no significant positive"),
        (Interval(0.4, 0.2, 0.6), Interval(0.1, -0.1, 0.3), "not significantly better"),
        (Interval(0.4, 0.2, 0.6), Interval(0.3, 0.1, 0.5), ""),
    ],
)
def test_warning_about_labels_gives_the_reason(
    spearman: Interval, over: Interval, words: str
) -> None:
    """A judge that is better than 'longer response' is never said not to be."""
    found = {"judge": labels_of(spearman), "longer response": labels_of(Interval(0.0, -0.1, 0.1))}
    differences = {"longer response": MeasuredFigure(over, 80, 800, 0.1)}
    audit = Audit(labels={"all labels": found}, label_differences={"all labels": differences})
    said = doubt(audit)
    assert words in said if words else said == ""
    assert ("longer response" in said) == (words == "not significantly better")
    manifest = Manifest(stages=Stages(score=ScoreFacts(answers=200)))
    first, *_ = trust(Findings(pa.table({}), ranking((1, 1), (2, 2)), audit, manifest=manifest))
    assert (first.mood == "poor") == bool(said)


@pytest.mark.parametrize(
    ("within", "over_length", "words"),
    [
        (Interval(-0.1, -0.3, 0.1), Interval(0.2, 0.1, 0.3), "no significant positive correlation"),
        (Interval(0.3, nan, nan), Interval(0.3, nan, nan), "could not be tested"),
        (None, None, "could not be tested"),
        (Interval(0.3, 0.1, 0.5), Interval(0.1, -0.1, 0.3), "response length"),
        (Interval(0.3, 0.1, 0.5), Interval(0.2, 0.1, 0.3), ""),
    ],
)
def test_labels_must_back_the_order_within_a_query(
    within: Interval | None, over_length: Interval | None, words: str
) -> None:
    """A correlation over all responses may come from queries that are harder than others."""
    level = LevelCorrelation(None, within, None, 40 if within else 0, 0 if within else 40, None)
    found = labels_of(Interval(0.8, 0.7, 0.9))
    over = MeasuredFigure(Interval(0.8, 0.7, 0.9), 40, 800, 0.1)
    audit = Audit(
        labels={"all labels": {"judge": replace(found, levels={PER_QUERY: level})}},
        label_differences={"all labels": {"longer response": over}},
        query_differences=over_length and {"all labels": MeasuredFigure(over_length, 40, 800, 0.1)},
    )
    manifest = Manifest(stages=Stages(score=ScoreFacts(answers=200)))
    first, *_ = trust(Findings(pa.table({}), ranking((1, 1), (2, 2)), audit, manifest=manifest))
    assert (first.mood, bool(doubt(audit))) == (("poor", True) if words else ("good", False))
    for text in (doubt(audit), first.verdict, conclusion(audit), next(in_brief(audit))):
        assert words in text
        assert bool(words) == ("within a query" in text.replace(" 0.30 within a query", ""))
    assert len(first.verdict) <= 140
    assert conclusion(audit).startswith("Undecided" if words else "This judge passes")


def test_negative_numbers_have_a_minus_sign() -> None:
    """Not a hyphen."""
    assert number(-0.125) == "\N{MINUS SIGN}0.12"


def test_too_few_candidates_give_no_verdict_on_the_order() -> None:
    """Three candidates are in the same order by chance in a third of cases."""
    first, *_ = numbers(ratings=Correlation(Coefficient(1.0, None, 0.33), None, 3, (), None))
    assert (first.mood, first.verdict) == ("unknown", "too few candidates (3) to exclude chance")


@pytest.mark.parametrize(
    ("spearman", "candidates", "mood", "words"),
    [
        (Coefficient(1.0, None, 0.0001), 12, "good", "the same order"),
        (Coefficient(1.0, None, 0.017), 5, "good", "the same order"),
        (Coefficient(0.9, None, 0.005), 8, "fair", "similar order"),
        (Coefficient(0.4, Interval(0.4, -0.2, 0.8), 0.2), 12, "poor", "no significant"),
        (Coefficient(-1.0, None, 0.0001), 12, "poor", "reverses"),
    ],
)
def test_order_is_judged_by_its_p_value(
    spearman: Coefficient, candidates: int, mood: str, words: str
) -> None:
    """A perfect order has no interval, and is better than a random one."""
    ratings = Correlation(spearman, None, candidates, (), None)
    first, *_ = numbers(ratings=ratings)
    assert first.mood == mood
    assert words in first.verdict
    assert bool(doubt(Audit(ratings=ratings))) == (mood == "poor")


def test_older_audits_are_readable() -> None:
    """Audits without voters, ratings, levels and biases raise no error."""
    kept = encode_finding(Audit(agreement=agreement(0.6, 0.58, longer_response=0.5)))
    old = {"agreement": kept["agreement"]}
    audit = decode_finding(Audit, old, Path("audit.json"))
    findings = Findings(pa.table({"score": [1.0]}), ranking((1, 1)), audit)
    assert trust(findings)[0].mood == "good"
    assert len(figures(audit)) == 4
    assert tables(audit) == ()
    without_levels = {"all labels": {"judge": labels_of(Interval(0.5, 0.4, 0.6))}}
    assert numbers(labels=without_levels)[0].mood == "fair"
    load = LoadFacts(votes=9, labels=4, queries=1, candidates=1, responses=1)
    manifest = Manifest(stages=Stages(load=load))
    lost, none = losses(replace(findings, manifest=manifest), yes_no=True)
    assert lost == ()
    assert any(note.startswith("votes refused") for note in none)


def test_unknown_figures_give_a_reason() -> None:
    """A figure is never left out because it is unknown."""
    judge = labels_of(None, 1, "one labeled response")
    ratings = Correlation(None, None, 2, (), "two candidates")
    labels, order, _ = numbers(labels={"all labels": {"judge": judge}}, ratings=ratings)
    assert (labels.value, labels.mood, labels.verdict) == (None, "unknown", "one labeled response")
    assert (order.value, order.mood, order.verdict) == (None, "unknown", "two candidates")


def test_a_missing_audit_differs_from_missing_reference_data() -> None:
    """The votes of an unfinished run are not audited yet."""
    loaded = Manifest(stages=Stages(load=LoadFacts(votes=9)))
    findings = Findings(pa.table({}), ranking((1, 1)), manifest=loaded)
    people, apart, usable = trust(findings)
    assert people.verdict.startswith("not audited yet")
    assert (apart.value, apart.mood) == (None, "unknown")
    assert (usable.value, usable.mood) == (None, "unknown")


def test_reference_data_used_for_learning_is_reported() -> None:
    """Another audit would have no reference data either."""
    loaded = Manifest(stages=Stages(load=LoadFacts(votes=9)))
    audit = Audit(refused=RefusedGold(0, 9))
    findings = Findings(pa.table({}), ranking((1, 1)), manifest=loaded, audit=audit)
    assert trust(findings)[0].verdict.startswith("not measured: the scorer learned")
