"""The engine contract: every engine passes, and every check catches a violation."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import pytest

from contracts.engine_contract import EngineContract
from fakes.native_server import NativeServer
from fakes.openai_server import MODEL, FakeOpenAI, grades, serving
from rocketeval import testing as rules
from rocketeval.config import EngineConfig
from rocketeval.engines.base import EngineAnswers, EngineIdentity, Likelihood, WrittenText
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.readout import YES_NO
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.engines.transports.registry import TRANSPORTS
from rocketeval.records import Answer, GradingTask, Usage
from rocketeval.testing import ENGINE_CHECKS, EngineCase, check_engine
from support.judges import FORMS, engine_at

REJECTED = "far too long"
SCALE = ("5", "4", "3", "2", "1")


class TestScriptedEngine(EngineContract):
    """The scripted engine."""

    @pytest.fixture
    def case(self) -> EngineCase:
        return EngineCase(partial(ScriptedEngine, fail_on=REJECTED), REJECTED)


class TestScriptedScale(EngineContract):
    """The scripted engine, on a scale of grades."""

    @pytest.fixture
    def case(self) -> EngineCase:
        create = partial(ScriptedEngine, fail_on=REJECTED, labels=SCALE)
        return EngineCase(create, REJECTED, labels=SCALE)


class TestOpenAIEngine(EngineContract):
    """The HTTP engine, in front of a fake server."""

    @pytest.fixture
    async def case(self) -> AsyncIterator[EngineCase]:
        async with serving(FakeOpenAI(rejects=REJECTED)) as server:
            config = EngineConfig(model=MODEL, base_url=server.base_url, patience=1)
            yield EngineCase(partial(OpenAIEngine, config), REJECTED)


class TransportContract(EngineContract):
    """One request form, in front of a stub of a server that has it."""

    name: ClassVar[str]

    @pytest.fixture(params=[YES_NO, SCALE], ids=["yes_no", "scale"])
    async def case(self, request: pytest.FixtureRequest) -> AsyncIterator[EngineCase]:
        labels: tuple[str, ...] = request.param
        judge = replace(FORMS[self.name](), rejects=REJECTED)
        if labels == SCALE:
            judge.distribution = grades
        async with serving(judge) as server:
            assert isinstance(server, NativeServer)
            create = partial(engine_at, server, transport=self.name, labels=labels)
            yield EngineCase(create, REJECTED, labels=labels)


class TestChatOnStub(TransportContract):
    """`/chat/completions` with the most likely tokens."""

    name = "chat"


class TestChatExactOnStub(TransportContract):
    """`/chat/completions` with label tokens."""

    name = "chat_exact"


class TestChatBatchOnStub(TransportContract):
    """`/chat/completions/batch`."""

    name = "chat_batch"


class TestCompletionsOnStub(TransportContract):
    """`/completions` with a list of prompts."""

    name = "completions"


class TestGenerativeScoringOnStub(TransportContract):
    """`/generative_scoring`."""

    name = "generative_scoring"


class TestSGLangGenerateOnStub(TransportContract):
    """SGLang's `/generate`."""

    name = "sglang_generate"


class TestSGLangScoreOnStub(TransportContract):
    """SGLang's `/v1/score`."""

    name = "sglang_score"


class Honest(ScriptedEngine):
    """An engine that keeps the contract; each engine below breaks one rule."""

    def __init__(self) -> None:
        super().__init__(fail_on=REJECTED)


class Forgetful(Honest):
    """Reports a new identity every time."""

    number = itertools.count()

    async def identify(self) -> EngineIdentity:
        return replace(await super().identify(), version=str(next(self.number)))


class Scrambled(Honest):
    """Returns answers in alphabetical order of the items."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        return await super().grade(replace(task, suffixes=tuple(sorted(task.suffixes))), known)


class Overconfident(Honest):
    """Reports a probability outside its own bounds."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        graded = await super().grade(task, known)
        answers = tuple(replace(answer, p_low=0.999999) for answer in graded.answers)
        return replace(graded, answers=answers)


class Moody(Honest):
    """Changes its answers with every task."""

    def __init__(self) -> None:
        tasks = itertools.count()
        ScriptedEngine.__init__(self, lambda *_: 1 / (2 + next(tasks)), fail_on=REJECTED)


