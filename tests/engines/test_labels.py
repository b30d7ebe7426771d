"""Label tokens: single-token spellings, and an answer only if all are reported."""

from __future__ import annotations

import math

import pytest

from rocketeval.engines.label_tokens import LabelTokens, find_label_tokens, refuse_split_labels
from rocketeval.engines.readout import Readout, spellings
from rocketeval.engines.scale_readout import ScaleReadout
from rocketeval.errors import EngineRefused
from rocketeval.records import Answer, Status

VOCABULARY = {"Yes": [1], " Yes": [2], "yes": [3], "No": [4], "no": [5], "\nYes": [9, 1]}


async def encode(text: str) -> list[int]:
    """Tokenize with a tiny vocabulary; other texts are two tokens."""
    return VOCABULARY.get(text, [7, 8])


async def test_only_single_tokens_are_labels() -> None:
    """A spelling of two tokens is not a label token."""
    found = await find_label_tokens(Readout(), encode)
    assert found == LabelTokens(((1, 2, 3), (4, 5)))
    assert found.ids == [1, 2, 3, 4, 5]


async def test_vocabulary_without_a_label_gives_none() -> None:
    """Exact reading needs a token for yes and one for no."""

    async def only_yes(text: str) -> list[int]:
        return [1] if text == "Yes" else [7, 8]

    assert await find_label_tokens(Readout(), only_yes) is None


def test_labels_are_summed() -> None:
    """Every token of a label counts."""
    logps = {1: math.log(0.3), 2: math.log(0.3), 3: math.log(0.2)}
    answer = LabelTokens(((1, 2), (3,))).read(Readout(), logps, "Yes")
    assert answer.p_yes == pytest.approx(0.75)


@pytest.mark.parametrize(
    "reported",
    [
        {},
        {1: -0.1},
        {1: -0.1, 3: -3.0},
        {1: -0.3, 2: -2.0, 3: -math.inf},
        {1: -9999.0, 2: -9999.0, 3: -9999.0},
    ],
)
def test_missing_label_is_no_answer(reported: dict[int, float]) -> None:
    """A missing label or a placeholder gives no answer."""
    assert LabelTokens(((1, 2), (3,))).read(Readout(), reported, None) == Answer(Status.NO_LOGPROBS)


async def test_scale_groups_tokens_by_label() -> None:
    """The groups are best first, each with its single-token spellings."""

    async def digits(text: str) -> list[int]:
        return [ord(letter) for letter in text]

    found = await find_label_tokens(ScaleReadout(("3", "2", "1")), digits)
    assert found == LabelTokens(((51,), (50,), (49,)))


async def test_non_ascii_labels_have_tokens() -> None:
    """Only spellings with byte markers are skipped."""

    async def words(text: str) -> list[int]:
        return {"\u662f": [1], "\u5426": [2]}.get(text, [7, 8])

    readout = Readout(yes=spellings("\u662f"), no=spellings("\u5426"))
    assert await find_label_tokens(readout, words) == LabelTokens(((1,), (2,)))


async def test_unknown_token_is_no_label() -> None:
    """A vocabulary with one unknown token for every word has no label tokens."""

    async def unknown(_: str) -> list[int]:
        return [0]

    assert await find_label_tokens(Readout(), unknown) is None


@pytest.mark.parametrize("words", [("10", "9", "1"), ("Awful", "A", "B")])
async def test_label_that_starts_with_another_is_refused(words: tuple[str, ...]) -> None:
    """If 10 is the tokens 1 and 0, a first token of 1 could mean either."""

    async def letters(text: str) -> list[int]:
        return [ord(letter) for letter in text]

    async def whole(text: str) -> list[int]:
        return [hash(text)]

    with pytest.raises(EngineRefused, match=f"{words[0]!r} begins with the token of"):
        await refuse_split_labels(words, letters, "judge")
    await refuse_split_labels(words, whole, "judge")
    await refuse_split_labels(("5", "4", "3"), letters, "judge")
