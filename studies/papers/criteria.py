"""CheckEval Table 1, Evaluating the Evaluator Tables 1 and 2, from stored judgments.

    python studies/papers/grade.py qwen2.5-coder-1.5b-instruct-int8 --only topical_chat \\
        --only summeval --base-url http://127.0.0.1:8000/v1            # once, with a judge
    python studies/papers/criteria.py topical_chat [--record]
    python studies/papers/criteria.py summeval [--record]

needs the benchmark's ratings (../shared/data next to the checkout). Every response is judged for
one criterion at a time: by CheckEval's seed questions, by a grade with three levels of
instructions, and by perplexity. Two baselines need no judge: the share of a response's pairs of
adjacent words that the query has too, and the response's length in characters. Each figure is a
mean over four criteria, of Spearman's coefficient with human ratings within a query (a conversation
or an article), and of Spearman's and Pearson's over all responses. Scores that are all equal count
as 0; ratings that are all equal leave out the query for that criterion. Intervals are from 2,000
resamples of the queries; differences are paired.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judgments  # noqa: E402
from grade import OWN, PACKAGED, SUMMEVAL, TOPICAL_CHAT, kept_as  # noqa: E402
from prepare import DATA, summeval, topical_chat  # noqa: E402
from prepare import Row as Line  # noqa: E402
from runs import only_items  # noqa: E402
from scipy.stats import rankdata  # noqa: E402

from rocketeval.arrays import Floats, Ints  # noqa: E402
from rocketeval.checklists.dimension_file import load_dimensions  # noqa: E402
from rocketeval.records import Interval  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.scoring.mean import HardMeanScorer, MeanScorer  # noqa: E402
from rocketeval.stats.bootstrap import interval  # noqa: E402
from rocketeval.text import figure  # noqa: E402

RECORDED = HERE / "recorded"
RESAMPLES = 2_000
CELL = 26
CHECKLIST, COUNTED = "checklist, probabilities", "checklist, yes counted"
OURS, OURS_COUNTED = "our dimension file, probabilities", "our dimension file, yes counted"
GRADES = {
    "rubric": "4 full rubric",
    "criterion": "3 criterion's name",
    "generic": "2 generic prompt",
    "perplexity": "1 perplexity",
}
"""The ways without a checklist, by method; the first two are asked once per criterion."""
COPIED, LENGTH = "copied pairs of words", "response length"
"""The baselines without a judge."""
COMPARED = (
    (COUNTED, GRADES["rubric"]),
    (CHECKLIST, GRADES["rubric"]),
    (GRADES["rubric"], GRADES["perplexity"]),
    (GRADES["rubric"], GRADES["generic"]),
)
"""The comparisons of the plan."""
OWN_QUESTIONS = ((OURS, CHECKLIST),)
PERPLEXITY_FIRST = tuple(
    (GRADES["perplexity"], way)
    for way in (
        CHECKLIST,
        COUNTED,
        OURS,
        OURS_COUNTED,
        GRADES["criterion"],
        GRADES["generic"],
    )
)
BASELINES = {
    "topical_chat": tuple((way, LENGTH) for way in (CHECKLIST, GRADES["rubric"])),
    "summeval": tuple((way, COPIED) for way in (CHECKLIST, GRADES["perplexity"])),
}
"""Comparisons with the better baseline, added after the other figures had been read."""
WITHIN, SPEARMAN, PEARSON = "Spearman, {queries}", "Spearman, all", "Pearson, all"


@dataclass(frozen=True)
class Benchmark:
    """Responses that people rated by criterion."""

    name: str
    title: str
    criteria: tuple[str, ...]
    prepare: Callable[[Path], dict[str, list[Line]]]
    queries: str
    """What a query is called, in the plural."""
    responses: str
    compared: tuple[tuple[str, str], ...]

    @property
    def kinds(self) -> tuple[str, str, str]:
        """The names of the three figures."""
        return WITHIN.format(queries=self.queries), SPEARMAN, PEARSON


BENCHMARKS = {
    each.name: each
    for each in (
        Benchmark(
            "topical_chat",
            "Topical-Chat",
            TOPICAL_CHAT,
            topical_chat,
            "conversations",
            "replies",
            COMPARED + BASELINES["topical_chat"],
        ),
        Benchmark(
            "summeval",
            "SummEval",
            SUMMEVAL,
            summeval,
            "articles",
            "summaries",
            COMPARED + OWN_QUESTIONS + PERPLEXITY_FIRST + BASELINES["summeval"],
        ),
    )
}
Cells = dict[tuple[str, str], float]
"""Scores by query and candidate."""


@dataclass(frozen=True)
class Study:
    """Scores and ratings of the queries that every way judged whole, by criterion."""

    benchmark: Benchmark
    queries: tuple[str, ...]
    ratings: Mapping[str, Floats]
    """Query x candidate, by criterion."""
    scores: Mapping[str, Mapping[str, Floats]]
    """The same by way and criterion; higher is better."""

    @classmethod
    def read(
        cls, benchmark: Benchmark, stored: Path = RECORDED / "judgments", data: Path = DATA
    ) -> Study:
        """Return the stored judgments of a benchmark with the ratings."""
        prepared = benchmark.prepare(data)
        rated = {(row["query_id"], row["candidate"]): row for row in prepared["gold"]}
        names = [row["dimension"] for row in prepared["dimensions"]]
        path = stored / kept_as(benchmark.name, "checklist")
        cells = dict(zip((CHECKLIST, COUNTED), _checklists(path, names), strict=True))
        path = stored / kept_as(benchmark.name, OWN)
        if path.exists():
            names = dimension_file_of(benchmark.name)
            cells |= zip((OURS, OURS_COUNTED), _checklists(path, names), strict=True)
        for method, way in GRADES.items():
            files = {
                name: stored / kept_as(benchmark.name, asked_for(method, name))
                for name in benchmark.criteria
            }
            if all(path.exists() for path in files.values()):
                cells[way] = {name: _cells(path) for name, path in files.items()}
        candidates = sorted({candidate for _, candidate in rated})
        everything = [cell for way in cells.values() for cell in way.values()]
        whole = [
            query["id"]
            for query in prepared["queries"]
            if all(
                np.isfinite(cell.get((query["id"], name), np.nan))
                for cell in everything
                for name in candidates
            )
        ]

        for way, score in baselines(prepared).items():
            cells[way] = dict.fromkeys(benchmark.criteria, score)

        def laid_out(values: Mapping[tuple[str, str], float]) -> Floats:
            return np.array([[values[query, name] for name in candidates] for query in whole])

        return cls(
            benchmark,
            tuple(whole),
            {
                name: laid_out({cell: row[name] for cell, row in rated.items()})
                for name in benchmark.criteria
            },
            {
                way: {name: laid_out(values) for name, values in by.items()}
                for way, by in cells.items()
            },
        )

    @property
    def size(self) -> str:
        """The numbers of queries and judged responses, in words."""
        responses = next(iter(self.ratings.values())).size
        benchmark = self.benchmark
        return f"{len(self.queries)} {benchmark.queries}, {responses} {benchmark.responses}"


def baselines(prepared: Mapping[str, Sequence[Line]], length: int = 2) -> dict[str, Cells]:
    """Return the scores that need no judge, of all responses."""
    texts = {query["id"]: query["text"] for query in prepared["queries"]}
    found: dict[str, Cells] = {COPIED: {}, LENGTH: {}}
    for row in prepared["responses"]:
        cell, text = (row["query_id"], row["candidate"]), row["text"]
        found[COPIED][cell] = copied(text, texts[row["query_id"]], length)
        found[LENGTH][cell] = float(len(text))
    return found


def words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    >>> words("It's 7.5 km.")
    ['it', 's', '7', '5', 'km']
    """
    return re.findall(r"\w+", text.lower())


