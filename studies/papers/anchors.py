"""Published figures that need no judge, recomputed from recorded verdicts and ratings.

    python studies/papers/anchors.py [--data ../shared/data] [--record]

PandaLM's annotators, GPT-4 against human votes on MT-Bench, LLM-Rubric's own baseline; and on
HANNA, five recorded judges that gave grades from 1 to 5 under four prompts: do more instructions
bring them closer to human ratings (Evaluating the Evaluator), and do they agree with each other
(CheckEval)?
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from prepare import read
from runs import record, table

from rocketeval.audit.figures import human_agreement
from rocketeval.audit.votes import verdict_agreement
from rocketeval.records import Vote
from rocketeval.stats.agreement import fleiss_kappa, reliability
from rocketeval.text import share

sys.path.append(str(Path(__file__).parents[1]))
from stage3 import llm_rubric

WINNERS = {"model_a": "a", "model_b": "b"}
CRITERIA = {"RE": "relevance", "CH": "coherence", "EM": "empathy"} | {
    "SU": "surprise",
    "EG": "engagement",
    "CX": "complexity",
}


def main() -> None:
    """Print every figure with the published one."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    content: dict[str, Any] = {}
    rows = [*pandalm(given.data, content), *mt_bench(given.data, content)]
    rows += rubric(given.data, content)
    lines = table(["", "here", "known"], rows)
    lines += ["", *hanna(given.data, content)]
    record("anchors", content, lines, keep=given.record)


def pandalm(data: Path, content: dict[str, Any]) -> list[list[str]]:
    """Return Fleiss' kappa of the annotators, and recorded verdicts against their majority."""
    pairs = list(read(data / "pandalm/testset_v1"))
    ratings = np.array([[row[f"annotator{n}"] for row in pairs] for n in (1, 2, 3)], dtype=float)
    kappa = fleiss_kappa(ratings).value
    majority = [Counter(votes).most_common(1)[0][0] for votes in ratings.T.tolist()]
    right = {
        name: float(np.mean([row[name] == most for row, most in zip(pairs, majority, strict=True)]))
        for name in ("pandalm_result", "gpt_result")
    }
    content["pandalm"] = {"fleiss": kappa, "accuracy": right, "pairs": len(pairs)}
    return [
        ["PandaLM: Fleiss' kappa of three annotators", f"{kappa:.3f}", "0.864"],
        ["PandaLM-7B against the majority", f"{right['pandalm_result']:.4f}", "0.6677"],
        ["gpt-3.5 against the majority", f"{right['gpt_result']:.3f}", "0.698"],
    ]


def mt_bench(data: Path, content: dict[str, Any]) -> list[list[str]]:
    """Return GPT-4's agreement with people, and human-human agreement, on first turns."""
    votes, verdicts = (
        [as_vote(row) for row in read(data / "mt_bench" / name) if row["turn"] == 1]
        for name in ("human_votes", "gpt4_pair_votes")
    )
    found = verdict_agreement(verdicts, votes)
    people = human_agreement(votes)
    assert found is not None
    assert people is not None
    content["mt_bench"] = {"gpt-4": asdict(found), "people": asdict(people)}
    return [
        ["MT-Bench, both decided: GPT-4 and people", pairs_that_agree(votes, verdicts), "85.9"],
        ["MT-Bench, both decided: two people", pairs_that_agree(votes, votes), "82.0"],
        ["MT-Bench: GPT-4, all votes", share(found.with_ties), "66.6"],
        ["MT-Bench: human-human, all votes", share(people.with_ties), "-"],
        ["MT-Bench: expected upper bound, all votes", share(people.best_with_ties), "-"],
        ["MT-Bench: GPT-4, decided votes", share(found.without_ties), "-"],
        ["MT-Bench: human-human, decided votes", share(people.without_ties), "-"],
        ["MT-Bench: expected upper bound, decided votes", share(people.best_without_ties), "-"],
    ]


