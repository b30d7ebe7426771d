"""Every request form returns the model's probabilities."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fakes.native_server import CONTEXT, PLACEHOLDER, NativeServer
from fakes.openai_server import FILLER, answer, grades, status, yes_no
from fakes.toy_tokenizer import ToyTemplate
from fakes.vllm_server import VLLMShaped
from rocketeval.config import EngineConfig
from rocketeval.engines.http import MOST_UNUSABLE
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.replies import UsageMeter
from rocketeval.engines.scripted import exact_answer
from rocketeval.errors import ConfigError, EngineRefused, RequestRejected, UnusableReply
from rocketeval.records import Answer, GradingTask, Status
from support.judges import FORMS, RAW, SEVERAL, judged, probed

pytestmark = pytest.mark.usefixtures("fast_retries")

TASK = GradingTask(b"one", "q", "c", "Shared words. ", ("First?", "Second?", "Third?"))
EXACT = [name for name in FORMS if name != "chat"]
PATHS = {
    "chat": "/v1/chat/completions",
    "chat_exact": "/v1/chat/completions",
    "chat_batch": "/v1/chat/completions/batch",
    "completions": "/v1/completions",
    "generative_scoring": "/generative_scoring",
    "sglang_generate": "/generate",
    "sglang_score": "/v1/score",
}
SCALE = tuple("54321")
LABELS = 8
"""Yes and no tokens of the toy vocabulary."""
NEXT_TO_NOTHING = 1e-9
"""The probability that the stubs give to tokens outside a distribution."""


def share_of(prompt: str) -> float:
    """Return a p_yes determined by the prompt, far from 0 and 1."""
    return 0.1 + 0.8 * hashlib.sha256(prompt.encode()).digest()[0] / 255


def spread(prompt: str) -> dict[str, float]:
    """Return a distribution in which several spellings of yes and no share probability."""
    p_yes = share_of(prompt)
    rest = {f"word{number}": 0.1 / FILLER for number in range(FILLER)}
    yes = {"Yes": 0.5 * p_yes, " yes": 0.4 * p_yes}
    return {**yes, "No": 0.6 * (1 - p_yes), " no": 0.3 * (1 - p_yes), **rest}


def truths(task: GradingTask) -> list[float]:
    """Return the expected answers."""
    return [share_of(task.prefix + suffix) for suffix in task.suffixes]


def found(answers: tuple[Answer, ...]) -> list[float | None]:
    """Return the probabilities."""
    return [one.p_yes for one in answers]


def stub(name: str, **settings: Any) -> NativeServer:
    """Return a server that has the form, with several spellings in use."""
    return replace(FORMS[name](), distribution=spread, **settings)


@pytest.mark.parametrize("name", FORMS)
async def test_probability_is_the_models(name: str) -> None:
    """All spellings of a label are summed in every form."""
    async with judged(stub(name), transport=name) as engine:
        answers = (await engine.grade(TASK, {})).answers
    assert found(answers) == pytest.approx(truths(TASK), abs=NEXT_TO_NOTHING)
    assert [one.mass for one in answers] == pytest.approx([0.9] * 3, abs=NEXT_TO_NOTHING)


@pytest.mark.parametrize("name", FORMS)
async def test_exact_forms_have_point_intervals(name: str) -> None:
    """Exact forms have point intervals; a top-k list leaves a small interval."""
    async with judged(stub(name), transport=name) as engine:
        answers = (await engine.grade(TASK, {})).answers
    for one in answers:
        assert one.p_low is not None
        assert one.p_high is not None
        assert (one.p_low == one.p_yes == one.p_high) == (name in EXACT)
        assert one.p_low <= (one.p_yes or 0) <= one.p_high


@pytest.mark.parametrize("name", FORMS)
async def test_calls_per_response(name: str) -> None:
    """One call per response if it takes a list; vLLM's scoring needs one per label."""
    server = stub(name)
    async with judged(server, transport=name) as engine:
        await engine.grade(TASK, {})
        assert (engine.items_per_call > 1) == (name in SEVERAL)
    sizes = [len(call.prompts) for call in server.calls]
    assert {call.path for call in server.calls} == {PATHS[name]}
    if name == "generative_scoring":
        assert sizes == [3] * LABELS
    else:
        assert sizes == ([3] if name in SEVERAL else [1, 1, 1])


