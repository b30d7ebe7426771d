"""MT-Bench: do labels or votes bring the scores closer to human preferences?

    rocketeval run studies/mt_bench/labelled.yaml --only grade          # once, with a judge
    python studies/judgments.py studies/mt_bench/labelled.yaml \\
        studies/mt_bench/recorded/judgments/labelled.parquet
    python studies/mt_bench/supervised.py [--record]

needs MT-Bench's votes and labels (../shared/data next to the checkout), and no judge. The study
scores the stored judgments with several scorers and compares each with the human votes on six
candidates and the Arena ratings of the official ones. A scorer learns from GPT-4's scores of other
candidates, or from human votes on other queries: no response is scored by a fit that saw its own
reference data. Only queries count of which the responses of all candidates are judged. Agreement
uses a tie margin of 0.1, counts every vote once, and has intervals from resampled queries. `gain`
is the difference in agreement from the unsupervised mean on the same resamples.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rocketeval.audit.figures import Agreement, agreement_with_votes, human_agreement
from rocketeval.audit.labels import LabelCorrelation, label_correlation
from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.config import ScorerConfig, load_config
from rocketeval.grid import ScoreGrid, compare, vote_outcomes
from rocketeval.ranking.rank import rank
from rocketeval.records import Gold, Interval, Vote
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import score_answers
from rocketeval.stats.bootstrap import interval, ratio_draws
from rocketeval.stats.correlation import Correlation, correlate

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import judgments  # noqa: E402

STORED = HERE / "recorded" / "judgments" / "labelled.parquet"
MARGIN = 0.1
RESAMPLES = 2000

Method = tuple[str, Mapping[str, Any]]
METHODS: tuple[Method, ...] = (
    ("mean (unsupervised)", {"kind": "mean"}),
    ("  without normalized score", {"kind": "hard"}),
    ("Extra Trees, KL weight", {"kind": "extra_trees"}),
    ("  without KL weight", {"kind": "extra_trees", "options": {"weight": "none"}}),
    ("  without normalized score", {"kind": "extra_trees", "options": {"answers": "hard"}}),
    ("random forest, KL weight", {"kind": "random_forest"}),
    ("pooled ridge", {"kind": "pooled_ridge"}),
    ("isotonic", {"kind": "isotonic"}),
    ("select, by labels", {"kind": "select"}),
    ("votes of other queries", {"kind": "pooled_logistic", "learn_from": "votes"}),
)


@dataclass(frozen=True)
class Line:
    """One scorer, compared with human votes and ratings."""

    method: str
    queries: int
    agreement: Agreement
    gain: Interval
    """Difference in agreement with ties from the mean, on paired resamples of the queries."""
    ratings: Correlation
    labels: LabelCorrelation
    """Correlation with the labels of the training candidates, out-of-fold."""


@dataclass(frozen=True)
class Material:
    """Stored judgments, and the reference data about their queries."""

    answers: AnswerTable
    gold: Gold

    @classmethod
    def read(cls, path: Path) -> Material:
        """Return the stored judgments of the queries that are whole."""
        settings = load_config(HERE / "labelled.yaml").benchmark
        benchmark = load(open_benchmark(settings), settings)
        categories = {query.id: query.category for query in benchmark.queries if query.category}
        answers = judgments.read(path, categories)
        whole = judgments.whole_queries(answers)
        rows = [row for row, query_id in enumerate(answers.query_ids) if query_id in whole]
        # Labels and votes are checked against the responses, so these are read first.
        responses = {(one.query_id, one.candidate) for one in benchmark.responses()}
        assert responses.issuperset(zip(answers.query_ids, answers.candidates, strict=True))
        labels = [label for label in benchmark.labels() if label.query_id in whole]
        votes = [vote for vote in benchmark.votes() if vote.query_id in whole]
        return cls(answers.take(rows), Gold(labels, votes, list(benchmark.ratings())))

    def grid(self, settings: Mapping[str, Any]) -> ScoreGrid:
        """Return the scores of a scorer."""
        config = ScorerConfig.model_validate({"hold_out": 0.0, **settings})
        scores = score_answers(self.answers, self.gold, config).scores.tolist()
        return ScoreGrid.from_columns(self.answers.query_ids, self.answers.candidates, scores)

    def line(self, name: str, grid: ScoreGrid, mean: ScoreGrid) -> Line:
        """Compare one grid with the votes and the ratings."""
        ratings = {
            row.candidate: row.rating.value
            for row in rank(grid, tie_margin=MARGIN, bootstrap=50).rows
        }
        agreement = agreement_with_votes(
            grid, self.gold.votes, tie_margin=MARGIN, bootstrap=RESAMPLES
        )
        return Line(
            name,
            len(grid.query_ids),
            agreement,
            self._gain(grid, mean),
            correlate(ratings, self.gold.ratings),
            label_correlation(grid, self.gold.labels, bootstrap=RESAMPLES),
        )

    def _gain(self, grid: ScoreGrid, mean: ScoreGrid) -> Interval:
        """Return the difference in agreement between the grid and the mean, vote by vote."""
        hits = _hits(grid, self.gold.votes) - _hits(mean, self.gold.votes)
        places = {query_id: row for row, query_id in enumerate(grid.query_ids)}
        rows = [places[vote.query_id] for vote in self.gold.votes]
        totals = np.bincount(rows, weights=hits, minlength=len(places)).astype(np.float64)
        counts = np.bincount(rows, minlength=len(places)).astype(np.float64)
        draws = ratio_draws(totals[:, None], counts[:, None], times=RESAMPLES, seed=0)[:, 0]
        return interval(float(hits.mean()), draws, queries=len(places), level=0.95)


def _hits(grid: ScoreGrid, votes: Sequence[Vote]) -> np.ndarray[Any, np.dtype[np.float64]]:
    rows = {query_id: row for row, query_id in enumerate(grid.query_ids)}
    columns = {name: column for column, name in enumerate(grid.candidates)}
    at = [rows[vote.query_id] for vote in votes]
    first = grid.scores[at, [columns[vote.candidate_a] for vote in votes]]
    second = grid.scores[at, [columns[vote.candidate_b] for vote in votes]]
    outcome = compare(first, second, MARGIN)
    return (outcome == vote_outcomes(votes)).astype(np.float64)


def percent(found: Interval | None) -> str:
    """Return a share with its interval."""
    if found is None:
        return "-"
    value, low, high = (f"{100 * x:.1f}" for x in (found.value, found.low, found.high))
    return f"{value} ({low} to {high})"


def plain(found: Interval | None) -> str:
    """Return a figure with its interval."""
    return "-" if found is None else f"{found.value:.2f} ({found.low:.2f} to {found.high:.2f})"


def show(material: Material, lines: Sequence[Line]) -> str:
    """Return the table and a summary of the training data."""
    labelled = {label.candidate for label in material.gold.labels}
    labelled &= set(material.answers.candidates)
    labels = sum(label.candidate in labelled for label in material.gold.labels)
    rated = lines[0].ratings.n
    out = [
        f"{len(set(material.answers.query_ids))} queries, {len(material.gold.votes)} votes on six "
        f"candidates; {rated} candidates with an arena rating; {labels} labels of "
        f"{len(labelled)} other candidates to learn from.",
        "",
        f"{'':30}{'votes, with ties':24}{'gain over the mean':24}{'without ties':24}"
        f"{'Spearman':24}{'Kendall'}",
    ]
    for line in lines:
        spearman, kendall = line.ratings.spearman, line.ratings.kendall
        out.append(
            f"{line.method:30}{percent(line.agreement.with_ties):24}{percent(line.gain):24}"
            f"{percent(line.agreement.without_ties):24}"
            f"{plain(spearman.interval if spearman else None):24}"
            f"{plain(kendall.interval if kendall else None)}"
        )
    people = human_agreement(material.gold.votes, bootstrap=RESAMPLES)
    if people is not None:
        out.append(
            f"{'human-human agreement':30}{percent(people.with_ties):24}{'':24}"
            f"{percent(people.without_ties):24}"
        )
        out.append(
            f"{'expected upper bound':30}{percent(people.best_with_ties):24}{'':24}"
            f"{percent(people.best_without_ties):24}"
        )
    out += ["", f"{'against the labels, out-of-fold':34}{'Pearson':24}{'Spearman':24}{'RMSE':24}"]
    for line in lines:
        figures = (line.labels.pearson, line.labels.spearman, line.labels.rmse)
        out.append(f"{line.method:34}" + "".join(f"{plain(figure):24}" for figure in figures))
    return "\n".join(line.rstrip() for line in out)


def lines_of(material: Material, methods: Sequence[Method] = METHODS) -> list[Line]:
    """Return the figures of every method; the first is the mean."""
    grids = [(name, material.grid(settings)) for name, settings in methods]
    return [material.line(name, grid, grids[0][1]) for name, grid in grids]


def main() -> None:
    """Print the table, and record it with --record."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/supervised.*")
    options = parser.parse_args()
    material = Material.read(STORED)
    lines = lines_of(material)
    text = show(material, lines)
    print(text)
    if options.record:
        (HERE / "recorded" / "supervised.txt").write_text(text + "\n", encoding="utf-8")
        found = json.dumps([asdict(line) for line in lines], indent=1)
        (HERE / "recorded" / "supervised.json").write_text(found + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
