"""Asking perspectives: every question once, whatever becomes of the pool."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rocketeval.config import EngineConfig, RunConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.ask import JudgedCases, PerspectiveAsker
from rocketeval.evolve.cases import Case, CaseTable, cases_from_votes
from rocketeval.evolve.perspective import AnswerFormat, Asking, Perspective, PerspectiveKind
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.store.files import write_jsonl

SHORT = Perspective("Is it short?")
KIND = Perspective("Is it kind?")
SHORT_GRADED = Perspective("Is it short?", form=AnswerFormat.GRADED)
SUM = Perspective("Is it a sum?", PerspectiveKind.QUERY)


class Judge:
    """Scripted engines, one for each set of labels, that count what they are asked."""

    def __init__(self) -> None:
        self.engines: list[ScriptedEngine] = []

    def make(self, config: EngineConfig, home: Path | None) -> ScriptedEngine:
        """Return an engine that likes short responses, and response A."""
        engine = ScriptedEngine(self._p_yes, labels=config.labels, model=config.model)
        self.engines.append(engine)
        return engine

    @property
    def asked(self) -> int:
        """How many questions were answered by all of them."""
        return sum(engine.items_asked for engine in self.engines)

    def _p_yes(self, prefix: str, suffix: str) -> float:
        if "## Response A" in prefix:
            return 0.75
        if "## Response of the assistant" not in prefix:
            return 1.0 if "+" in prefix else 0.0
        return 0.9 if "Four!" in prefix else 0.2


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Two queries with two responses each, loaded."""
    folder = tmp_path / "benchmark"
    texts = {"sum": "2 + 2?", "tale": "A tale, please."}
    rows = [{"id": name, "text": text} for name, text in texts.items()]
    write_jsonl(folder / "queries.jsonl", rows)
    said = {"x": "Four!", "y": "It is a long story."}
    responses = [
        {"query_id": query, "candidate": name, "text": text}
        for query in texts
        for name, text in said.items()
    ]
    write_jsonl(folder / "responses.jsonl", responses)
    votes = [
        {"query_id": query, "candidate_a": "x", "candidate_b": "y", "winner": "a"}
        for query in texts
    ]
    write_jsonl(folder / "votes.jsonl", votes)
    config = RunConfig.model_validate(
        {
            "benchmark": {"path": folder},
            "judge": {"engine": "scripted", "model": "m"},
            "output": tmp_path / "runs",
            "cache": None,
        }
    )
    run = Run(config)
    run.load()
    return run


Ask = Callable[..., JudgedCases]


@pytest.fixture
def judge() -> Judge:
    """A judge that counts."""
    return Judge()


@pytest.fixture
def ask(run: Run, judge: Judge) -> Ask:
    """Asks some perspectives about all voted pairs, or about given cases."""

    def asking(
        *pool: Perspective, how: Asking = "each", cases: tuple[Case, ...] | None = None
    ) -> JudgedCases:
        asker = PerspectiveAsker(
            run.store,
            run.config,
            Observer(),
            asyncio.Event(),
            asking=how,
            make_engine=judge.make,
        )
        voted = cases_from_votes(run.store.inputs.votes())
        return asyncio.run(asker.ask(pool, voted if cases is None else cases))

    return asking


def test_each_response_is_asked_about_and_a_pair_is_their_difference(ask: Ask) -> None:
    """Of two responses the answers are subtracted; queries are asked about once."""
    table: CaseTable = ask(SHORT, SUM).table
    assert np.allclose(table.answers, [[0.7], [0.7]])
    assert table.traits.tolist() == [[1.0], [0.0]]


def test_a_pair_is_asked_about_as_one(ask: Ask) -> None:
    """Answers go from -1 (for b) to 1 (for a), as a choice and as a grade."""
    asked = ask(SHORT, SHORT_GRADED, how="pairs")
    assert np.allclose(asked.table.answers, 0.5)
    assert set(asked.judges) == {"pairs-choice", "pairs-graded"}
    assert asked.judges["pairs-choice"] != asked.judges["pairs-graded"]


def test_a_response_is_a_case_of_its_own(ask: Ask) -> None:
    """Without a second candidate the answer itself is the feature."""
    cases = (Case("sum", ("x",), 5.0), Case("sum", ("y",), 1.0))
    assert ask(SHORT, cases=cases).table.answers.tolist() == [[0.9], [0.2]]


def test_a_grown_pool_asks_only_what_is_new(ask: Ask, judge: Judge) -> None:
    """Four responses: four questions for a new perspective, none for one that was asked before."""
    ask(SHORT)
    assert judge.asked == 4
    again = ask(SHORT, KIND)
    assert judge.asked == 8
    assert sum(facts.usage.requests for facts in again.question_sets.values()) == 4
    ask(KIND)
    ask(KIND, SHORT)
    assert judge.asked == 8


def test_cases_that_were_away_for_a_while_are_not_asked_again(ask: Ask, judge: Judge) -> None:
    """Answers about one query outlast an asking about another one, also under a grown pool."""
    one, other = (Case("sum", ("x", "y"), 1.0),), (Case("tale", ("x", "y"), 1.0),)
    ask(SHORT, cases=one)
    ask(SHORT, KIND, cases=other)
    assert judge.asked == 6
    ask(SHORT, KIND, cases=(*one, *other))
    assert judge.asked == 8


def test_gold_without_a_response_is_refused(ask: Ask) -> None:
    """The missing response is named."""
    with pytest.raises(BenchmarkError, match=r"1 responses .* that of 'z' to query 'sum'"):
        ask(SHORT, cases=(Case("sum", ("x", "z"), 1.0),))