async def test_long_checklist_is_split_into_calls() -> None:
    """No call exceeds the limit, and no item is lost between calls."""
    server = stub("chat_batch")
    task = replace(TASK, suffixes=tuple(f"Point {number}?" for number in range(70)))
    async with judged(server, transport="chat_batch") as engine:
        graded = await engine.grade(task, {})
    assert [len(call.prompts) for call in server.calls] == [64, 6]
    assert found(graded.answers) == pytest.approx(truths(task), abs=NEXT_TO_NOTHING)


@pytest.mark.parametrize("name", ["chat_batch", "completions", "generative_scoring"])
async def test_order_is_kept(name: str) -> None:
    """Answers are matched by index, whatever their order."""
    async with judged(stub(name, shuffled=True), transport=name) as engine:
        answers = (await engine.grade(TASK, {})).answers
    assert found(answers) == pytest.approx(truths(TASK), abs=NEXT_TO_NOTHING)


@pytest.mark.parametrize("asked", [2, 4])
@pytest.mark.parametrize("name", SEVERAL)
async def test_wrong_number_of_answers_is_rejected(name: str, asked: int) -> None:
    """A reply without exactly one answer per item is rejected."""
    server = stub(name)
    async with probed(server, name) as found:
        other = ["Shared words. First?", "Shared words. Second?", "Shared words.", "Well?"][:asked]
        replies: list[Any] = []
        keep = server.endpoints()[PATHS[name]]

        def of_another_number(body: Any) -> Any:
            return keep(replies[0])

        await found.transport.ask(other, {}, UsageMeter())
        replies.append(server.calls[-1].seen.body)
        endpoints = {**server.endpoints(), PATHS[name]: of_another_number}
        server.endpoints = lambda: endpoints  # type: ignore[method-assign]
        with pytest.raises(RequestRejected, match=rf"sent {asked} \w+ for 3 items"):
            await found.transport.ask(["Shared. A?", "Shared. B?", "Shared. C?"], {}, UsageMeter())


@pytest.mark.parametrize("index", [[0, 0, 1], [1, 2, 3]])
async def test_misnumbered_answers_are_rejected(index: list[int]) -> None:
    """Two answers to one item, or an index beyond the list, are rejected."""
    server = stub("chat_batch")
    async with probed(server, "chat_batch") as found:
        rows = [server.chat_choice(number, [("token_id:5", -0.1)]) for number in index]
        server.fail(answer({"choices": rows}), times=MOST_UNUSABLE)
        with pytest.raises(RequestRejected, match="numbered"):
            await found.transport.ask(["A?", "B?", "C?"], {}, UsageMeter())


@pytest.mark.parametrize("name", SEVERAL)
async def test_rejected_item_fails_only_itself(name: str) -> None:
    """If one item fails the call, items are asked one by one, and only it fails."""
    server = stub(name, rejects="Second")
    async with judged(server, transport=name) as engine:
        graded = await engine.grade(TASK, {})
    first, second, third = truths(TASK)
    assert second != first
    assert found(graded.answers) == [
        pytest.approx(first, abs=NEXT_TO_NOTHING),
        None,
        pytest.approx(third, abs=NEXT_TO_NOTHING),
    ]
    assert graded.answers[1] == Answer(Status.ERROR)
    assert graded.failure is not None
    assert graded.failure.startswith("item 2: HTTP 400")
    assert not graded.unavailable


@pytest.mark.usefixtures("fast_retries")
async def test_dead_server_is_not_asked_item_by_item() -> None:
    """Calls are split only for rejected items; a dead server fails the task at once."""
    server = stub("chat_batch")
    async with judged(server, transport="chat_batch", patience=0.05) as engine:
        await engine.identify()
        server.fail(status(400))
        server.fail(status(503), times=1000)
        graded = await engine.grade(TASK, {})
    assert graded.unavailable
    assert {len(call.prompts) for call in server.calls[1:]} == {1}
    assert {call.prompts for call in server.calls[1:]} == {("Shared words. First?",)}


@pytest.mark.parametrize("name", FORMS)
async def test_known_items_are_not_sent(name: str) -> None:
    """Known items are not asked or paid for again."""
    server = stub(name)
    known = {0: exact_answer(0.5), 2: exact_answer(0.25)}
    async with judged(server, transport=name) as engine:
        graded = await engine.grade(TASK, known)
    assert {len(call.prompts) for call in server.calls} == {1}
    assert all("Second" in call.prompts[0] for call in server.calls)
    assert found(graded.answers) == [0.5, pytest.approx(truths(TASK)[1]), 0.25]


