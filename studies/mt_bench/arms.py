"""RocketEval Tables 2 and 7 on MT-Bench, from stored judgments and without a judge.

    python studies/mt_bench/grade.py checklist direct fixed sequential cot    # once, with a judge
    python studies/mt_bench/arms.py [--record]

needs MT-Bench's votes and answers (../shared/data next to the checkout). One table per turn and one
for both, one row per way to score: agreement with the votes, ties counted, the difference from the
checklist on the same votes, and agreement with the votes that are not ties. A row counts the
queries of which all six responses are judged; a missing file leaves out its row. The last three
rows count only votes on pairs that somebody else voted on: how far the checklist agrees with them,
how far people agree with each other, and with the best possible prediction of their votes.
Intervals are from 2,000 resamples of the questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judgments  # noqa: E402
from votes import (  # noqa: E402
    DATA,
    Scores,
    hits_of,
    mean_scores,
    percent,
    question_of,
    rows,
    share_of_votes,
    votes_in,
)

from rocketeval.audit.figures import (  # noqa: E402
    find_paired_votes,
    human_agreement,
    human_hits,
)
from rocketeval.grid import ScoreGrid, compare, vote_outcomes  # noqa: E402
from rocketeval.records import Interval, Vote  # noqa: E402
from rocketeval.scoring.mean import HardMeanScorer  # noqa: E402

RECORDED = HERE / "recorded"
TURNS = ("first", "second")
CHECKLIST = "checklist"
STUDY_JUDGE = "1.5b"
"""The judge whose judgments have the plain names; in int8."""
JUDGES = {
    STUDY_JUDGE: "qwen2.5-coder-1.5b-instruct-int8",
    "0.5b": "qwen2.5-coder-0.5b-instruct-int8",
    "135m": "smollm2-135m-instruct",
}
TABLES = {"first turn": ("first",), "second turn": ("second",), "both turns": ("first", "second")}
MEAN, COUNTED, LONGER, SAME = (
    "checklist, mean of p_yes",
    "checklist, yes counted",
    "longer response",
    "checklist, on the same votes",
)
OTHERS = {
    "direct": "Direct",
    "fixed": "fixed checklist",
    "sequential": "checklist, items in sequence",
    "cot": "CoT",
    "float32": "checklist, judge in float32",
}
"""The other ways, by the names of their files."""
CANDIDATES = 6
WIDTH = 30


@dataclass(frozen=True)
class Row:
    """Agreement of one way to score with the votes on the queries it has."""

    name: str
    queries: int
    votes: int
    agreement: Interval
    difference: Interval | None
    """From the checklist, on the same votes; None for the checklist itself, and for the bound."""
    decided: Interval | None
    """Agreement with votes that are not ties; equal scores count half."""

    def __str__(self) -> str:
        gain = "" if self.difference is None else percent(self.difference, "+")
        counts = f"{self.queries:>7} {self.votes:>7,}"
        values = f"{percent(self.agreement):22}{gain:25}{percent(self.decided)}"
        return f"{self.name:{WIDTH}}{counts}   {values}"


def stored(turn: str, way: str = CHECKLIST, judge: str = STUDY_JUDGE) -> Path:
    """Return the file of judgments of a turn by one way and judge; also names their run."""
    suffix = "" if judge == STUDY_JUDGE else f"_{judge}"
    return RECORDED / "judgments" / f"{turn}_turn_{way}{suffix}.parquet"


def ways(turn: str) -> dict[str, Scores]:
    """Return the scores of every way whose judgments of this turn are stored."""
    answers = judgments.read(stored(turn))
    pairs = zip(answers.query_ids, answers.candidates, strict=True)
    counted = HardMeanScorer().predict(answers).tolist()
    found = {MEAN: mean_scores(answers), COUNTED: dict(zip(pairs, counted, strict=True))}
    for way, name in OTHERS.items():
        if stored(turn, way).exists():
            found[name] = mean_scores(judgments.read(stored(turn, way)))
    found[LONGER] = lengths(turn, set(answers.candidates))
    return found


def lengths(turn: str, candidates: set[str]) -> Scores:
    """Return the length of every response of these candidates."""
    at = TURNS.index(turn)
    return {
        (f"{row['question_id']}-{at + 1}", row["model"]): float(len(row["turns"][at]))
        for row in rows("answers_official32")
        if row["model"] in candidates
    }


def whole_queries(scores: Scores) -> set[str]:
    """Return the queries with a score for every candidate."""
    known = [query for (query, _), score in scores.items() if score == score]
    return {query for query in set(known) if known.count(query) == CANDIDATES}


def rows_of(found: Mapping[str, Scores]) -> list[Row]:
    """Return a row for each way."""
    checklist = found[MEAN]
    whole = whole_queries(checklist)
    made = []
    for name, scores in found.items():
        queries = whole & whole_queries(scores)
        votes = votes_in("human_votes", queries)
        hits = hits_of(scores, votes)
        gain = None if name == MEAN else share_of_votes(hits - hits_of(checklist, votes), votes)
        share = share_of_votes(hits, votes)
        made.append(Row(name, len(queries), len(votes), share, gain, decided_share(scores, votes)))
    return made


def decided_share(scores: Scores, votes: list[Vote]) -> Interval:
    """Return the agreement with votes for one side."""
    decided = [vote for vote in votes if vote.winner != "tie"]
    first, second = (
        np.array([scores[vote.query_id, getattr(vote, side)] for vote in decided])
        for side in ("candidate_a", "candidate_b")
    )
    return share_of_votes(0.5 + 0.5 * compare(first, second, 0.0) * vote_outcomes(decided), decided)


def people(found: Mapping[str, Scores]) -> list[Row]:
    """Return how far people agree on the checklist's queries, and the checklist on the same votes.

    The last row is the bound that the votes set.
    """
    checklist = found[MEAN]
    queries = sorted(whole_queries(checklist))
    votes = votes_in("human_votes", set(queries))
    clusters = {query: question_of(query) for query in queries}
    agreement = human_agreement(votes, clusters=clusters, bootstrap=2000)
    if agreement is None:
        return []
    names = tuple(sorted({name for _, name in checklist}))
    grid = ScoreGrid(tuple(queries), names, np.zeros((len(queries), len(names))))
    paired = find_paired_votes(grid, votes)
    others = human_hits(paired).with_ties
    shared = [vote for vote, met in zip(paired.votes, np.isfinite(others), strict=True) if met]
    own = hits_of(checklist, shared)
    ahead = share_of_votes(others[np.isfinite(others)] - own, shared)
    counts = len({vote.query_id for vote in shared}), len(shared)
    made = [
        Row(SAME, *counts, share_of_votes(own, shared), None, decided_share(checklist, shared)),
        Row("human-human agreement", *counts, agreement.with_ties, ahead, agreement.without_ties),
    ]
    if agreement.best_with_ties is not None:
        best = agreement.best_with_ties, None, agreement.best_without_ties
        made.append(Row("expected upper bound", *counts, *best))
    return made


def tables() -> dict[str, list[Row]]:
    """Return the rows of every table whose checklist judgments are stored."""
    by_turn = {turn: ways(turn) for turn in TURNS if stored(turn).exists()}
    made = {}
    for title, turns in TABLES.items():
        if not set(turns) <= set(by_turn):
            continue
        first, *others = (by_turn[turn] for turn in turns)
        common = [name for name in first if all(name in other for other in others)]
        found = {
            name: {key: score for turn in turns for key, score in by_turn[turn][name].items()}
            for name in common
        }
        made[title] = [*rows_of(found), *people(found)]
    return made


def lines_of(made: Mapping[str, list[Row]]) -> list[str]:
    """Return the study as text."""
    lines = ["% of votes, ties counted"]
    for title, found in made.items():
        head = f"{title:{WIDTH}}{'queries':>7} {'votes':>7}   {'agreement':22}"
        lines += ["", f"{head}{'from the checklist':25}without ties", *map(str, found)]
    return lines


def main() -> None:
    """Print the table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/arms.*")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"MT-Bench is not in {DATA}; set ROCKETEVAL_SHARED_DATA to the folder above it.")
    made = tables()
    text = "\n".join(lines_of(made)) + "\n"
    print(text, end="")
    if given.record:
        (RECORDED / "arms.txt").write_text(text, encoding="utf-8")
        content = {title: [asdict(row) for row in found] for title, found in made.items()}
        path = RECORDED / "arms.json"
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draw(made)


