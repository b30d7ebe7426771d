"""The proven interval contains the exact p_yes of a real judge, however few tokens it lists.

llama.cpp lists as many tokens as requested, so the whole distribution over SmolLM2's vocabulary is
available: the exact p_yes is known, and every shorter list can be compared with it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError

import pytest

from rocketeval.engines.readout import Readout
from rocketeval.grading.loop import grading_prompt
from rocketeval.records import Answer, Checklist, Query, Response, Status

from .server import ServedJudge, post_chat

Listed = list[tuple[str, float]]

EVERY_TOKEN = 1_000_000
"""More tokens than any vocabulary has."""
ROUNDING = 1e-3
"""llama.cpp sums a vocabulary in single precision, in an order that depends on the list's length;
this does not affect the ratio of two tokens."""
REAL_K = (1, 2, 3, 5, 10, 20)
ALL_K = range(1, 21)
READOUT = Readout(min_mass=0.0, max_width=1.0)
CASES = (
    ("What do bees make?", "Bees make honey from nectar.", "Does the response mention honey?"),
    ("What do bees make?", "I like trains.", "Does the response mention honey?"),
    ("Say nothing.", "", "Is the response empty?"),
)


@dataclass(frozen=True)
class Graded:
    """One grading prompt with the judge's distribution."""

    prompt: str
    everything: Listed
    """The whole vocabulary, most likely first."""
    p_yes: float
    """Exact: every spelling of yes and no summed."""
    replies: Mapping[int, Listed]
    """The server's top-k lists, by k."""


def fields(prompt: str, top: int) -> dict[str, Any]:
    """Return a one-token request, as grading sends it."""
    return {
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": top,
    }


def listed(reply: dict[str, Any]) -> Listed:
    """Return the tokens of the first position."""
    (first,) = reply["choices"][0]["logprobs"]["content"]
    return [(row["token"], row["logprob"]) for row in first["top_logprobs"]]


def settled(judge: ServedJudge, request: dict[str, Any]) -> Listed:
    """Return the reply when the cache holds only this prompt; other states differ slightly."""
    post_chat(judge, {**request, "top_logprobs": 1})
    return listed(post_chat(judge, request))


def exact_p_yes(everything: Listed) -> float:
    """Return the exact p_yes, computed over the whole vocabulary."""
    yes, no = (
        math.fsum(math.exp(logp) for token, logp in everything if token in spelled)
        for spelled in (READOUT.yes, READOUT.no)
    )
    return yes / (yes + no)


def assert_same(reply: Listed, expected: Listed) -> None:
    """Assert the same tokens and values, up to the rounding of the server's softmax."""
    assert [token for token, _ in reply] == [token for token, _ in expected]
    assert [logp for _, logp in reply] == pytest.approx([p for _, p in expected], abs=ROUNDING)


def assert_holds(answer: Answer, p_yes: float, what: str) -> None:
    """Assert that an answer is missing, or an interval that contains the exact value."""
    if answer.p_low is None or answer.p_high is None:
        assert answer.status is Status.HIDDEN, f"{what}: {answer}"
        return
    assert answer.p_low - 1e-6 <= p_yes <= answer.p_high + 1e-6, f"{what}: {p_yes} not in {answer}"


@pytest.fixture(scope="module")
def graded(judge_url: ServedJudge) -> Sequence[Graded]:
    """Return real grading prompts with the judge's whole distribution after each."""
    prompts = []
    for query, response, item in CASES:
        task = grading_prompt(None).render(
            Query("q", query), Response("q", "mine", response), Checklist("q", (item,)), b"k"
        )
        prompts.append(task.prefix + task.suffixes[0])
    found = []
    for prompt in prompts:
        try:
            everything = settled(judge_url, fields(prompt, EVERY_TOKEN))
        except HTTPError as error:
            pytest.skip(f"this server does not list its whole vocabulary (HTTP {error.code})")
        replies = {k: listed(post_chat(judge_url, fields(prompt, k))) for k in REAL_K}
        found.append(Graded(prompt, everything, exact_p_yes(everything), replies))
    return found


def test_list_is_the_whole_distribution(graded: Sequence[Graded]) -> None:
    """All tokens of the vocabulary are listed, and their probabilities sum to one."""
    for case in graded:
        assert len(case.everything) > 40_000
        assert math.fsum(math.exp(logp) for _, logp in case.everything) == pytest.approx(
            1.0, abs=ROUNDING
        )


def test_complete_list_gives_the_exact_value(graded: Sequence[Graded]) -> None:
    """The complete distribution gives p_yes itself."""
    for case in graded:
        assert READOUT.read(case.everything).p_yes == pytest.approx(case.p_yes, abs=1e-12)


def test_every_truncation_contains_the_exact_value(graded: Sequence[Graded]) -> None:
    """For the top 1 to 20, the interval contains p_yes and never widens with more tokens."""
    proven = 0
    for case in graded:
        widths = []
        for k in ALL_K:
            answer = READOUT.read(case.everything[:k])
            assert_holds(answer, case.p_yes, f"top {k}")
            if answer.p_low is not None and answer.p_high is not None:
                proven += 1
                widths.append(answer.p_high - answer.p_low)
        assert widths == sorted(widths, reverse=True)
    assert proven > len(graded), "a suite in which nothing was ever proven shows nothing"


@pytest.mark.parametrize("k", REAL_K)
def test_real_replies_contain_the_exact_value(graded: Sequence[Graded], k: int) -> None:
    """The reply for a small k is the head of the whole list, with an interval at least as tight."""
    for case in graded:
        assert_same(case.replies[k], case.everything[:k])
        assert_holds(READOUT.read(case.replies[k]), case.p_yes, f"top {k}")


@pytest.mark.parametrize(
    "setting",
    [
        {"temperature": 2.5},
        {"grammar": 'root ::= "Yes" | "No"'},
        {"logit_bias": [["Yes", 5.0]]},
    ],
    ids=["temperature", "grammar", "bias"],
)
def test_listed_values_are_raw(
    judge_url: ServedJudge, graded: Sequence[Graded], setting: dict[str, Any]
) -> None:
    """Sampling settings choose the token, but change no listed probability."""
    case = graded[0]
    reply = settled(judge_url, {**fields(case.prompt, 20), **setting})
    assert_same(reply, case.everything[:20])
