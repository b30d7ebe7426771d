"""Rows of the files that the RocketEval paper's scripts read and write.

query.jsonl                          session_id, conversation_input, checklist, references
response/<candidate>.jsonl           session_id, chat_history, output, generator
checklist/checklist.jsonl            session_id, checklist
judgment/<judge>/<candidate>.jsonl   session_id, model_test, judge, norm_probability, judgment
score/<judge>/<candidate>.json       an array of session_id, model_test, score, ...
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from rocketeval.grid import ScoreGrid, compare
from rocketeval.records import Checklist, Query, Response, Turn

Row = dict[str, object]
"""A JSON object with the keys that the other program expects."""
REFERENCE = "gpt-4"
"""Key under which the scripts look up a reference."""


def query_row(query: Query) -> Row:
    """Return a row of query.jsonl."""
    turns = [*query.history, Turn("user", query.text)]
    return {
        "session_id": query.id,
        "conversation_input": [asdict(turn) for turn in turns],
        "checklist": [],
        "references": {REFERENCE: query.reference or ""},
        **({} if query.category is None else {"primary_tag": query.category}),
    }


def checklist_row(checklist: Checklist) -> Row:
    """Return a row of checklist.jsonl."""
    return {"session_id": checklist.query_id, "checklist": list(checklist.items)}


def response_row(response: Response, query: Query, name: str) -> Row:
    """Return a row of a response file; `name` is the candidate's name in this folder."""
    history = query.history if response.history is None else response.history
    return {
        "session_id": response.query_id,
        "chat_history": [*(turn.content for turn in history), query.text],
        "output": [response.text],
        "generator": name,
    }


def judgment_row(query_id: str, name: str, judge: str, p_yes: Sequence[float | None]) -> Row:
    """Return a row of a judgment file; answers are in the order of the checklist."""
    return {
        "session_id": query_id,
        "model_test": name,
        "judge": judge,
        "norm_probability": list(p_yes),
        "judgment": [_answer_text(p) for p in p_yes],
    }


def score_row(response: Response, name: str, judge: str, score: float) -> Row:
    """Return an entry of a score file."""
    return {
        "session_id": response.query_id,
        "model_test": name,
        "score": score,
        "model_output": response.text,
        "judge": judge,
    }


def _answer_text(p_yes: float | None) -> str:
    """Return an answer in the scripts' notation.

    >>> _answer_text(0.7), _answer_text(0.1), _answer_text(None)
    ('Yes (70.0)%', 'No (10.0)%', 'Unsure')
    """
    if p_yes is None or p_yes == 0.5:
        return "Unsure"
    return f"{'Yes' if p_yes > 0.5 else 'No'} ({100 * p_yes:.1f})%"


@dataclass(frozen=True, slots=True)
class AnsweredItem:
    """An item as shown to people, with its answer."""

    title: str
    p_yes: float | None
    """The judge's answer; None if it is missing."""
    turned: float | None
    """The answer, turned around for a penalty, so that 1 is always better."""
    applies: bool = True
    """Whether the item more likely applies to the response than not."""


def score_entry(response: Response, score: float, items: Sequence[AnsweredItem]) -> Row:
    """Return an entry with the score as text and the items as strengths and weaknesses.

    A penalty is a strength if it is answered no. An item that does not apply is neither.

    >>> items = [AnsweredItem("Is it short?", 0.9, 0.9), AnsweredItem("Is it rude?", 0.8, 0.2)]
    >>> entry = score_entry(Response("q", "c", "Hi."), 5.5, items)
    >>> entry["score"], entry["parsed_result"]["strengths"], entry["parsed_result"]["weaknesses"]
    ('5.5', 'Is it short? (yes 0.90)', 'Is it rude? (yes 0.80)')
    """
    strengths: list[str] = []
    weaknesses: list[str] = []
    for each in items:
        if each.applies and each.turned is not None:
            found = strengths if each.turned >= 0.5 else weaknesses
            found.append(f"{each.title} (yes {each.p_yes:.2f})")
    return {
        "session_id": response.query_id,
        "parsed_result": {
            "strengths": "\n".join(strengths),
            "weaknesses": "\n".join(weaknesses),
            "score": str(score),
        },
        "meta_data": {"error": None},
        "model_test": response.candidate,
        "score": str(score),
        "model_output": response.text,
    }


_WINNER = {1: "model_a", 0: "tie", -1: "model_b"}


def match_rows(
    grid: ScoreGrid, tie_margin: float, judge: str, turns: Mapping[str, int]
) -> Iterator[Row]:
    """Yield every pair of scored responses to a query, in the format of MT-Bench's votes.

    A difference below the tie margin is a tie; the ranking uses the same comparisons.

    >>> grid = ScoreGrid.from_columns(["q", "q"], ["a", "b"], [7.0, 3.5])
    >>> next(match_rows(grid, 0.1, "judge", {"q": 1}))["winner"]
    'model_a'
    """
    for query_id, scores in zip(grid.query_ids, grid.scores, strict=True):
        present = np.flatnonzero(~np.isnan(scores))
        firsts, seconds = (present[places] for places in np.triu_indices(len(present), k=1))
        winners = compare(scores[firsts], scores[seconds], tie_margin).tolist()
        for first, second, winner in zip(firsts.tolist(), seconds.tolist(), winners, strict=True):
            yield {
                "question_id": query_id,
                "model_a": grid.candidates[first],
                "model_b": grid.candidates[second],
                "winner": _WINNER[winner],
                "judge": judge,
                "turn": turns.get(query_id, 1),
                "score_a": float(scores[first]),
                "score_b": float(scores[second]),
            }


def unmade_pairs(grid: ScoreGrid) -> int:
    """Count the pairs without a match because a score is missing."""
    candidates = len(grid.candidates)
    present = (~np.isnan(grid.scores)).sum(axis=1)
    possible = len(grid.query_ids) * candidates * (candidates - 1) // 2
    return int(possible - (present * (present - 1) // 2).sum())
