"""Does it matter who wrote the checklist? MT-Bench's second turn, from stored judgments.

    python studies/mt_bench/grade.py checklist by_claude-sonnet-4 by_llama-3.1-70b \\
        by_qwen3-14b by_llama-3.1-8b --turn second --block 8    # once, with a judge
    python studies/mt_bench/authors.py [--record]

needs MT-Bench's votes and the shared rubrics of four authors (../shared/data next to the checkout),
and no judge. A rubric is a list of statements about the answers to both turns; one fixed rule makes
them questions. The same judge answers the questions of each author and of our checklists, and each
author is compared with ours on the same votes, with Holm's correction for four comparisons. A row
counts the queries for which the author has a rubric and all six responses are judged.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
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
from rocketeval.stats.permutation import holm_list  # noqa: E402

RECORDED = HERE / "recorded"
RUBRICS = DATA.parent / "rubric_authors"
PREPARED = Path(os.environ.get("ROCKETEVAL_STUDY_RUNS", HERE.parent / "runs")) / "data" / "authors"
BY = "by_"
"""Before an author's name, in the names of runs and files."""
AUTHORS = ("claude-sonnet-4", "llama-3.1-70b", "qwen3-14b", "llama-3.1-8b")
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
    queries: int
    votes: int
    agreement: Interval
    ours: Interval
    difference: Interval
    """From ours."""
    p_value: float
    """Of the difference, corrected for all authors."""

    def __str__(self) -> str:
        counts = f"{self.author:{WIDTH}}{self.queries:>7} {self.votes:>7,}"
        shares = f"{percent(self.agreement):23}{percent(self.ours):23}"
        return f"{counts}   {shares}{percent(self.difference, '+'):24}{self.p_value:.3f}"


def flip_test(hits: Floats, votes: Sequence[Vote], flips: int = FLIPS) -> float:
    """Return the p value of a mean difference of 0, from flipped signs of whole questions."""
    totals = by_question(hits, votes)
    signs = np.random.default_rng(0).choice((-1.0, 1.0), (flips, len(totals)))
    further = np.abs(signs @ totals) >= abs(totals.sum()) - 1e-9
    return float((1 + further.sum()) / (1 + flips))


def study() -> list[Row]:
    """Return a row for each author whose judgments are stored."""
    ours = mean_scores(judgments.read(stored("second")))
    made, p_values = [], []
    for author in AUTHORS:
        path = stored("second", f"{BY}{author}")
        if not path.exists():
            continue
        scores = mean_scores(judgments.read(path))
        queries = whole_queries(scores) & whole_queries(ours)
        votes = votes_in("human_votes", queries)
        hits, own = hits_of(scores, votes), hits_of(ours, votes)
        p_values.append(flip_test(hits - own, votes))
        shares = (share_of_votes(each, votes) for each in (hits, own, hits - own))
        made.append(Row(author, len(queries), len(votes), *shares, p_value=1.0))
    corrected = holm_list(np.array(p_values)).tolist()
    return [replace(row, p_value=p) for row, p in zip(made, corrected, strict=True)]


def lines_of(made: Sequence[Row]) -> list[str]:
    """Return the study as text."""
    head = f"{'author':{WIDTH}}{'queries':>7} {'votes':>7}   {'agreement':23}{'ours':23}"
    return [f"{head}{'difference':24}p, corrected", *map(str, made)]


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
        content = json.dumps([asdict(row) for row in made], indent=1) + "\n"
        (RECORDED / "authors.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
