"""Python and the page use the same field names."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest

from rocketeval.evolve import result as described
from rocketeval.explain.influence import AnswerInfluence, InfluenceCost, PieceInfluence
from rocketeval.records import Interval
from rocketeval.report import model as data
from rocketeval.report import run_diff
from rocketeval.view import changes
from rocketeval.view.catalog import BaselineChoice
from rocketeval.view.labeling import LabelEstimate, LabelProgress, LabelQueue, QueuedPair
from rocketeval.view.live_judge import InfluenceOffer, InfluenceStep
from rocketeval.view.live_run import TextMatch
from support.contract import CONTRACT, contract_names

SAME = {
    "Interval": Interval,
    "Head": data.ReportHead,
    "TextMatch": TextMatch,
    "BaselineChoice": BaselineChoice,
    **{name: getattr(run_diff, name) for name in ("ResponseChange", "BestChange")},
    **{
        name: getattr(changes, name)
        for name in ("CandidateLine", "DiffPage", "AnswerChange", "ResponseDiff")
    },
    **{kind.__name__: kind for kind in (QueuedPair, LabelEstimate, LabelProgress, LabelQueue)},
    **{
        kind.__name__: kind
        for kind in (InfluenceCost, PieceInfluence, AnswerInfluence, InfluenceOffer, InfluenceStep)
    },
    **{
        name: getattr(data, name)
        for name in [
            "Candidate",
            "SliceMeans",
            "GroupMeans",
            "TrustNumber",
            "ReportFigure",
            "FigureTable",
            "ReportCurve",
            "StageCost",
            "MissingNote",
            "LostItem",
            "Explained",
            "LiveProgress",
            "RunLine",
            "RunsHead",
        ]
    },
}

DESCRIBED = {
    "EvaluatorBlock": described.EvaluatorInRun,
    **{name: getattr(described, name) for name in dir(described) if name.startswith("Described")},
}
del DESCRIBED["Described"]
BLOCKS = [
    "QueriesBlock",
    "SliceField",
    "ItemFigure",
    "QueryBlock",
    "RubricBlock",
    "LabelsBlock",
    "PairsBlock",
]


@pytest.mark.parametrize("name", SAME)
def test_records_match_the_contract(name: str) -> None:
    """Field by field, in order."""
    assert [field.name for field in fields(SAME[name])] == contract_names()[name]


@pytest.mark.parametrize("name", DESCRIBED)
def test_evaluators_match_the_contract(name: str) -> None:
    """Field by field, in order; the page reads evaluator.json unchanged."""
    assert [field.name for field in fields(DESCRIBED[name])] == contract_names()[name]


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks_match_the_contract(name: str) -> None:
    """Key by key."""
    assert sorted(getattr(data, name).__annotations__) == sorted(contract_names()[name])


@pytest.mark.parametrize("name", ["ANSWER_STEPS", "NO_ANSWER"])
def test_constants_match_the_contract(name: str) -> None:
    """Answers are decoded with the step size they were encoded with."""
    found = re.search(rf"const {name} = (\d+);", CONTRACT.read_text("utf-8"))
    assert found is not None
    assert int(found[1]) == getattr(data, name)
