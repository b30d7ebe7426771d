"""Real samples of answers: planted ones agree with the expectation, or exceed it."""

from __future__ import annotations

import numpy as np
import pytest
from mt_bench import samples
from mt_bench.samples import Drawn

from rocketeval.scoring.answers import AnswerTable

QUERIES, ITEMS = 40, 8


def planted(sure: float) -> tuple[list[Drawn], AnswerTable]:
    """Return samples drawn with p_yes; a `sure` sampler moves p_yes toward 0 or 1 first."""
    rng = np.random.default_rng(0)
    p_yes = rng.uniform(0.2, 0.9, (QUERIES, ITEMS))
    queries = tuple(f"q{row:02d}" for row in range(QUERIES))
    offsets = np.arange(QUERIES + 1, dtype=np.int64) * ITEMS
    answers = AnswerTable(queries, ("c",) * QUERIES, p_yes.ravel(), offsets, {})
    used = p_yes + sure * ((p_yes > 0.5) - p_yes)
    yes = rng.binomial(samples.TIMES, used)
    drawn = [
        Drawn(query, "c", item, int(yes[row, item]), samples.TIMES - int(yes[row, item]))
        for row, query in enumerate(queries)
        for item in range(ITEMS)
    ]
    return drawn, answers


def test_samples_of_the_probabilities_agree_with_the_expectation() -> None:
    """The interval of the difference covers 0."""
    found = samples.compared(*planted(0.0))
    assert (found.items, found.queries, found.dropped) == (QUERIES * ITEMS, QUERIES, 0)
    assert found.more.low < 0.0 < found.more.high
    assert found.differ.value == pytest.approx(found.expected.value + found.more.value)


def test_a_surer_sampler_is_noticed() -> None:
    """Its samples differ less often than expected."""
    assert samples.compared(*planted(0.6)).more.high < 0.0


def test_samples_that_are_neither_yes_nor_no_are_counted() -> None:
    """Such an item is left out."""
    drawn, answers = planted(0.0)
    drawn[3] = Drawn(drawn[3].query_id, "c", 3, 2, 0)
    found = samples.compared(drawn, answers)
    assert (found.items, found.dropped) == (QUERIES * ITEMS - 1, 1)
