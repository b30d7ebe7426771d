"""Smaller judges, and a smaller one first: MT-Bench's first turn, from stored judgments.

    python studies/mt_bench/grade.py checklist --judge 0.5b --turn first      # once per judge
    python studies/mt_bench/sizes.py [--record]

needs MT-Bench's votes (../shared/data next to the checkout) and no judge. The first table is the
agreement of each judge with the votes, and its difference from the next smaller one. The second is
RocketEval's Fig. 4: the share of items on which k samples of a judge do not all agree, computed
from its probabilities (1 - p^k - (1 - p)^k). The third is a cascade: 0.5B grades every response,
and 1.5B grades the queries again where 0.5B is least sure. Cost is computed tokens times
parameters, relative to 1.5B alone; both judges read the same tokens. `at random` is the expected
agreement if the same number of queries were drawn without looking. The first and the third table
were fixed in studies/PLAN.md before the smaller judges were run.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judgments  # noqa: E402
from arms import stored, whole_queries  # noqa: E402
from votes import DATA, Scores, hits_of, mean_scores, percent, share_of_votes, votes_in  # noqa: E402

from rocketeval.audit.repeatability import (  # noqa: E402
    SamplingDisagreement,
    sampling_disagreement,
)
from rocketeval.judges.draw import mean_spread  # noqa: E402
from rocketeval.records import Interval, Vote  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402

RECORDED = HERE / "recorded"
PARAMETERS = {"135m": 106, "0.5b": 358, "1.5b": 1310}
"""Millions of parameters without embeddings, smallest judge first."""
CHEAP, STRONG = "0.5b", "1.5b"
TIMES = (2, 3, 5, 10)
"""Samples of one item."""
STEPS = 11
WIDTH = 12


@dataclass(frozen=True)
class Size:
    """Agreement of one judge."""

    judge: str
    agreement: Interval
    gain: Interval | None
    """Over the next smaller judge, on the same votes."""

    def __str__(self) -> str:
        gain = "" if self.gain is None else percent(self.gain, "+")
        return f"{self.judge:{WIDTH}}{percent(self.agreement):24}{gain}".rstrip()


@dataclass(frozen=True)
class Step:
    """A cascade that grades a number of queries again."""

    again: int
    cost: float
    agreement: Interval
    difference: Interval
    """From the strong judge alone, on the same votes."""
    random: float

    def __str__(self) -> str:
        counts = f"{self.again:>{WIDTH - 2}}  {self.cost:4.2f}  "
        values = f"{percent(self.agreement):24}{percent(self.difference, '+'):24}"
        return f"{counts}{values}{100 * self.random:.1f}"


def answers_of(judge: str) -> AnswerTable | None:
    """Return a judge's stored answers, None if there are none."""
    path = stored("first", judge=judge)
    return judgments.read(path) if path.exists() else None


def doubts(answers: AnswerTable) -> dict[str, float]:
    """Return how unsure a judge is about each query: the mean spread of its responses' scores."""
    own: dict[str, list[float]] = {}
    for query, spread in zip(answers.query_ids, mean_spread(answers).tolist(), strict=True):
        own.setdefault(query, []).append(spread)
    return {query: float(np.nanmean(spreads)) for query, spreads in own.items()}


def sizes(found: dict[str, AnswerTable]) -> tuple[list[Size], list[Vote]]:
    """Return a row per judge, smallest first, on the queries that all of them graded."""
    scores = {judge: mean_scores(answers) for judge, answers in found.items()}
    votes = votes_in("human_votes", set.intersection(*map(whole_queries, scores.values())))
    made: list[Size] = []
    smaller = None
    for judge, own in scores.items():
        hits = hits_of(own, votes)
        gain = None if smaller is None else share_of_votes(hits - smaller, votes)
        made.append(Size(judge, share_of_votes(hits, votes), gain))
        smaller = hits
    return made, votes


def sampled(answers: AnswerTable) -> SamplingDisagreement:
    """Return how often k samples of one item would not all agree."""
    groups = np.repeat(np.array(answers.query_ids), answers.items)
    return sampling_disagreement(answers.p_yes, groups, TIMES)


