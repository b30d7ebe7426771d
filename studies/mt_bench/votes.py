"""How far do scores learned from votes agree with people? From stored judgments, in seconds.

    python studies/judgments.py studies/mt_bench/first_turn.yaml \\
        studies/mt_bench/recorded/judgments/first_turn_float32.parquet      # after the run, once
    python studies/mt_bench/votes.py [--record]

needs MT-Bench's votes and questions (../shared/data next to the checkout), and no judge. Fixed
before the judgments were read: the arms below; ten folds of questions, five inner folds for the
penalties; agreement with all votes (win, loss or tie at the run's margin), intervals from 2,000
resamples of the questions, differences paired with the mean. In the rows "new", the scorer also
never saw a vote on either candidate of the pair that it predicts. Added later: p values from
flipped signs of whole questions, and Holm's correction for the six comparisons.
"""

from __future__ import annotations

import argparse
import gzip
import itertools
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.audit.figures import human_agreement
from rocketeval.audit.votes import verdict_agreement
from rocketeval.config import ScorerConfig
from rocketeval.grid import compare, vote_outcomes
from rocketeval.records import Gold, Interval, Vote
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import held_out_scores
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.votes import PooledLogisticScorer
from rocketeval.stats.bootstrap import interval, ratio_draws
from rocketeval.stats.permutation import holm_list, sign_flip_p

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import judgments  # noqa: E402

DATA = (
    Path(os.environ.get("ROCKETEVAL_SHARED_DATA", HERE.parents[2] / "shared" / "data")) / "mt_bench"
)
MARGIN, FOLDS, RESAMPLES = 0.1, 10, 2000
MEAN = "mean of answers"
WIDTH = 46
"""Width of the column of names."""
WINNERS = {"model_a": "a", "model_b": "b"}
Scores = Mapping[tuple[str, str], float]


@dataclass(frozen=True)
class Arm:
    """One way to score."""

    name: str
    categories: bool
    prior: bool


ARMS = (
    Arm("votes", categories=False, prior=False),
    Arm("votes, ties by category", categories=True, prior=False),
    Arm("votes, candidate prior", categories=False, prior=True),
    Arm("votes, ties by category, candidate prior", categories=True, prior=True),
)


def rows(name: str) -> Iterable[dict[str, Any]]:
    """Yield the rows of one of MT-Bench's files."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def votes_in(name: str, known: set[str]) -> list[Vote]:
    """Return the votes or verdicts on these queries."""
    return [
        Vote(query, row["model_a"], row["model_b"], WINNERS.get(row["winner"], "tie"), row["judge"])
        for row in rows(name)
        if (query := f"{row['question_id']}-{row['turn']}") in known
    ]


@dataclass(frozen=True)
class Study:
    """Stored answers and the votes on them."""

    answers: AnswerTable
    votes: list[Vote]
    verdicts: list[Vote]
    clusters: dict[str, str]

    @classmethod
    def read(cls, path: Path) -> Study:
        """Return the study of a file of judgments; only queries with all responses count."""
        questions = {str(row["question_id"]): row["category"] for row in rows("questions")}
        answers = judgments.read(path)
        whole = judgments.whole_queries(answers)
        taken = answers.take([at for at, query in enumerate(answers.query_ids) if query in whole])
        categories = {query: questions[question_of(query)] for query in whole}
        clusters = {query: question_of(query) for query in whole}
        table = AnswerTable(
            taken.query_ids, taken.candidates, taken.p_yes, taken.offsets, categories
        )
        voted, verdicts = (votes_in(name, whole) for name in ("human_votes", "gpt4_pair_votes"))
        return cls(table, voted, verdicts, clusters)

    def of(self, arm: Arm | None) -> Scores:
        """Return out-of-fold scores; of the mean without an arm."""
        table = self._table(arm)
        if arm is None:
            return mean_scores(table)
        config = ScorerConfig(
            kind="pooled_logistic",
            learn_from="votes",
            folds=FOLDS,
            tie_margin=MARGIN,
            options={"candidate_prior": True} if arm.prior else {},
        )
        gold = Gold(votes=self.votes, clusters=self.clusters)
        return _by_response(table, held_out_scores(config, table, gold).scores)

    def unseen_hits(self, arm: Arm) -> NDArray[np.float64]:
        """Return the hits of fits without votes on the question or on either candidate."""
        table = self._table(arm)
        names = sorted(set(table.candidates))
        questions = sorted(set(self.clusters.values()), key=int)
        shuffled = np.random.default_rng(0).permutation(len(questions))
        fold = {questions[at]: place % FOLDS for place, at in enumerate(shuffled)}
        found = np.full(len(self.votes), np.nan)
        for left_out in range(FOLDS):
            own = np.array([fold[self.clusters[vote.query_id]] == left_out for vote in self.votes])
            for pair in itertools.combinations(names, 2):
                asked = own & np.array(
                    [{vote.candidate_a, vote.candidate_b} == set(pair) for vote in self.votes]
                )
                if not asked.any():
                    continue
                seen = [
                    vote
                    for vote, unseen in zip(self.votes, own, strict=True)
                    if not unseen and not {vote.candidate_a, vote.candidate_b} & set(pair)
                ]
                scorer = PooledLogisticScorer(tie_margin=MARGIN, candidate_prior=arm.prior)
                scorer.fit(table, Gold(votes=seen, clusters=self.clusters))
                scores = _by_response(table, scorer.predict(table))
                wanted = [vote for vote, hit in zip(self.votes, asked, strict=True) if hit]
                found[asked] = hits_of(scores, wanted)
        return found

    def share(self, hits: NDArray[np.float64]) -> Interval:
        """Return the mean over votes, with its interval from resampled questions."""
        return share_of_votes(hits, self.votes)

    def _table(self, arm: Arm | None) -> AnswerTable:
        table = self.answers
        if arm is None or arm.categories:
            return table
        return AnswerTable(table.query_ids, table.candidates, table.p_yes, table.offsets)


def hits_of(scores: Scores, votes: list[Vote]) -> NDArray[np.float64]:
    """Return 1 for each vote that the scores agree with."""
    first = np.array([scores[vote.query_id, vote.candidate_a] for vote in votes])
    second = np.array([scores[vote.query_id, vote.candidate_b] for vote in votes])
    return (compare(first, second, MARGIN) == vote_outcomes(votes)).astype(np.float64)


def share_of_votes(hits: NDArray[np.float64], votes: Sequence[Vote]) -> Interval:
    """Return the mean over votes, with its interval from resampled questions."""
    totals = by_question(hits, votes)
    counts = by_question(np.ones(len(votes)), votes)
    draws = ratio_draws(totals[:, None], counts[:, None], times=RESAMPLES, seed=0)[:, 0]
    return interval(float(hits.mean()), draws, queries=len(totals), level=0.95)


def by_question(values: NDArray[np.float64], votes: Sequence[Vote]) -> NDArray[np.float64]:
    """Return the sum of the votes' values for each question."""
    questions = [question_of(vote.query_id) for vote in votes]
    places = {name: place for place, name in enumerate(sorted(set(questions)))}
    at = [places[name] for name in questions]
    return np.bincount(at, weights=values).astype(np.float64)