class Wasteful(Honest):
    """Asks items that are already known."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        return await super().grade(task, {})


class Silent(Honest):
    """Hides its failures."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        return replace(await super().grade(task, known), failure=None)


class Free(Honest):
    """Reports no usage."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        return replace(await super().grade(task, known), usage=Usage())


class Speechless(Honest):
    """Writes an empty text."""

    async def write(self, prompt: str, **settings: Any) -> WrittenText:
        return replace(await super().write(prompt, **settings), text="")


class Chatty(Honest):
    """Names yes and no as text."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        graded = await super().grade(task, known)
        return replace(graded, answers=tuple(replace(one, text="Yes") for one in graded.answers))


class Boastful(Honest):
    """Reports a likelihood above one."""

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        result = await super().likelihood(prompt, text)
        return replace(result, logprobs=tuple(-logp for logp in result.logprobs))


class Obliging(Honest):
    """Accepts an empty text."""

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        return await super().likelihood(prompt, text or "nothing")


class Fickle(Honest):
    """Reports a different likelihood every time."""

    number = itertools.count()

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        return await super().likelihood(f"{prompt}{next(self.number)}", text)


class Brittle(Honest):
    """Fails when closed twice."""

    closed = False

    async def aclose(self) -> None:
        assert not self.closed, "closed twice"
        self.closed = True


BROKEN = (
    (Forgetful, rules.check_identity, "same every time"),
    (Scrambled, rules.check_order, "order of the items"),
    (Overconfident, rules.check_probabilities, "within its bounds"),
    (Moody, rules.check_repeatable, "same answers"),
    (Wasteful, rules.check_known_answers, "unchanged"),
    (Silent, rules.check_failure, "name its failure"),
    (Free, rules.check_usage, "count its requests"),
    (Speechless, rules.check_write, "no text"),
    (Chatty, rules.check_labels, "no label to name"),
    (Boastful, rules.check_likelihood, "at most zero"),
    (Obliging, rules.check_likelihood, "an empty text"),
    (Fickle, rules.check_likelihood, "as likely again"),
    (Brittle, rules.check_close, "closed twice"),
)


async def test_check_engine_passes_a_good_engine() -> None:
    """check_engine raises nothing for an engine that keeps the contract."""
    await check_engine(Honest, rejected=REJECTED)


@pytest.mark.parametrize(
    ("engine", "check", "rule"), BROKEN, ids=[row[0].__name__ for row in BROKEN]
)
async def test_violation_is_named(
    engine: Callable[[], ScriptedEngine],
    check: Callable[[EngineCase], Awaitable[None]],
    rule: str,
) -> None:
    """An engine that breaks one rule fails its check, and the message names the rule."""
    with pytest.raises(AssertionError, match=rule):
        await check(EngineCase(engine, REJECTED))
    with pytest.raises(AssertionError):
        await check_engine(engine, rejected=REJECTED)


class Nameless(ScriptedEngine):
    """Grades on a scale without naming the most likely label."""

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        graded = await super().grade(task, known)
        return replace(graded, answers=tuple(replace(one, text=None) for one in graded.answers))


async def test_scale_answer_without_label_is_caught() -> None:
    """On a scale, every answer names the most likely label."""
    with pytest.raises(AssertionError, match="text must be one of"):
        await rules.check_labels(
            EngineCase(partial(Nameless, labels=SCALE), REJECTED, labels=SCALE)
        )
    await check_engine(
        partial(ScriptedEngine, fail_on=REJECTED, labels=SCALE), rejected=REJECTED, labels=SCALE
    )


def test_every_check_is_run_and_proven() -> None:
    """Every check is in the list and catches at least one engine."""
    written = {name for name in vars(rules) if name.startswith("check_")}
    written -= {"check_engine", "check_benchmark", "check_scorer"}
    assert {check.__name__ for check in ENGINE_CHECKS} == written
    assert {check.__name__ for _, check, _ in BROKEN} == written


def test_every_transport_has_a_contract() -> None:
    """Every request form has a contract class above."""
    covered = {contract.name for contract in TransportContract.__subclasses__()}
    assert covered == set(TRANSPORTS) == set(FORMS)