def copied(response: str, query: str, length: int = 2) -> float:
    """Return the share of sequences of adjacent words that the query has too; 0 without one.

    >>> copied("The old dog barked.", "Why has the old dog left?")
    0.6666666666666666
    """
    ours, theirs = (_sequences(words(text), length) for text in (response, query))
    known = set(theirs)
    return sum(each in known for each in ours) / max(1, len(ours))


def _sequences(found: Sequence[str], length: int) -> list[tuple[str, ...]]:
    return list(zip(*(found[start:] for start in range(length)), strict=False))


def asked_for(method: str, criterion: str) -> str:
    """Return the method that grades one criterion."""
    return f"{method}:criterion={criterion}" if method in ("criterion", "rubric") else method


def _cells(path: Path) -> Cells:
    answers = judgments.read(path)
    return _scored(answers, MeanScorer().predict(answers))


def _scored(answers: AnswerTable, scores: Floats) -> Cells:
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    return dict(zip(cells, scores.tolist(), strict=True))


def _checklists(path: Path, names: Sequence[str]) -> tuple[dict[str, Cells], dict[str, Cells]]:
    """Return the scores of each criterion's questions, as probabilities and counted.

    `names` has the criterion of every question.
    """
    answers = judgments.read(path)
    means: dict[str, Cells] = {}
    counts: dict[str, Cells] = {}
    for name in dict.fromkeys(names):
        own = only_items(answers, [place for place, each in enumerate(names) if each == name])
        means[name] = _scored(own, MeanScorer().predict(own))
        counts[name] = _scored(own, HardMeanScorer().predict(own))
    return means, counts