@pytest.mark.parametrize(
    ("name", "items", "cached"),
    [
        ("chat", 3, 6),
        ("chat_exact", 3, 6),
        ("chat_batch", 3, 0),
        ("completions", 3, 0),
        ("completions", 1, 3),
        ("generative_scoring", 3, 0),
        ("sglang_generate", 3, 15),
        ("sglang_score", 3, 0),
    ],
)
async def test_partial_cached_tokens_are_not_counted(name: str, items: int, cached: int) -> None:
    """A server that reports cached tokens of some prompts is not used for all."""
    task = replace(TASK, suffixes=TASK.suffixes[:items])
    async with judged(stub(name), transport=name) as engine:
        usage = (await engine.grade(task, {})).usage
    assert usage.cached_tokens == cached
    assert usage.prompt_tokens > 0


@pytest.mark.parametrize("tells_usage", [True, False])
async def test_scores_without_usage_are_counted_here(tells_usage: bool) -> None:
    """If SGLang does not report tokens, the tokens sent are counted."""
    server = stub("sglang_score", tells_usage=tells_usage)
    async with judged(server, transport="sglang_score") as engine:
        usage = (await engine.grade(TASK, {})).usage
    framed = [server.template.render(TASK.prefix + suffix) for suffix in TASK.suffixes]
    assert usage.prompt_tokens == sum(len(server.tokens(prompt)) for prompt in framed)


@pytest.mark.parametrize("name", FORMS)
async def test_response_is_one_session(name: str) -> None:
    """All calls of a response have one session value, the next response another."""
    server = stub(name)
    async with judged(server, transport=name) as engine:
        await engine.grade(TASK, {})
        first = {call.seen.headers.get("x-session-id") for call in server.calls}
        server.calls.clear()
        await engine.grade(replace(TASK, key=b"two"), {})
        second = {call.seen.headers.get("x-session-id") for call in server.calls}
    assert (first, second) == ({b"one".hex()}, {b"two".hex()})


async def test_session_header_is_configurable() -> None:
    """Routers use different headers; null sends none."""
    server = stub("chat")
    async with judged(server, transport="chat", session_header="x-user") as engine:
        await engine.grade(TASK, {})
    assert {call.seen.headers.get("x-user") for call in server.calls} == {b"one".hex()}
    server = stub("chat")
    async with judged(server, transport="chat", session_header=None) as engine:
        await engine.grade(TASK, {})
    assert not [name for call in server.calls for name in call.seen.headers if "session" in name]


async def test_prompt_is_one_session() -> None:
    """Written texts and likelihoods are spread over replicas by prompt."""
    server = stub("chat")
    async with judged(server, transport="chat") as engine:
        for prompt in ("One.", "Two."):
            await engine.write(prompt, max_tokens=9)
            await engine.write(prompt, max_tokens=9, temperature=0.7, seed=1)
            await engine.likelihood(prompt, "Yes.")
    sessions = [call.seen.headers["x-session-id"] for call in server.calls]
    assert [len(set(part)) for part in (sessions, sessions[:3], sessions[3:])] == [2, 1, 1]


@pytest.mark.parametrize("name", FORMS)
async def test_extra_body_reaches_every_form(name: str) -> None:
    """The user's settings are in every request; chat settings only in chat requests."""
    extra = {"priority": 7, "chat_template_kwargs": {"enable_thinking": False}}
    server = stub(name)
    async with judged(server, transport=name, extra_body=extra) as engine:
        await engine.grade(TASK, {})
    for call in server.calls:
        assert call.seen.body["priority"] == 7
        assert ("chat_template_kwargs" in call.seen.body) == (name not in RAW)


@pytest.mark.parametrize("name", ["completions", "generative_scoring"])
@pytest.mark.parametrize("trims", [True, False])
async def test_trimming_template_is_followed(name: str, trims: bool) -> None:
    """If the server's template strips a message, a prompt framed here is stripped too."""
    server = stub(name, template=ToyTemplate(trims=trims))
    task = replace(TASK, prefix="  Shared words. ", suffixes=("First? ", "Second?\n"))
    async with judged(server, transport=name) as engine:
        answers = (await engine.grade(task, {})).answers
    messages = [task.prefix + suffix for suffix in task.suffixes]
    expected = [share_of(message.strip() if trims else message) for message in messages]
    assert found(answers) == pytest.approx(expected, abs=NEXT_TO_NOTHING)


