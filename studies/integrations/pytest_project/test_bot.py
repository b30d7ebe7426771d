"""Tests of the support bot: one case, all cases of a file, and a comparison with the baseline."""

from __future__ import annotations

from pathlib import Path

import pytest
from support_bot import reply

from rocketeval.gate.cases import read_cases

CASES = read_cases(Path(__file__).parent / "cases.jsonl")


def test_refund(rocketeval):
    """One response against a checklist."""
    query = "Can I get a refund?"
    rocketeval.check(query, reply(query), ["Does the response mention 30 days?"], min_score=0.8)


@pytest.mark.rocketeval_cases("cases.jsonl")
def test_case(case, rocketeval):
    """Every case of the file."""
    rocketeval.check(case, reply(case.query))


def test_not_worse(rocketeval):
    """All cases together are not significantly worse than the accepted version."""
    for case in CASES:
        rocketeval.score(case, reply(case.query))
    rocketeval.assert_not_worse()