def dimension_file_of(benchmark: str) -> list[str]:
    """Return the dimension of every question of the packaged file."""
    file, wanted = PACKAGED[benchmark]
    found = load_dimensions(file).only(wanted)
    return [name for name, dimension in found.items() for _ in dimension.seeds()]


def pearson(one: Floats, other: Floats) -> Floats:
    """Return Pearson's coefficient of each row; 0 where `one` is constant, NaN where `other` is."""
    left = one - one.mean(axis=-1, keepdims=True)
    right = other - other.mean(axis=-1, keepdims=True)
    sizes = np.sqrt((left**2).sum(-1)), np.sqrt((right**2).sum(-1))
    constant = [np.ptp(each, axis=-1) == 0.0 for each in (one, other)]
    below = np.where(constant[0] | constant[1], 1.0, sizes[0] * sizes[1])
    found = np.where(constant[0], 0.0, (left * right).sum(-1) / below)
    return np.asarray(np.where(constant[1], np.nan, found))


def spearman(one: Floats, other: Floats) -> Floats:
    """Return Spearman's coefficient of each row, with the same rules."""
    return pearson(rankdata(one, axis=-1), rankdata(other, axis=-1))


def resampled(count: int) -> Ints:
    """Return rows of drawn queries; the first one has each of them once."""
    drawn = np.random.default_rng(0).integers(0, count, (RESAMPLES, count))
    return np.vstack([np.arange(count), drawn])


def draws_of(study: Study) -> dict[str, dict[str, Floats]]:
    """Return the three figures of every way, for every resample."""
    rows = resampled(len(study.queries))
    sums: dict[str, Floats] = {}
    for name, ratings in study.ratings.items():
        drawn = ratings[rows].reshape(len(rows), -1)
        ranks = rankdata(drawn, axis=-1)
        for way, scores in ((way, by[name]) for way, by in study.scores.items()):
            judged = scores[rows].reshape(len(rows), -1)
            found = [
                np.nanmean(spearman(scores, ratings)[rows], axis=1),
                pearson(rankdata(judged, axis=-1), ranks),
                pearson(judged, drawn),
            ]
            sums[way] = sums.get(way, 0.0) + np.array(found)
    return {
        way: dict(zip(study.benchmark.kinds, found / len(study.ratings), strict=True))
        for way, found in sums.items()
    }


