"""Which gold a scorer learns from, and which is kept from it to test it on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.config import ScorerConfig
from rocketeval.errors import ConfigError
from rocketeval.names import did_you_mean
from rocketeval.records import Gold, Vote
from rocketeval.scoring.labelled import mean_by_candidate

FEWEST_CANDIDATES = 2
"""Labelled candidates without which nothing can be learned and tested."""


@dataclass(frozen=True, slots=True)
class Split:
    """The gold of a run, cut in two."""

    learned: Gold
    """What the scorer is fitted to."""
    fitted: tuple[str, ...]
    """Candidates whose labels are learned from, sorted; with votes, those voted on."""
    held_out: tuple[str, ...]
    """Labelled candidates that are kept from the scorer, sorted."""


def split_gold(gold: Gold, candidates: Collection[str], config: ScorerConfig) -> Split:
    """Return what the scorer learns from: labels of some candidates, or votes.

    Labels are held out by candidate. Votes are not held out: every query's scores come from a fit
    without its votes (`crossfit`), which leaves all votes to test on.
    """
    _refuse_unknown(config.fit_on or (), candidates)
    if config.learn_from == "votes":
        votes = [vote for vote in gold.votes if _votes_within(vote, config.fit_on, candidates)]
        voted = {name for vote in votes for name in (vote.candidate_a, vote.candidate_b)}
        _refuse_too_few({vote.query_id for vote in votes}, "queries with votes", "votes", config)
        return Split(Gold(votes=votes), tuple(sorted(voted)), ())
    labels = [label for label in gold.labels if label.candidate in candidates]
    means = mean_by_candidate(labels)
    fitted = _fitted(means, config)
    held_out = tuple(sorted(set(means) - fitted))
    learned = Gold(labels=[label for label in labels if label.candidate in fitted])
    return Split(learned, tuple(sorted(fitted)), held_out)


def _fitted(means: dict[str, float], config: ScorerConfig) -> set[str]:
    if config.fit_on is not None:
        unlabelled = sorted(set(config.fit_on) - set(means))
        if unlabelled:
            raise ConfigError(
                f"scorer.fit_on names candidates without a label: {', '.join(unlabelled)}.",
                hint=did_you_mean(unlabelled[0], sorted(means))
                if means
                else "The run has no labels.",
            )
        fitted = set(config.fit_on)
    else:
        fitted = set(means) - _spread_choice(means, config.hold_out, config.seed)
    _refuse_too_few(fitted, "labelled candidates to learn from", "labels", config)
    return fitted


def _spread_choice(means: dict[str, float], share: float, seed: int) -> set[str]:
    """Return a share of the candidates that spreads over the range of their mean labels.

    Sorted by mean label and cut into as many stretches as are wanted; one of each, at random.
    """
    wanted = round(share * len(means))
    if share > 0.0 and len(means) > FEWEST_CANDIDATES:
        wanted = max(1, wanted)
    wanted = max(0, min(wanted, len(means) - FEWEST_CANDIDATES))
    ordered = sorted(means, key=lambda name: (means[name], name))
    random = np.random.default_rng(seed)
    stretches = np.array_split(np.arange(len(ordered)), max(wanted, 1))
    return {ordered[int(random.choice(stretch))] for stretch in stretches[:wanted]}


def _votes_within(vote: Vote, fit_on: Sequence[str] | None, candidates: Collection[str]) -> bool:
    allowed = candidates if fit_on is None else fit_on
    return vote.candidate_a in allowed and vote.candidate_b in allowed


def _refuse_unknown(fit_on: Iterable[str], candidates: Collection[str]) -> None:
    for name in fit_on:
        if name not in candidates:
            raise ConfigError(
                f"scorer.fit_on names {name!r}, which is no candidate of this run.",
                hint=did_you_mean(name, sorted(candidates)),
            )


def _refuse_too_few(found: Collection[str], what: str, kind: str, config: ScorerConfig) -> None:
    if len(found) >= FEWEST_CANDIDATES:
        return
    raise ConfigError(
        f"The scorer {config.kind!r} learns from {kind}, and there are {len(found)} {what}; "
        f"{FEWEST_CANDIDATES} are needed.",
        hint=f"Add {kind} to the benchmark, or take the scorer `mean`, which learns nothing.",
    )