def cascade(found: dict[str, AnswerTable]) -> list[Step]:
    """Return the cascade from no query graded again to all of them."""
    cheap, strong = mean_scores(found[CHEAP]), mean_scores(found[STRONG])
    queries = whole_queries(cheap) & whole_queries(strong)
    doubt = doubts(found[CHEAP])
    least_sure = sorted(queries, key=lambda query: (-doubt[query], query))
    votes = votes_in("human_votes", queries)
    alone, below = hits_of(strong, votes), hits_of(cheap, votes)
    made = []
    for step in range(STEPS):
        again = set(least_sure[: round(len(queries) * step / (STEPS - 1))])
        merged: Scores = {
            key: strong[key] if key[0] in again else score
            for key, score in cheap.items()
            if key[0] in queries
        }
        hits = hits_of(merged, votes)
        share = len(again) / len(queries)
        made.append(
            Step(
                len(again),
                PARAMETERS[CHEAP] / PARAMETERS[STRONG] + share,
                share_of_votes(hits, votes),
                share_of_votes(hits - alone, votes),
                float((1.0 - share) * below.mean() + share * alone.mean()),
            )
        )
    return made


def main() -> None:
    """Print the tables, and keep them with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/sizes.*")
    given = parser.parse_args()
    if not DATA.is_dir():
        sys.exit(f"MT-Bench is not in {DATA}; set ROCKETEVAL_SHARED_DATA to the folder above it.")
    content, lines = study()
    text = "\n".join(lines) + "\n"
    print(text, end="")
    if given.record:
        (RECORDED / "sizes.txt").write_text(text, encoding="utf-8")
        path = RECORDED / "sizes.json"
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        draw(content)


def draw(content: dict[str, Any]) -> None:
    """Write sizes.svg: agreement by judge, and by the cost of the cascade."""
    from charts import pyplot, save

    picture, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True)
    for place, row in enumerate(content["sizes"]):
        value, low, high = (100 * row["agreement"][name] for name in ("value", "low", "high"))
        left.errorbar(place, value, [[value - low], [high - value]], fmt="o", color="#2a6f97")
    left.set_xticks(range(len(content["sizes"])), [row["judge"] for row in content["sizes"]])
    left.set_xlim(-0.5, len(content["sizes"]) - 0.5)
    left.set_xlabel("judge")
    left.set_ylabel("agreement with votes, %")
    left.axhline(100 / 3, color="#808080", linestyle=":")
    left.annotate("guessing", (-0.45, 100 / 3 + 0.4), fontsize=8, color="#606060")
    steps = content["cascade"]
    costs = [row["cost"] for row in steps]
    for name, values, color in (
        (f"least sure first ({CHEAP}, then {STRONG})", "agreement", "#2a6f97"),
        ("at random", "random", "#808080"),
    ):
        own = [row[values] if values == "random" else row[values]["value"] for row in steps]
        right.plot(costs, [100 * one for one in own], "o-", color=color, label=name, markersize=4)
    alone = 100 * steps[-1]["agreement"]["value"]
    right.plot([1.0], [alone], "*", color="#e07a5f", markersize=12, label=f"{STRONG} alone")
    right.set_xlabel(f"cost, relative to {STRONG} alone")
    right.legend(frameon=False, fontsize=8, loc="lower right")
    save(picture, RECORDED / "sizes.svg")


def study() -> tuple[dict[str, Any], list[str]]:
    """Return the tables, as records for sizes.json and as text."""
    found = {judge: own for judge in PARAMETERS if (own := answers_of(judge)) is not None}
    made, votes = sizes(found)
    samples = {judge: sampled(answers) for judge, answers in found.items()}
    queries = len({vote.query_id for vote in votes})
    lines = [
        f"first turn, {queries} queries, {len(votes):,} votes; % of votes, ties counted",
        "",
        f"{'judge':{WIDTH}}{'agreement':24}above the next smaller",
        *map(str, made),
        "",
        "items on which k samples do not all agree, %",
        f"{'judge':{WIDTH}}" + "".join(f"k = {k:<20}" for k in TIMES) + "items",
    ]
    for judge, one in samples.items():
        shares = "".join(f"{percent(each.share):24}" for each in one.shares)
        lines.append(f"{judge:{WIDTH}}{shares}{one.items:,}")
    steps = cascade(found) if {CHEAP, STRONG} <= set(found) else []
    if steps:
        lines += [
            "",
            f"{CHEAP} on every query, {STRONG} again on those where {CHEAP} is least sure",
            f"{'again':>{WIDTH - 2}}  cost  {'agreement':24}{f'from {STRONG} alone':24}at random",
            *map(str, steps),
        ]
    content = {
        "sizes": list(map(asdict, made)),
        "samples": {judge: asdict(one) for judge, one in samples.items()},
        "cascade": list(map(asdict, steps)),
    }
    return content, lines


if __name__ == "__main__":
    main()
