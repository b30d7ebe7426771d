"""The real judge offers what grading needs: first-token logprobs, a prefix cache, repeatability."""

from __future__ import annotations

import math
from typing import Any

from .server import ServedJudge, post_chat

RESPONSE = (
    "Bees gather nectar, carry it home, and pass it from one to another until most of the water "
    "has gone. What stays in the comb is honey, which keeps for years because almost nothing can "
    "live in so much sugar. A jar that has turned solid is still good: warm it gently."
)


def chat_fields(item: str) -> dict[str, Any]:
    """Return a one-token request about an item, as grading sends it."""
    return {
        "messages": [{"role": "user", "content": f"{RESPONSE}\n\n{item} Answer Yes or No."}],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": True,
        "top_logprobs": 20,
    }


def top_logprobs(reply: dict[str, Any]) -> list[tuple[str, float]]:
    """Return the first token's candidates, most likely first."""
    (first,) = reply["choices"][0]["logprobs"]["content"]
    return [(entry["token"], entry["logprob"]) for entry in first["top_logprobs"]]


def test_twenty_logprobs_come_back(judge_url: ServedJudge) -> None:
    """A request for the top 20 gets 20 distinct tokens, most likely first, within probability 1."""
    listed = top_logprobs(post_chat(judge_url, chat_fields("Is honey mentioned?")))

    logprobs = [logprob for _, logprob in listed]
    assert len({token for token, _ in listed}) == 20
    assert logprobs == sorted(logprobs, reverse=True)
    assert 0.0 < math.fsum(map(math.exp, logprobs)) <= 1.0 + 1e-6


def test_repeats_are_identical(judge_url: ServedJudge) -> None:
    """The same request in the same cache state gets the same logprobs, to the last bit."""
    fields = chat_fields("Is sugar mentioned?")
    post_chat(judge_url, fields)  # Cold and cached prefixes may differ, so the cache is filled.

    second, third = (top_logprobs(post_chat(judge_url, fields)) for _ in range(2))

    assert second == third


def test_items_differ(judge_url: ServedJudge) -> None:
    """Two items of one response get different logprobs: equal repeats are not a constant reply."""
    one = top_logprobs(post_chat(judge_url, chat_fields("Is water mentioned?")))
    other = top_logprobs(post_chat(judge_url, chat_fields("Is the response written in verse?")))

    assert one != other


def test_items_share_the_prefix(judge_url: ServedJudge) -> None:
    """The second item of a response finds most of its prompt in the prefix cache."""
    post_chat(judge_url, chat_fields("Is a jar mentioned?"))
    usage = post_chat(judge_url, chat_fields("Are bees mentioned?"))["usage"]

    assert usage["prompt_tokens_details"]["cached_tokens"] > usage["prompt_tokens"] / 2