def draw(made: Mapping[str, list[Row]]) -> None:
    """Write arms.svg: the agreement of every way, by turn."""
    from charts import pyplot, save

    names = list(dict.fromkeys(row.name for found in made.values() for row in found))
    picture, axes = pyplot.subplots(figsize=(8.5, 0.42 * len(names) + 1))
    colors = ("#2a6f97", "#e07a5f", "#3d405b")
    for place, (color, (title, found)) in enumerate(zip(colors, made.items(), strict=False)):
        for row in found:
            value, low, high = (
                100 * getattr(row.agreement, end) for end in ("value", "low", "high")
            )
            axes.errorbar(
                value,
                names.index(row.name) + 0.2 * (place - 1),
                xerr=[[value - low], [high - value]],
                fmt="o",
                markersize=4,
                color=color,
                label=title if row is found[0] else None,
            )
    axes.axvline(100 / 3, color="#808080", linestyle=":")
    axes.annotate("guessing", (100 / 3 + 0.3, len(names) - 0.5), fontsize=8, color="#606060")
    axes.set_yticks(range(len(names)), names, fontsize=8)
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_xlabel("agreement with votes, ties counted, %")
    axes.legend(frameon=False, fontsize=8)
    save(picture, RECORDED / "arms.svg")


if __name__ == "__main__":
    main()
