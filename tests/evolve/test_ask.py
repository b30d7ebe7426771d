"""Asking perspectives: every question is asked once, also when the pool changes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from rocketeval.config import EngineConfig, RunConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError
from rocketeval.evolve import ask as ask_module
from rocketeval.evolve.ask import JudgedCases, PerspectiveAsker
from rocketeval.evolve.cases import Case, CaseTable, cases_from_votes
from rocketeval.evolve.perspective import AnswerFormat, Asking, Perspective, PerspectiveKind
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.records import GradingTask, Usage
from rocketeval.store.files import write_jsonl

SHORT = Perspective("Is it short?")
KIND = Perspective("Is it kind?")
SHORT_GRADED = Perspective("Is it short?", form=AnswerFormat.GRADED)
SUM = Perspective("Is it a sum?", PerspectiveKind.QUERY)


class Judge:
    """Scripted engines, one per set of labels, that count their questions."""

    def __init__(self) -> None:
        self.engines: list[ScriptedEngine] = []

    def make(self, config: EngineConfig, home: Path | None) -> ScriptedEngine:
        """Return an engine that prefers short responses, and response A."""
        engine = ScriptedEngine(self._p_yes, labels=config.labels, model=config.model)
        self.engines.append(engine)
        return engine

    @property
    def asked(self) -> int:
        """The number of questions over all engines."""
        return sum(engine.items_asked for engine in self.engines)

    def _p_yes(self, prefix: str, suffix: str) -> float:
        if "## Response A" in prefix:
            return 0.75
        if "## Response of the assistant" not in prefix:
            return 1.0 if "+" in prefix else 0.0
        return 0.9 if "Four!" in prefix else 0.2


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """A loaded run with two queries and two responses each."""
    folder = tmp_path / "benchmark"
    texts = {"sum": "2 + 2?", "tale": "A tale, please."}
    rows = [{"id": name, "text": text} for name, text in texts.items()]
    write_jsonl(folder / "queries.jsonl", rows)
    replies = {"x": "Four!", "y": "It is a long story."}
    responses = [
        {"query_id": query, "candidate": name, "text": text}
        for query in texts
        for name, text in replies.items()
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
    """A counting judge."""
    return Judge()


@pytest.fixture
def ask(run: Run, judge: Judge) -> Ask:
    """Ask perspectives about all voted pairs, or about given cases."""

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


def test_pair_is_difference_of_single_answers(ask: Ask) -> None:
    """Answers about two responses are subtracted; each query is asked about once."""
    table: CaseTable = ask(SHORT, SUM).table
    assert np.allclose(table.answers, [[0.7], [0.7]])
    assert table.traits.tolist() == [[1.0], [0.0]]


def test_pairs_asked_side_by_side(ask: Ask) -> None:
    """Answers range from -1 (b is better) to 1 (a is better), as a choice and as a grade."""
    asked = ask(SHORT, SHORT_GRADED, how="pairs")
    assert np.allclose(asked.table.answers, 0.5)
    assert set(asked.judges) == {"pairs-choice", "pairs-graded"}
    assert asked.judges["pairs-choice"] != asked.judges["pairs-graded"]


def test_single_response_case(ask: Ask) -> None:
    """Without a second candidate the answer itself is the feature."""
    cases = (Case("sum", ("x",), 5.0), Case("sum", ("y",), 1.0))
    assert ask(SHORT, cases=cases).table.answers.tolist() == [[0.9], [0.2]]


def test_grown_pool_asks_only_new_perspectives(ask: Ask, judge: Judge) -> None:
    """With four responses: four questions for a new perspective, none for an old one."""
    ask(SHORT)
    assert judge.asked == 4
    again = ask(SHORT, KIND)
    assert judge.asked == 8
    assert sum(facts.usage.requests for facts in again.question_sets.values()) == 4
    ask(KIND)
    ask(KIND, SHORT)
    assert judge.asked == 8


def test_returning_cases_reuse_answers(ask: Ask, judge: Judge) -> None:
    """Answers about one query are kept while another is asked about, also when the pool grows."""
    one, other = (Case("sum", ("x", "y"), 1.0),), (Case("tale", ("x", "y"), 1.0),)
    ask(SHORT, cases=one)
    ask(SHORT, KIND, cases=other)
    assert judge.asked == 6
    ask(SHORT, KIND, cases=(*one, *other))
    assert judge.asked == 8


def test_reference_data_without_response_is_refused(ask: Ask) -> None:
    """The error names the missing response."""
    with pytest.raises(BenchmarkError, match=r"1 responses .* that of 'z' to query 'sum'"):
        ask(SHORT, cases=(Case("sum", ("x", "z"), 1.0),))


async def test_usage_is_recorded_while_the_judge_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """A killed command loses the usage of a few seconds, not that of the whole question set."""
    monkeypatch.setattr(ask_module, "SETTLE_SECONDS", 0.0)
    recorded: list[tuple[Usage, int]] = []
    engine = ask_module.metered(ScriptedEngine(), lambda *used: recorded.append(used))
    task = GradingTask(b"k" * 16, "q", "c", "text", ("one", "two"))
    await engine.grade(task, {})
    await engine.grade(task, {})
    assert [(used.requests, questions) for used, questions in recorded] == [(2, 2), (2, 2)]
    await engine.aclose()
    assert sum(questions for _, questions in recorded) == 4
