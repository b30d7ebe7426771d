"""RocketEval Tables 2 and 7 on MT-Bench's first turn, from stored judgments and without a judge.

    rocketeval run studies/mt_bench/first_turn_direct.yaml --only grade
    python studies/judgments.py studies/mt_bench/first_turn_direct.yaml \
        studies/mt_bench/recorded/judgments/first_turn_direct.parquet
    python studies/mt_bench/arms.py [--record]

needs MT-Bench's votes and answers (../shared/data next to the checkout). One row per way to score:
agreement with the votes, ties counted, and the difference from the checklist on the same votes. A
row counts the queries of which all six responses are judged; a missing file leaves out its row.
Intervals are from 2,000 resamples of the questions.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judgments  # noqa: E402
from votes import (  # noqa: E402
    DATA,
    Scores,
    hits_of,
    mean_scores,
    percent,
    rows,
    share_of_votes,
    votes_in,
)

from rocketeval.audit.figures import human_agreement  # noqa: E402
from rocketeval.records import Interval, Vote  # noqa: E402
from rocketeval.scoring.mean import HardMeanScorer  # noqa: E402

RECORDED = HERE / "recorded"
STORED = RECORDED / "judgments"
CHECKLIST = HERE.parent / "judges" / "recorded" / "first_turn_int8.parquet"
"""The whole first turn by the judge of these studies, the 1.5B one in int8."""
MEAN, COUNTED, FLOAT32, DIRECT, LONGER = (
    "checklist, mean of p_yes",
    "checklist, yes counted",
    "checklist, judge in float32",
    "Direct",
    "longer response",
)
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
    """From the checklist, on the same votes; None for the checklist itself."""

    def __str__(self) -> str:
        gain = "" if self.difference is None else percent(self.difference, "+")
        counts = f"{self.queries:>7} {self.votes:>7,}"
        return f"{self.name:{WIDTH}}{counts}   {percent(self.agreement):22}{gain}".rstrip()


def ways() -> Iterator[tuple[str, Scores]]:
    """Yield the scores of every way whose judgments are stored."""
    answers = judgments.read(CHECKLIST)
    yield MEAN, mean_scores(answers)
    pairs = zip(answers.query_ids, answers.candidates, strict=True)
    yield COUNTED, dict(zip(pairs, HardMeanScorer().predict(answers).tolist(), strict=True))
    for name, file in ((DIRECT, "first_turn_direct"), (FLOAT32, "first_turn")):
        if (STORED / f"{file}.parquet").exists():
            yield name, mean_scores(judgments.read(STORED / f"{file}.parquet"))
    yield LONGER, lengths(set(answers.candidates))


def lengths(candidates: set[str]) -> Scores:
    """Return the length of every first response of these candidates."""
    return {
        (f"{row['question_id']}-1", row["model"]): float(len(row["turns"][0]))
        for row in rows("answers_official32")
        if row["model"] in candidates
    }


def whole_queries(scores: Scores) -> set[str]:
    """Return the queries with a score for every candidate."""
    known = [query for (query, _), score in scores.items() if score == score]
    return {query for query in set(known) if known.count(query) == CANDIDATES}


def table() -> tuple[list[Row], list[Vote]]:
    """Return all rows, and the votes on the checklist's queries."""
    found = dict(ways())
    checklist = found[MEAN]
    whole = whole_queries(checklist)
    made = []
    for name, scores in found.items():
        queries = whole & whole_queries(scores)
        votes = votes_in("human_votes", queries)
        hits = hits_of(scores, votes)
        gain = None if name == MEAN else share_of_votes(hits - hits_of(checklist, votes), votes)
        made.append(Row(name, len(queries), len(votes), share_of_votes(hits, votes), gain))
    return made, votes_in("human_votes", whole)


def lines_of(made: list[Row], votes: list[Vote]) -> list[str]:
    """Return the study as text."""
    head = f"{'% of votes, ties counted':{WIDTH}}{'queries':>7} {'votes':>7}   "
    people = human_agreement(votes, bootstrap=2000)
    lines = [f"{head}{'agreement':22}difference from the checklist", *map(str, made)]
    if people is not None:
        spread = f"{'':>7} {len(votes):>7,}   {percent(people.with_ties)}"
        lines.append(f"{'human-human agreement':{WIDTH}}{spread}")
    return lines


def main() -> None:
    """Print the table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/arms.txt and .json")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"MT-Bench is not in {DATA}; set ROCKETEVAL_SHARED_DATA to the folder above it.")
    made, votes = table()
    text = "\n".join(lines_of(made, votes)) + "\n"
    print(text, end="")
    if given.record:
        (RECORDED / "arms.txt").write_text(text, encoding="utf-8")
        content = json.dumps([asdict(row) for row in made], indent=1) + "\n"
        (RECORDED / "arms.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