def question_of(query: str) -> str:
    """Return the question of a query, which both of its turns share."""
    return query.split("-", maxsplit=1)[0]


def mean_scores(answers: AnswerTable) -> Scores:
    """Return the mean score of each response."""
    return _by_response(answers, MeanScorer().predict(answers))


def _by_response(table: AnswerTable, scores: NDArray[np.float64]) -> Scores:
    pairs = zip(table.query_ids, table.candidates, strict=True)
    return dict(zip(pairs, scores.tolist(), strict=True))


def percent(found: Interval | None, sign: str = "") -> str:
    """Return a share in percent with its interval."""
    if found is None:
        return "-"
    value, low, high = (100 * each for each in (found.value, found.low, found.high))
    return f"{value:{sign}.1f} ({low:{sign}.1f} to {high:{sign}.1f})"


def rows_without_a_fit(study: Study) -> dict[str, Interval | None]:
    """Return the agreement of the mean, GPT-4 and people, and the upper bound."""
    people = human_agreement(study.votes, clusters=study.clusters, bootstrap=RESAMPLES)
    gpt4 = verdict_agreement(study.verdicts, study.votes, bootstrap=RESAMPLES)
    return {
        MEAN: study.share(hits_of(study.of(None), study.votes)),
        "GPT-4, asked about both responses": gpt4 and gpt4.with_ties,
        "human-human agreement": people and people.with_ties,
        "expected upper bound": people and people.best_with_ties,
    }


def learned_row(study: Study, arm: Arm, *, new: bool = False) -> tuple[str, float]:
    """Return the row of scores that are learned from votes on other questions, and its p value."""
    hits = study.unseen_hits(arm) if new else hits_of(study.of(arm), study.votes)
    gains = hits - hits_of(study.of(None), study.votes)
    p_value = sign_flip_p(by_question(gains, study.votes))
    shares = f"{percent(study.share(hits)):24}{percent(study.share(gains), '+'):24}"
    return f"{arm.name + ('; new' if new else ''):{WIDTH}}{shares}{p_value:.3f}", p_value


def table(study: Study) -> str:
    """Return the table."""
    first, *last = [
        f"{name:{WIDTH}}{percent(found)}" for name, found in rows_without_a_fit(study).items()
    ]
    learned = [learned_row(study, arm) for arm in ARMS]
    learned += [learned_row(study, arm, new=True) for arm in ARMS[1::2]]
    corrected = holm_list(np.array([p_value for _, p_value in learned])).tolist()
    lines = [
        f"{len(study.clusters)} queries, {len(study.votes)} votes",
        "",
        f"{'% of votes, ties counted':{WIDTH}}{'agreement':24}{'gain over the mean':24}p",
        first,
        *(row for row, _ in learned),
        *last,
        "",
        "p of the six gains, corrected for six comparisons (Holm), from top to bottom:",
        ", ".join(f"{p_value:.3f}" for p_value in corrected),
    ]
    return "\n".join(lines)


def main() -> None:
    """Print the table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "--judgments",
        type=Path,
        default=HERE / "recorded" / "judgments" / "first_turn_float32.parquet",
    )
    parser.add_argument("--record", action="store_true", help="write recorded/votes.txt")
    args = parser.parse_args()
    text = table(Study.read(args.judgments))
    print(text)
    if args.record:
        (HERE / "recorded" / "votes.txt").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