def bounded(draws: Floats, count: int) -> Interval:
    """Return the figure of all queries with its interval."""
    return interval(float(draws[0]), draws[1:], queries=count, level=0.95)


@dataclass(frozen=True)
class Row:
    """The figures of a way to score, or of the difference of two."""

    name: str
    figures: Mapping[str, Interval]
    sign: str = ""

    def line(self, width: int) -> str:
        """Return the row as text."""
        shown = (figure(each, f"{self.sign}.2f").ljust(CELL) for each in self.figures.values())
        return (self.name.ljust(width) + "".join(shown)).rstrip()


def tables(study: Study) -> tuple[list[Row], list[Row]]:
    """Return a row for each way, and one for each planned comparison."""
    count = len(study.queries)
    draws = draws_of(study)
    rows = [
        Row(way, {kind: bounded(values, count) for kind, values in found.items()})
        for way, found in draws.items()
    ]
    apart = [
        Row(
            f"{one} minus {other}",
            {kind: bounded(draws[one][kind] - draws[other][kind], count) for kind in draws[one]},
            "+",
        )
        for one, other in study.benchmark.compared
        if one in draws and other in draws
    ]
    return rows, apart


def by_criterion(study: Study, width: int) -> list[str]:
    """Return Spearman over all responses by criterion, as text."""
    lines = ["".ljust(width) + "".join(name.ljust(15) for name in study.ratings).rstrip()]
    for way, scores in study.scores.items():
        values = (spearman(scores[name].ravel(), study.ratings[name].ravel()) for name in scores)
        lines.append((way.ljust(width) + "".join(f"{v:.2f}".ljust(15) for v in values)).rstrip())
    return lines


def lines_of(study: Study) -> list[str]:
    """Return the study as text."""
    rows, apart = tables(study)
    width = max(len(row.name) for row in (*rows, *apart)) + 2
    head = "".ljust(width) + "".join(kind.ljust(CELL) for kind in study.benchmark.kinds)
    return [
        f"{study.size}; mean over four criteria",
        head.rstrip(),
        *(row.line(width) for row in rows),
        "",
        "Differences",
        head.rstrip(),
        *(row.line(width) for row in apart),
        "",
        f"Spearman over all {study.benchmark.responses}, by criterion",
        *by_criterion(study, width),
    ]


def main() -> None:
    """Print the tables, and keep them with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("benchmark", choices=list(BENCHMARKS))
    parser.add_argument("--record", action="store_true", help="write recorded/BENCHMARK.txt, .json")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"There is no data in {DATA}; set ROCKETEVAL_SHARED_DATA to its folder.")
    study = Study.read(BENCHMARKS[given.benchmark])
    text = "\n".join(lines_of(study)) + "\n"
    print(text, end="")
    if given.record:
        path = RECORDED / given.benchmark
        path.with_suffix(".txt").write_text(text, encoding="utf-8")
        rows = [asdict(row) for part in tables(study) for row in part]
        content = {"size": study.size, "rows": rows}
        shown = json.dumps(content, indent=1) + "\n"
        path.with_suffix(".json").write_text(shown, encoding="utf-8")
        draw(study, path.with_suffix(".svg"))


def draw(study: Study, path: Path) -> None:
    """Write a plot of every way's correlation with the ratings."""
    from plots import correlations

    benchmark = study.benchmark
    kind = benchmark.kinds[0]
    correlations(
        path,
        f"{benchmark.title}: {len(study.queries)} {benchmark.queries}, one criterion at a time",
        f"Spearman with human ratings, within {benchmark.queries}",
        {row.name: row.figures[kind] for row in tables(study)[0]},
    )


if __name__ == "__main__":
    main()
