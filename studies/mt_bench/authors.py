"""Does it matter who wrote the checklist? MT-Bench's second turn, from stored judgments.

    python studies/mt_bench/grade.py checklist by_claude-sonnet-4 by_llama-3.1-70b \\
        by_qwen3-14b by_llama-3.1-8b --turn second --block 8    # once, with a judge
    python studies/mt_bench/authors.py [--record]

needs MT-Bench's votes and the shared rubrics of four authors (../shared/data next to the checkout),
and no judge. A rubric is a list of statements about the answers to both turns; one fixed rule makes
them questions. The same judge answers the questions of each author and of our checklists, and each
author is compared with ours on the same votes, with Holm's correction for four comparisons. The
table counts the queries of which all six responses are judged with every author's questions. The
last line, without a claim, compares the largest author with the smallest.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "mad_eval")]
import judgments  # noqa: E402
from arms import stored, whole_queries  # noqa: E402
from spread import Question, in_turn, lay_out  # noqa: E402
from votes import (  # noqa: E402
    DATA,
    by_question,
    hits_of,
    mean_scores,
    percent,
    rows,
    share_of_votes,
    votes_in,
)

from rocketeval.arrays import Floats  # noqa: E402
from rocketeval.records import Interval, Vote  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.stats.permutation import holm_list  # noqa: E402

RECORDED = HERE / "recorded"
RUBRICS = DATA.parent / "rubric_authors"
PREPARED = Path(os.environ.get("ROCKETEVAL_STUDY_RUNS", HERE.parent / "runs")) / "data" / "authors"
BY = "by_"
"""Before an author's name, in the names of runs and files."""
OURS = "ours"
AUTHORS = ("claude-sonnet-4", "llama-3.1-70b", "qwen3-14b", "llama-3.1-8b")
"""From the largest to the smallest."""
FLIPS = 20_000
WIDTH = 18
_STATEMENT = re.compile(r"^\s*\d+[.)]\s+(.+?)(?=\n\s*\n|\n\s*\d+[.)]\s|\Z)", re.M | re.S)
"""A numbered statement, up to a blank line or the next number."""


def questions_of(rubric: str) -> list[str]:
    """Return a rubric's statements as questions, by one fixed rule.

    >>> questions_of("Here it is: 1. **Tone**: It is kind.")
    []
    >>> questions_of("1. **Tone**: It is kind.")
    ['Is this statement true of the response? "Tone: It is kind."']
    """
    statements = (" ".join(found.replace("**", "").split()) for found in _STATEMENT.findall(rubric))
    return [f'Is this statement true of the response? "{each}"' for each in statements]


def questions_by(author: str) -> dict[str, list[str]]:
    """Return an author's questions about the second turn, by query."""
    with gzip.open(RUBRICS / f"mtbench_{author}.json.gz", "rt", encoding="utf-8") as file:
        rubrics: Mapping[str, str] = json.load(file)
    ids = {"\n\n".join(row["turns"]): f"{row['question_id']}-2" for row in rows("questions")}
    made = {ids[prompt]: questions_of(rubric) for prompt, rubric in rubrics.items()}
    return {query: questions for query, questions in made.items() if questions}


def checklist_file(author: str) -> Path:
    """Write an author's questions as a file of checklists; return its path."""
    path = PREPARED / f"{author}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = questions_by(author)
    path.write_text(json.dumps(known, ensure_ascii=False, indent=1), encoding="utf-8")
    return path


def benchmark_folder() -> tuple[Path, int]:
    """Write MT-Bench with the questions that every author has first; return also their number.

    Their categories alternate.
    """
    common = set.intersection(*(set(questions_by(author)) for author in AUTHORS))

    def order(questions: Sequence[Question]) -> list[Question]:
        return sorted(in_turn(questions), key=lambda each: f"{each['question_id']}-2" not in common)

    folder = PREPARED / "mt_bench"
    lay_out(DATA, folder, order)
    return folder, len(common)


@dataclass(frozen=True)
class Row:
    """Agreement with one author's checklists, and with ours on the same votes."""

    author: str
    items: float
    """Questions per query."""
    agreement: Interval
    difference: Interval | None = None
    """From ours."""
    p_value: float | None = None
    """Of the difference, corrected for all authors."""

    def __str__(self) -> str:
        start = f"{self.author:{WIDTH}}{self.items:5.1f}   {percent(self.agreement):23}"
        if self.difference is None or self.p_value is None:
            return start.rstrip()
        return f"{start}{percent(self.difference, '+'):24}{self.p_value:.3f}"


@dataclass(frozen=True)
class Study:
    """Agreement with the checklists of every author on the same votes."""

    queries: int
    votes: int
    rows: list[Row]
    size: Interval
    """The largest author's agreement minus the smallest's."""


def flip_test(hits: Floats, votes: Sequence[Vote], flips: int = FLIPS) -> float:
    """Return the p value of a mean difference of 0, from flipped signs of whole questions."""
    totals = by_question(hits, votes)
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (flips, len(totals)))
    further = np.abs(signs @ totals) >= abs(totals.sum()) - 1e-9
    return float((1 + further.sum()) / (1 + flips))


def study() -> Study:
    """Return the comparison of all authors."""
    answers = {OURS: judgments.read(stored("second"))}
    for author in AUTHORS:
        answers[author] = judgments.read(stored("second", f"{BY}{author}"))
    scores = {author: mean_scores(table) for author, table in answers.items()}
    queries = set.intersection(*map(whole_queries, scores.values()))
    votes = votes_in("human_votes", queries)
    hits = {author: hits_of(each, votes) for author, each in scores.items()}
    raw = [flip_test(hits[author] - hits[OURS], votes) for author in AUTHORS]
    p_values = dict(zip(AUTHORS, holm_list(np.array(raw)).tolist(), strict=True))
    rows = [
        Row(
            author,
            items_in(answers[author], queries),
            share_of_votes(own, votes),
            share_of_votes(own - hits[OURS], votes) if author in p_values else None,
            p_values.get(author),
        )
        for author, own in hits.items()
    ]
    size = share_of_votes(hits[AUTHORS[0]] - hits[AUTHORS[-1]], votes)
    return Study(len(queries), len(votes), rows, size)


def items_in(answers: AnswerTable, queries: set[str]) -> float:
    """Return the mean number of items that a response of these queries is asked."""
    kept = [row for row, query in enumerate(answers.query_ids) if query in queries]
    return float(np.mean(answers.items[kept]))


def lines_of(made: Study) -> list[str]:
    """Return the study as text."""
    return [
        f"second turn, {made.queries} queries, {made.votes:,} votes; % of votes, ties counted",
        "",
        f"{'author':{WIDTH}}items   {'agreement':23}{'from ours':24}p, corrected",
        *map(str, made.rows),
        "",
        f"{AUTHORS[0]} minus {AUTHORS[-1]}: {percent(made.size, '+')}",
    ]


def main() -> None:
    """Print the table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/authors.txt, .json")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"MT-Bench is not in {DATA}; set ROCKETEVAL_SHARED_DATA to the folder above it.")
    made = study()
    text = "\n".join(lines_of(made)) + "\n"
    print(text, end="")
    if given.record:
        (RECORDED / "authors.txt").write_text(text, encoding="utf-8")
        content = json.dumps(asdict(made), indent=1) + "\n"
        (RECORDED / "authors.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
