"""Three numbers, always; each with the mood its rule gives and words for it."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rocketeval.audit.audit import Audit
from rocketeval.audit.figures import Agreement, VoterAgreement
from rocketeval.audit.labels import LabelCorrelation
from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.records import Interval
from rocketeval.report.figures import figures, tables
from rocketeval.report.findings import Findings, losses
from rocketeval.report.model import TrustNumber
from rocketeval.report.trust import number, trust
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
    """The votes of an audit."""

    def method(interval: Interval) -> Agreement:
        return Agreement(interval, None, 1200, 1200, 0, 0)

    others = {name.replace("_", " "): method(Interval(v, v, v)) for name, v in rules.items()}
    return {"judge": method(Interval(value, low, value + 0.05)), **others}


def labels_of(
    coefficient: Interval | None, responses: int = 800, reason: str | None = None
) -> LabelCorrelation:
    """One method against labels."""
    none = Correlation(None, None, 0, (), "none")
    return LabelCorrelation(coefficient, coefficient, None, None, responses, 0, reason, none)


def numbers(load: dict[str, int] | None = None, **audit: Any) -> tuple[TrustNumber, ...]:
    """The numbers of a run with this audit."""
    score = ScoreFacts(answers=200, missing_answers=3)
    manifest = Manifest(stages=Stages(load=LoadFacts(**(load or {})), score=score))
    ranked = ranking((1, 1), (2, 3), (2, 3))
    return trust(Findings(pa.table({}), ranked, Audit(**audit), manifest=manifest))


def test_without_gold_the_run_is_said_not_to_be_audited() -> None:
    """The first number says so; the others are what every run has."""
    people, apart, usable = numbers()
    assert people.title == "Agreement with people"
    assert people.value is None
    assert people.mood == "unknown"
    assert people.verdict == "not audited: the run has neither labels nor votes"
    assert apart.verdict.startswith("2 of 3 pairs; more queries")
    assert (apart.mood, apart.value and apart.value.value) == ("fair", pytest.approx(2 / 3))
    assert (usable.mood, usable.verdict) == ("fair", "3 of 200 are missing")


@pytest.mark.parametrize(
    ("value", "low", "mood", "words"),
    [
        (0.61, 0.58, "good", ""),
        (0.57, 0.55, "fair", "; the judge is nearer to the rule"),
        (0.55, 0.50, "fair", "; the judge may do no better"),
        (0.50, 0.45, "poor", "; the judge does no better"),
        (0.61, nan, "unknown", "; too few queries to tell"),
    ],
)
def test_votes_are_held_against_the_best_trivial_rule(
    value: float, low: float, mood: str, words: str
) -> None:
    """By the low end of the interval; people among themselves are the ceiling."""
    votes = agreement(value, low, longer_response=0.536, always_a_tie=0.24, random_guess=0.333)
    voters = VoterAgreement(Interval(0.641, 0.6, 0.7), None, 9, 0)
    first, *_ = numbers(agreement=votes, voters=voters)
    assert first.mood == mood
    assert first.verdict == (
        "People agree with each other 64.1 % of the time; the best trivial rule, "
        f"“longer response”, reaches 53.6 %{words}"
    )
    assert len(first.verdict) <= 140
    assert [(each.name, each.kind) for each in first.beside] == [
        ("longer response", "floor"),
        ("always a tie", "floor"),
        ("random guess", "floor"),
        ("people among themselves", "ceiling"),
    ]
    assert "1,200 votes" in first.how
    assert "came with the benchmark" in first.how


@pytest.mark.parametrize(
    ("value", "low", "mood", "words"),
    [
        (0.61, 0.58, "good", "beats every trivial rule, the best of which is “longer response”"),
        (0.55, 0.50, "fair", "not surely better than “longer response” (53.6 %)"),
        (0.50, 0.45, "poor", "no better than “longer response” (53.6 %)"),
    ],
)
def test_votes_of_one_voter_each_are_held_against_the_rule_alone(
    value: float, low: float, mood: str, words: str
) -> None:
    """Without two votes on the same pair nobody knows how far people agree."""
    first, *_ = numbers(agreement=agreement(value, low, longer_response=0.536))
    assert first.mood == mood
    assert words in first.verdict


def test_another_way_to_read_the_judge_is_no_trivial_rule() -> None:
    """`hard yes/no` reads the same answers: it is not what the judge must beat."""
    votes = agreement(0.6, 0.58, longer_response=0.5)
    votes["hard yes/no"] = replace(votes["longer response"], with_ties=Interval(0.9, 0.9, 0.9))
    first, *_ = numbers(agreement=votes)
    assert first.mood == "good"
    assert [each.name for each in first.beside] == ["longer response"]


def test_gold_comes_first_and_three_are_enough() -> None:
    """Votes, labels, ratings: what every run has is left out then."""
    judge, floor = labels_of(Interval(0.5, 0.4, 0.6)), labels_of(Interval(0.2, 0.1, 0.3))
    spearman = Coefficient(0.94, Interval(0.94, 0.76, 0.99), 0.001)
    found = numbers(
        agreement=agreement(0.6, 0.58, longer_response=0.5),
        labels={"all labels": {"judge": judge, "longer response": floor}},
        ratings=Correlation(spearman, None, 12, (), None),
    )
    assert [number.title for number in found] == [
        "Agreement with votes, ties included",
        "Correlation with labels (Spearman)",
        "Same order as the reference ratings",
    ]
    assert [number.mood for number in found] == ["good", "fair", "good"]
    assert [each.value for each in found[1].beside] == [0.0, 0.2]
    assert all("came with the benchmark" in number.how for number in found)


def labelled(spearman: Interval, length: float = 0.1) -> TrustNumber:
    """The number of a run with labels only."""
    rules = {"longer response": labels_of(Interval(length, length, length))}
    first, *_ = numbers(labels={"all labels": {"judge": labels_of(spearman), **rules}})
    return first


@pytest.mark.parametrize(
    ("spearman", "length", "mood", "words"),
    [
        (Interval(0.8, 0.7, 0.9), 0.1, "good", "the best of which is “longer response” (0.10)"),
        (Interval(0.5, 0.4, 0.6), 0.1, "fair", "yet single scores often differ"),
        (Interval(0.2, 0.05, 0.3), 0.1, "fair", "not surely better than “longer response” (0.10)"),
        (Interval(0.2, 0.05, 0.3), -0.25, "poor", "no better than “shorter response” (0.25)"),
        (Interval(0.2, -0.1, 0.4), -0.1, "poor", "cannot be told from no relation at all"),
        (Interval(-0.03, -0.48, 0.38), -0.11, "poor", "cannot be told from no relation at all"),
        (Interval(-0.3, -0.5, -0.1), -0.4, "poor", "scores fall where labels rise"),
    ],
)
def test_labels_are_held_against_no_relation_and_length_either_way(
    spearman: Interval, length: float, mood: str, words: str
) -> None:
    """By Spearman's coefficient, as in the terminal; a judge like a coin beats nothing."""
    found = labelled(spearman, length)
    assert found.title == "Correlation with labels (Spearman)"
    assert found.value == spearman
    assert found.mood == mood
    assert words in found.verdict
    assert len(found.verdict) <= 140
    assert [(each.name, each.value) for each in found.beside] == [
        ("no relation", 0.0),
        ("longer response" if length > 0 else "shorter response", abs(length)),
    ]