def pairs_that_agree(votes: list[Vote], others: list[Vote]) -> str:
    """Return the published figure: of pairs of decided votes, the percentage that agree.

    A vote on which the other side is a tie is left out, so it is not comparable with the agreement
    of a judge whose ties count half.
    """
    by_pair: dict[tuple[str, frozenset[str]], list[tuple[int, str]]] = defaultdict(list)

    def met(vote: Vote) -> tuple[tuple[str, frozenset[str]], str]:
        winner = {"a": vote.candidate_a, "b": vote.candidate_b}[vote.winner]
        return (vote.query_id, frozenset((vote.candidate_a, vote.candidate_b))), winner

    for place, other in enumerate(others):
        if other.winner != "tie":
            pair, winner = met(other)
            by_pair[pair].append((place, winner))
    same = []
    for place, vote in enumerate(votes):
        if vote.winner != "tie":
            pair, winner = met(vote)
            theirs = [each for at, each in by_pair[pair] if others is not votes or at > place]
            same += [winner == each for each in theirs]
    return f"{100 * np.mean(same):.1f}"


def as_vote(row: dict[str, Any]) -> Vote:
    """Return a row of votes or verdicts as a vote."""
    winner: Any = WINNERS.get(row["winner"], "tie")
    return Vote(str(row["question_id"]), row["model_a"], row["model_b"], winner, row["judge"])


def rubric(data: Path, content: dict[str, Any]) -> list[list[str]]:
    """Compare LLM-Rubric's expected answer to the overall question with the human answer."""
    design = llm_rubric.load(data / "llm_rubric", 5, 0)[0]
    expected = llm_rubric.expected_q0(design)
    labels = design.labels
    rmse = float(np.sqrt(np.mean((expected - labels) ** 2)))
    pearson = float(np.corrcoef(expected, labels)[0, 1])
    content["llm_rubric"] = {"rmse": rmse, "pearson": pearson}
    return [
        ["LLM-Rubric: RMSE of the expected answer", f"{rmse:.4f}", "0.9187"],
        ["LLM-Rubric: Pearson of the expected answer", f"{pearson:.4f}", "0.1773"],
    ]


def hanna(data: Path, content: dict[str, Any]) -> list[str]:
    """Compare the recorded grades of five judges under four prompts with people and each other."""
    stories = list(read(data / "hanna/hanna_scores"))
    judges = sorted(stories[0]["judges"])
    groups = np.array([str(row["story"]) for row in stories])
    rows = []
    content["hanna"] = {}
    for prompt in range(4):
        pearson, alphas = [], []
        for name in CRITERIA:
            people = np.array([row["human_mean"][name] for row in stories])
            grades = np.array(
                [[grade(row, judge, name, prompt) for row in stories] for judge in judges]
            )
            result = reliability(np.round(grades), groups, judges, level="ordinal", bootstrap=200)
            alphas.append(result.alpha.value if result.alpha else np.nan)
            pearson.append([correlation(each, people) for each in grades])
        means = np.nanmean(np.array(pearson), axis=0)
        result = {"pearson": dict(zip(judges, means.tolist(), strict=True)), "alpha": alphas}
        content["hanna"][f"prompt {prompt + 1}"] = result
        rows.append(
            [f"prompt {prompt + 1}", *(f"{x:.2f}" for x in means), f"{np.nanmean(alphas):.2f}"]
        )
    head = ["", *judges, "alpha between judges"]
    title = "HANNA: mean Pearson with people over six criteria, recorded judges"
    return [title, *table(head, rows)]


def grade(row: dict[str, Any], judge: str, criterion: str, prompt: int) -> float:
    """Return one recorded grade; NaN if the judge gave none."""
    given = row["judges"].get(judge, {}).get(criterion) or [None] * 4
    return np.nan if given[prompt] is None else float(given[prompt])


def correlation(one: np.ndarray, two: np.ndarray) -> float:
    """Return Pearson's coefficient where both are known; NaN without variation."""
    here = np.isfinite(one) & np.isfinite(two)
    if here.sum() < 3 or not np.ptp(one[here]) or not np.ptp(two[here]):
        return float("nan")
    return float(np.corrcoef(one[here], two[here])[0, 1])


if __name__ == "__main__":
    main()