async def test_scoring_rejects_too_long_prompts() -> None:
    """vLLM's scoring endpoint truncates silently, so long prompts are not sent."""
    server = stub("generative_scoring")
    task = replace(TASK, suffixes=("First?", "long " * CONTEXT, "Third?"))
    async with judged(server, transport="generative_scoring") as engine:
        graded = await engine.grade(task, {})
    assert graded.failure is not None
    assert f"context is {CONTEXT}" in graded.failure
    assert [one.status for one in graded.answers] == [Status.OK, Status.ERROR, Status.OK]
    assert all("long" not in prompt for call in server.calls for prompt in call.prompts)


@pytest.mark.parametrize("p_yes", [0.002, 0.3, 0.7, 0.998])
async def test_placeholders_are_never_certain(p_yes: float) -> None:
    """A damaged vLLM list gives an interval, not 0 or 1."""
    server = VLLMShaped(mixed=True, distribution=lambda _: yes_no(p_yes, mass=0.99))
    async with judged(server, transport="chat") as engine:
        answers = (await engine.grade(TASK, {})).answers
    for one in answers:
        assert one.status in (Status.TRUNCATED, Status.UNBOUNDED)
        assert one.p_yes not in (0.0, 1.0)
        assert one.p_low is not None
        assert one.p_high is not None
        assert one.p_low <= p_yes <= one.p_high


@pytest.mark.parametrize("name", ["chat_exact", "chat_batch", "completions"])
@pytest.mark.parametrize("damage", ["placeholder", "missing"])
async def test_missing_label_is_no_answer(name: str, damage: str) -> None:
    """Half of the labels at minus infinity, or missing, is not a p_yes of one."""
    server = stub(name)

    def reported(ids: list[int]) -> list[tuple[str, float]]:
        rows = [(f"token_id:{token}", -0.3 - 3 * rank) for rank, token in enumerate(ids)]
        half = len(rows) // 2
        placeholders = [(token, PLACEHOLDER) for token, _ in rows[half:]]
        return rows[:half] + (placeholders if damage == "placeholder" else [])

    async with probed(server, name) as found:
        assert found.wire.labels is not None
        rows = reported(found.wire.labels.ids)
        if name == "completions":
            choice: Mapping[str, Any] = {"text": "Yes", "logprobs": {"top_logprobs": [dict(rows)]}}
        else:
            choice = server.chat_choice(0, rows)
        server.fail(answer({"choices": [choice]}), times=MOST_UNUSABLE)
        with pytest.raises(UnusableReply, match="no log-probabilities"):
            await found.transport.ask(["Well?"], {}, UsageMeter())


async def test_unlikely_sampled_token_gives_no_bound() -> None:
    """A sampled unlikely token must not count as the least likely of the top tokens."""
    shares = {"Yes": 0.5, "maybe": 0.2, "perhaps": 0.1999, "No": 0.1, "never": 0.0001}
    server = VLLMShaped(
        distribution=lambda _: shares, scales=lambda temperature: temperature or None
    )
    async with judged(server, transport="chat", top_logprobs=3, max_width=1.0) as engine:
        assert (await engine.identify()).logprobs == "top3 processed"
        one = (await engine.grade(TASK, {})).answers[0]
    assert {call.seen.body["temperature"] for call in server.calls} == {1.0}
    assert one.p_low is not None
    assert one.p_high is not None
    assert one.p_low <= 0.5 / 0.6 <= one.p_high


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("chat_batch", {"choices": "Yes"}),
        ("chat_batch", {"choices": [{"logprobs": {"content": [{"top_logprobs": [{}]}]}}]}),
        ("completions", {"choices": [{"logprobs": {"top_logprobs": ["Yes"]}}]}),
        ("completions", {"choices": [{"logprobs": ["Yes"]}]}),
        ("completions", {"choices": ["Yes"]}),
        ("generative_scoring", {"data": [{"index": 0}]}),
        ("generative_scoring", {"data": [{"index": 0, "score": -2.5}]}),
        ("generative_scoring", {"data": [0.4]}),
        ("sglang_generate", {"text": "Yes"}),
        ("sglang_generate", [{"text": "Yes"}]),
        ("sglang_generate", [{"meta_info": {"output_token_ids_logprobs": []}}]),
        ("sglang_generate", [{"meta_info": {"output_token_ids_logprobs": [[[-0.1]]]}}]),
        ("sglang_score", {"scores": [[0.4]]}),
        ("sglang_score", {"scores": [[-0.5] * LABELS]}),
        ("sglang_score", {"scores": [0.4]}),
    ],
)
async def test_reply_of_another_shape_is_rejected(name: str, reply: Any) -> None:
    """Unexpected JSON fails the item with a reason, and never crashes."""
    server = stub(name)
    async with judged(server, transport=name) as engine:
        await engine.identify()
        server.fail(answer(reply), times=MOST_UNUSABLE)
        graded = await engine.grade(replace(TASK, suffixes=("First?",)), {})
    assert graded.failure is not None
    assert graded.failure.startswith("item 1: the server")