def test_negative_numbers_have_a_minus_sign() -> None:
    """A hyphen is not one."""
    assert number(-0.125) == "\N{MINUS SIGN}0.12"


def test_an_order_of_too_few_candidates_is_not_called_bad() -> None:
    """Three candidates give a coefficient without an interval."""
    first, *_ = numbers(ratings=Correlation(Coefficient(1.0, None, 0.33), None, 3, (), None))
    assert (first.mood, first.verdict) == ("unknown", "too few candidates to tell")


def test_an_older_audit_gives_what_it_has() -> None:
    """Audits before voters, ratings, levels and biases were kept are no error."""
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
    assert "votes refused: the scorer was fitted to them" in none


def test_figures_that_could_not_be_computed_say_why() -> None:
    """A number is never left out for being unknown."""
    judge = labels_of(None, 1, "one labelled response")
    ratings = Correlation(None, None, 2, (), "two candidates")
    labels, order, _ = numbers(labels={"all labels": {"judge": judge}}, ratings=ratings)
    assert (labels.value, labels.mood, labels.verdict) == (None, "unknown", "one labelled response")
    assert (order.value, order.mood, order.verdict) == (None, "unknown", "two candidates")


def test_an_audit_that_is_not_made_yet_is_told_from_no_gold() -> None:
    """While a run goes its votes wait."""
    loaded = Manifest(stages=Stages(load=LoadFacts(votes=9)))
    findings = Findings(pa.table({}), ranking((1, 1)), manifest=loaded)
    people, apart, usable = trust(findings)
    assert people.verdict.startswith("not audited yet")
    assert (apart.value, apart.mood) == (None, "unknown")
    assert (usable.value, usable.mood) == (None, "unknown")


def test_gold_that_was_all_learned_from_is_told_from_no_audit() -> None:
    """Another audit would find as little."""
    loaded = Manifest(stages=Stages(load=LoadFacts(votes=9)))
    audit = Audit(refused=RefusedGold(0, 9))
    findings = Findings(pa.table({}), ranking((1, 1)), manifest=loaded, audit=audit)
    assert trust(findings)[0].verdict.startswith("nothing left to audit on")
