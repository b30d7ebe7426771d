"""Label tokens: one-token spellings only, and an answer only when all of them are told."""

from __future__ import annotations

import math

import pytest

from rocketeval.engines.labels import LabelTokens, find_label_tokens
from rocketeval.engines.readout import Readout
from rocketeval.records import Answer, Status

VOCABULARY = {"Yes": [1], " Yes": [2], "yes": [3], "No": [4], "no": [5], "\nYes": [9, 1]}


async def encode(text: str) -> list[int]:
    """Tokenise by a tiny vocabulary; other texts are two tokens."""
    return VOCABULARY.get(text, [7, 8])


async def test_only_single_tokens_are_labels() -> None:
    """A spelling of two tokens cannot be the first token, so it is no label."""
    found = await find_label_tokens(Readout(), encode)
    assert found == LabelTokens(yes=(1, 2, 3), no=(4, 5))
    assert found.ids == [1, 2, 3, 4, 5]


async def test_a_vocabulary_without_a_label_has_none() -> None:
    """Exact reading needs a token for yes and one for no."""

    async def only_yes(text: str) -> list[int]:
        return [1] if text == "Yes" else [7, 8]

    assert await find_label_tokens(Readout(), only_yes) is None


def test_labels_are_summed() -> None:
    """Every token of a label counts."""
    logps = {1: math.log(0.3), 2: math.log(0.3), 3: math.log(0.2)}
    answer = LabelTokens((1, 2), (3,)).read(Readout(), logps, "Yes")
    assert answer.p_yes == pytest.approx(0.75)


@pytest.mark.parametrize(
    "told",
    [
        {},
        {1: -0.1},
        {1: -0.1, 3: -3.0},
        {1: -0.3, 2: -2.0, 3: -math.inf},
        {1: -9999.0, 2: -9999.0, 3: -9999.0},
    ],
)
def test_a_label_left_out_is_no_answer(told: dict[int, float]) -> None:
    """An engine that leaves labels out, or writes a placeholder, did not do what it was asked."""
    assert LabelTokens((1, 2), (3,)).read(Readout(), told, None) == Answer(Status.NO_LOGPROBS)