@pytest.mark.parametrize("listed", [{"Yes": -0.1}, {"token_id:5": None}, {}, None])
async def test_missing_labels_are_a_failure(listed: Any) -> None:
    """A completion without the requested tokens is no answer, however often it is sent."""
    server = stub("completions")
    async with judged(server, transport="completions") as engine:
        await engine.identify()
        fault = answer({"choices": [{"logprobs": {"top_logprobs": [listed]}}]})
        server.fail(fault, times=MOST_UNUSABLE)
        graded = await engine.grade(replace(TASK, suffixes=("First?",)), {})
    assert graded.answers == (Answer(Status.ERROR),)
    assert "log-probabilities" in str(graded.failure)


async def test_empty_score_is_no_answer() -> None:
    """SGLang writes null or zero for an unknown label, which is not a probability."""
    server = stub("sglang_generate")
    async with probed(server, "sglang_generate") as found:
        assert found.wire.labels is not None
        rows = [[-0.1 - 3 * rank, token, None] for rank, token in enumerate(found.wire.labels.ids)]
        rows[-1][0] = None
        meta = {"output_token_ids_logprobs": [rows]}
        server.fail(answer([{"text": "Yes", "meta_info": meta}]), times=MOST_UNUSABLE)
        with pytest.raises(UnusableReply, match="no log-probabilities"):
            await found.transport.ask(["Well?"], {}, UsageMeter())


def test_unknown_form_is_named() -> None:
    """The error suggests the nearest form."""
    config = EngineConfig(model="m", base_url="http://127.0.0.1:9/v1", transport="chat_bach")
    with pytest.raises(ConfigError, match="chat_bach") as caught:
        OpenAIEngine(config)
    assert "chat_batch" in caught.value.hint


def test_expected_answers_differ() -> None:
    """The items have different answers, so a mixed-up order would be detected."""
    assert len({round(p, 3) for p in truths(TASK)}) == len(TASK.suffixes)
    assert math.fsum(spread("x").values()) == pytest.approx(1.0)


@pytest.mark.parametrize("name", FORMS)
async def test_every_form_grades_on_a_scale(name: str) -> None:
    """The expected grade and the most likely label are the model's in every form."""
    server = replace(FORMS[name](), distribution=grades)
    async with judged(server, transport=name, labels=SCALE) as engine:
        answers = (await engine.grade(TASK, {})).answers
        identity = await engine.identify()
    for one, suffix in zip(answers, TASK.suffixes, strict=True):
        shares = [grades(TASK.prefix + suffix)[word] for word in SCALE]
        weighed = math.fsum(share * (4 - place) / 4 for place, share in enumerate(shares))
        assert one.p_yes == pytest.approx(weighed / math.fsum(shares), abs=NEXT_TO_NOTHING)
        assert one.mass == pytest.approx(0.9, abs=NEXT_TO_NOTHING)
        assert one.text == SCALE[shares.index(max(shares))]
        assert (one.p_low == one.p_high) == (name in EXACT)
    ids = [server.tokenizer.id_of(word) for word in SCALE]
    reported = f"exact{ids}" if name in EXACT else "top20"
    assert identity.logprobs.partition("+")[0] == reported


async def test_labels_that_start_alike_are_refused() -> None:
    """If 10 is two tokens, a first token of 1 is ambiguous: no form is tried."""
    labels = ("10", *"987654321")
    async with judged(VLLMShaped(), labels=labels) as engine:
        with pytest.raises(EngineRefused, match="'10' begins with the token of '1'") as caught:
            await engine.identify()
    assert "0 to 9" in caught.value.hint


async def test_yes_no_identity_is_unchanged() -> None:
    """Judgments are stored under it: yes tokens, then no, and the readout's hash."""
    async with judged(VLLMShaped()) as engine:
        identity = await engine.identify()
    assert identity.logprobs == "exact[5, 7, 9, 11, 6, 8, 10, 12]"
    assert identity.readout == "78ad14539e070874aedc445e3b520303"
