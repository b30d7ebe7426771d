"""The probe: it chooses the best request form that works, and refuses unusable judges."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from fakes.native_server import LlamaCppShaped, NativeServer, OllamaShaped
from fakes.openai_server import FILLER, Fault, answer, grades, serving, status, yes_no
from fakes.sglang_server import SGLangShaped
from fakes.toy_tokenizer import ToyTemplate
from fakes.vllm_server import VLLMShaped
from rocketeval.engines.base import EngineIdentity
from rocketeval.engines.probe import MOST_REPEATED, PREFIX, SHORT, probe_prompts
from rocketeval.errors import ConfigError, EngineRefused, EngineUnavailable
from rocketeval.precision import Measured
from rocketeval.records import GradingTask, Status
from support.judges import engine_at, given_template, judged

BATCH, COMPLETIONS, CHAT = (
    "/v1/chat/completions/batch",
    "/v1/completions",
    "/v1/chat/completions",
)
TASK = GradingTask(b"k", "q", "c", "Shared. ", ("First?", "Second?"))


async def identified(server: NativeServer, **settings: Any) -> EngineIdentity:
    """Return the identity of an engine in front of the stub."""
    async with judged(server, **settings) as engine:
        return await engine.identify()


async def refusal(server: NativeServer, **settings: Any) -> EngineRefused:
    """Return why the engine refuses the stub."""
    async with judged(server, **settings) as engine:
        with pytest.raises(EngineRefused) as caught:
            await engine.identify()
    return caught.value


@pytest.mark.parametrize("code", [404, 405, 400, 422, 501])
async def test_best_available_form_is_used(code: int) -> None:
    """As endpoints disappear one by one, the next best form is used."""
    server = VLLMShaped()
    assert (await identified(server)).endpoint == "chat_batch"
    server.always(BATCH, status(code))
    assert (await identified(server)).endpoint == "completions"
    server.always(COMPLETIONS, status(code))
    assert (await identified(server)).endpoint == "chat_exact"
    server.always("/tokenize", status(code))
    assert (await identified(server)).endpoint == "chat"


async def test_older_vllm_uses_chat() -> None:
    """A server that ignores the request for label tokens is used with chat."""
    server = VLLMShaped()
    server.always(BATCH, status(404))
    as_before = NativeServer(template=server.template, distribution=server.distribution)
    endpoints = {**server.endpoints(), CHAT: as_before.endpoints()[CHAT]}
    endpoints[CHAT] = lambda body: as_before.endpoints()[CHAT]({"top_logprobs": 1, **body})
    endpoints[COMPLETIONS] = lambda body: {
        "choices": [
            {"index": index, "text": "Yes", "logprobs": {"top_logprobs": [{"Yes": -0.1}]}}
            for index, _ in enumerate(body["prompt"])
        ]
    }
    server.endpoints = lambda: endpoints  # type: ignore[method-assign]
    assert (await identified(server)).endpoint == "chat"


async def test_sglang_needs_a_template() -> None:
    """With a template one call takes a response, without it one item."""
    assert (await identified(SGLangShaped())).endpoint == "sglang_generate"
    assert (await identified(SGLangShaped(), options={})).endpoint == "chat"
    error = await refusal(SGLangShaped(), options={}, transport="sglang_generate")
    assert "options.chat_head" in error.message


@pytest.mark.parametrize("server", [LlamaCppShaped(slots=3), OllamaShaped()])
async def test_other_servers_use_chat(server: NativeServer) -> None:
    """llama.cpp and Ollama are recognized, and asked one item at a time."""
    found = await identified(server)
    assert found.endpoint == "chat"
    assert found.version.split()[0] in ("llamacpp", "ollama")


async def test_llama_cpp_gets_one_response_per_slot() -> None:
    """More would evict each other's prefix; the user's setting takes precedence."""
    async with judged(LlamaCppShaped(slots=3)) as engine:
        await engine.identify()
        assert engine.in_flight == 3
    async with judged(LlamaCppShaped(slots=3), concurrency=7) as engine:
        await engine.identify()
        assert engine.in_flight == 7


@pytest.mark.parametrize(
    ("server", "transport", "reason"),
    [
        (OllamaShaped(), "completions", "does not report its chat template"),
        (OllamaShaped(), "chat_batch", "does not report the yes and no tokens"),
        (LlamaCppShaped(), "chat_exact", "no usable log-probabilities"),
        (LlamaCppShaped(), "chat_batch", "404"),
        (VLLMShaped(), "sglang_generate", "404"),
        (SGLangShaped(), "generative_scoring", "404"),
    ],
)
async def test_forced_form_that_fails_is_refused(
    server: NativeServer, transport: str, reason: str
) -> None:
    """It is refused with the reason, and no other form is used."""
    error = await refusal(server, transport=transport)
    assert transport in error.message
    assert reason in error.message
    assert "auto" in error.hint


async def test_duplicate_beginning_of_text_is_detected() -> None:
    """A server that adds a token to raw prompts is not used with them."""
    server = VLLMShaped(adds_bos=True)
    error = await refusal(server, transport="completions")
    assert "+1 tokens" in error.message
    assert "second beginning-of-text token" in error.message
    server.always(BATCH, status(404))
    assert (await identified(server)).endpoint == "chat_exact"


async def test_sglang_duplicate_beginning_of_text_is_detected() -> None:
    """SGLang adds the token itself, so a template that has it falls back to chat."""
    server = SGLangShaped(adds_bos=True)
    assert (await identified(server)).endpoint == "chat"
    assert (
        "second beginning-of-text" in (await refusal(server, transport="sglang_generate")).message
    )
    bare = {**given_template(server), "chat_head": server.template.head.removeprefix("<s>")}
    async with judged(server, options=bare) as engine:
        assert (await engine.identify()).endpoint == "sglang_generate"


@pytest.mark.parametrize("tells_usage", [True, False])
async def test_other_template_is_refused_without_token_counts(tells_usage: bool) -> None:
    """A template with other tokens is refused even if SGLang does not count them."""
    server = SGLangShaped(tells_usage=tells_usage)
    error = await refusal(
        server,
        transport="sglang_score",
        options={"chat_head": "<|user|>", "chat_tail": server.template.tail},
    )
    assert "another template" in error.message


async def test_other_template_of_equal_length_is_detected() -> None:
    """If the number of tokens is equal, the probabilities differ."""
    server = SGLangShaped(distribution=lambda _: yes_no(0.02))
    head = server.template.head.replace("brief", "quick")
    other = {"chat_head": head, "chat_tail": server.template.tail}
    assert len(server.tokens(head)) == len(server.tokens(server.template.head))
    error = await refusal(server, transport="sglang_generate", options=other)
    assert "differs from chat" in error.message


async def test_form_with_wrong_labels_is_refused() -> None:
    """A form that asks for other tokens than the judge uses for yes and no is refused."""

    def shouting(_: str) -> Mapping[str, float]:
        rest = {f"word{number}": 0.1 / FILLER for number in range(FILLER)}
        return {"YES": 0.6, "NO": 0.3, **rest}

    server = VLLMShaped(distribution=shouting)
    async with judged(server) as engine:
        assert (await engine.identify()).endpoint == "chat"
        findings = {finding.name.strip(): finding for finding in await engine.findings()}
    assert "asks for other tokens" in findings["chat_batch"].told


@pytest.mark.parametrize("token", ["<think>", "<|channel|>"])
async def test_thinking_judge_is_refused(token: str) -> None:
    """Its first token is not an answer; the hint says how to switch thinking off."""
    found = await refusal(VLLMShaped(distribution=lambda _: {token: 0.9, "Yes": 0.1}))
    assert "thinks" in found.message
    assert "enable_thinking" in found.hint


class Logits(VLLMShaped):
    """Lists logits as log-probabilities."""

    def listed(self, prompt: str, body: Mapping[str, Any]) -> list[tuple[str, float]]:
        return [("Yes", 8.0), ("No", 3.0), ("Well", 2.0)]


async def test_judge_that_returns_logits_is_refused() -> None:
    """Values that sum to more than one are refused, and the hint names the switch."""
    found = await refusal(Logits())
    assert "more than one" in found.message
    assert "raw_logprobs" in found.hint


@pytest.mark.parametrize(
    "reply",
    [
        {"choices": [{"message": {"content": "Yes"}, "logprobs": None}]},
        {"choices": [{"message": {"content": "Yes"}, "logprobs": {"content": []}}]},
    ],
)
async def test_judge_without_logprobs_is_refused(reply: Any) -> None:
    """The hint names servers that return log-probabilities."""
    server = OllamaShaped()
    server.always(CHAT, answer(reply))
    found = await refusal(server)
    assert "without log-probabilities" in found.message
    assert "vLLM" in found.hint


@pytest.mark.parametrize(
    ("asked", "allowed", "got"), [(20, 50, 20), (20, 12, 10), (20, 5, 5), (30, 20, 20), (3, 1, 1)]
)
async def test_top_logprobs_follow_the_servers_limit(asked: int, allowed: int, got: int) -> None:
    """If a server allows fewer tokens, fewer are requested, and the identity shows it."""
    server = VLLMShaped(most_logprobs=allowed)
    found = await identified(server, transport="chat", top_logprobs=asked)
    assert found.logprobs == f"top{got}"


async def test_server_that_rejects_every_request_is_refused() -> None:
    """The error contains the server's first message."""
    server = VLLMShaped()
    server.always(CHAT, status(400, "logprobs are not supported"))
    found = await refusal(server)
    assert "logprobs are not supported" in found.message


@pytest.mark.parametrize("top_logprobs", [1, 2, 20])
async def test_raw_logprobs_are_recognized(top_logprobs: int) -> None:
    """A temperature that changes only the sampled token means raw log-probabilities."""
    found = await identified(VLLMShaped(), transport="chat", top_logprobs=top_logprobs)
    assert found.logprobs == f"top{top_logprobs}"


async def test_scaled_logprobs_are_requested_at_temperature_one() -> None:
    """A server that scales by temperature is asked at 1, where it does not scale."""
    server = VLLMShaped(scales=lambda temperature: temperature or None)
    async with judged(server, transport="chat_exact") as engine:
        assert "processed" in (await engine.identify()).logprobs
        await engine.grade(TASK, {})
    assert {call.seen.body["temperature"] for call in server.calls} == {1.0}


async def test_unscaled_greedy_answers_stay_greedy() -> None:
    """vLLM scales only sampled answers, so greedy ones are used."""
    server = VLLMShaped(scales=lambda temperature: temperature or 1.0)
    async with judged(server) as engine:
        assert "processed" in (await engine.identify()).logprobs
        findings = {finding.name: finding for finding in await engine.findings()}
        await engine.grade(TASK, {})
    assert {call.seen.body["temperature"] for call in server.calls} == {0.0}
    assert findings["logprobs"].level == "note"
    assert "processed" in findings["logprobs"].told


async def test_damaged_list_does_not_count_as_scaled() -> None:
    """Lists damaged by another client's requests do not change the judge."""
    quiet, busy = VLLMShaped(), VLLMShaped(mixed=True)
    assert (await identified(busy)).same_as(await identified(quiet))


class SometimesMixed(VLLMShaped):
    """Lists every second reply in a batch with another client's requests."""

    lists = 0

    def listed(self, prompt: str, body: Mapping[str, Any]) -> list[tuple[str, float]]:
        if body["top_logprobs"] > 1:
            self.lists += 1
            self.mixed = self.lists % 2 == 1
        return super().listed(prompt, body)


async def test_list_that_is_damaged_for_a_moment_is_requested_again() -> None:
    """The measured tokens and the request form are those of a quiet server; retries are counted."""
    quiet = await identified(VLLMShaped())
    async with judged(SometimesMixed()) as engine:
        found = await engine.identify()
        assert 4 <= engine.pulse.retry_reasons[SHORT] <= MOST_REPEATED
    assert found.same_as(quiet)
    assert Measured.parse(found.measured).listed == Measured.parse(quiet.measured).listed
    assert found.precision.startswith("measured float32")


async def test_server_that_always_lists_few_tokens_keeps_its_identity() -> None:
    """It is the judge that it was in earlier versions; the number of requests is bounded."""
    async with judged(VLLMShaped(mixed=True)) as engine:
        found = await engine.identify()
        assert engine.take_probe_usage().requests == 11 + MOST_REPEATED
        findings = {finding.name: finding for finding in await engine.findings()}
    assert found.precision == "measured unknown ce227ec9"
    assert findings["logprobs"].level == "note"
    assert "1 listed of 20" in findings["logprobs"].told


async def test_identity_covers_all_settings() -> None:
    """Equal engines agree; everything that can change a probability differs."""
    server = VLLMShaped()
    async with serving(server):

        async def identity(**settings: Any) -> EngineIdentity:
            engine = engine_at(server, **settings)
            try:
                return await engine.identify()
            finally:
                await engine.aclose()

        plain = await identity()
        assert await identity() == plain
        assert await identity(concurrency=3, session_header=None, timeout=9) == plain
        assert plain.version == "vllm 0.32.0"
        others = [
            await identity(transport="completions"),
            await identity(transport="chat"),
            await identity(transport="chat", top_logprobs=10),
            await identity(extra_body={"seed": 1}),
            await identity(extra_body={"seed": 2}),
            await identity(min_mass=0.2),
            await identity(options=given_template(server)),
        ]
    assert len({plain, *others}) == 1 + len(others)


async def test_other_label_tokens_make_another_judge() -> None:
    """The same server with another vocabulary is another judge."""
    server, other = VLLMShaped(), VLLMShaped()
    other.tokenizer._ids = {
        "something new": 0,
        **{piece: number + 1 for piece, number in other.tokenizer._ids.items()},
    }
    assert (await identified(server)).logprobs != (await identified(other)).logprobs


@pytest.mark.usefixtures("fast_retries")
@pytest.mark.parametrize(
    "path", ["/v1/models", "/version", "/tokenize", "/detokenize", CHAT, BATCH]
)
async def test_temporary_failure_does_not_change_the_judge(path: str) -> None:
    """A 503 during the probe is waited out, and not read as a missing endpoint."""
    server = VLLMShaped()
    plain = await identified(server)
    left = iter([True, True])
    keep = server.endpoints()[path]

    async def hiccup(request: Any) -> Any:
        if next(left, False):
            return await status(503)(request)
        body = await request.json() if request.method == "POST" else None
        return await answer(keep(body))(request)

    server.always(path, hiccup)
    assert await identified(server) == plain
    assert next(left, None) is None, "the hiccup was never met"


@pytest.mark.usefixtures("fast_retries")
async def test_unreachable_form_is_not_a_missing_form() -> None:
    """If a server stops answering during the probe, it is unavailable; no other form is used."""
    server = VLLMShaped()
    server.always(BATCH, status(503))
    async with judged(server, patience=0.05) as engine:
        with pytest.raises(EngineUnavailable):
            await engine.identify()


async def test_server_under_a_path() -> None:
    """Behind a gateway, a server's other endpoints are next to its /v1, not at the root."""
    found = await identified(VLLMShaped(prefix="/judges/one"))
    assert (found.endpoint, found.version) == ("chat_batch", "vllm 0.32.0")


async def test_chat_head_needs_chat_tail() -> None:
    """Setting only one of the two is a mistake."""
    with pytest.raises(ConfigError, match="together, or neither"):
        engine_at(VLLMShaped(base_url="http://127.0.0.1:9/v1"), options={"chat_head": "x"})


@pytest.mark.parametrize("server", [VLLMShaped(), SGLangShaped(), LlamaCppShaped(), OllamaShaped()])
async def test_findings_cover_every_form(server: NativeServer) -> None:
    """The findings list every form of this server, and why one cannot be used."""
    if isinstance(server, VLLMShaped):
        server = replace(server, adds_bos=True)
    async with judged(server) as engine:
        findings = {finding.name.strip(): finding for finding in await engine.findings()}
    assert findings["mass"].level == "good"
    assert findings["logprobs"].told.startswith("raw, 20 listed")
    assert "'Yes'" in findings["yes/no tokens"].told
    if isinstance(server, VLLMShaped):
        assert findings["transport"].told.endswith("(4 of 5 work)")
        assert "second beginning" in findings["completions"].told
        assert "within" in findings["generative_scoring"].told


async def test_low_mass_is_a_finding() -> None:
    """Little probability on yes and no is a finding with advice."""
    async with judged(VLLMShaped(distribution=lambda _: yes_no(0.5, mass=0.2))) as engine:
        findings = {finding.name: finding for finding in await engine.findings()}
        graded = await engine.grade(TASK, {})
    assert findings["mass"].level == "note"
    assert findings["mass"].advice
    assert {one.status for one in graded.answers} == {Status.OK}


async def test_probe_runs_once() -> None:
    """Tasks that start together share one probe."""
    server = VLLMShaped()
    async with judged(server) as engine:
        await asyncio.gather(*(engine.grade(TASK, {}) for _ in range(5)))
    prompts = [server.prompts_in(BATCH, seen.body) for seen in server.seen if seen.path == BATCH]
    assert sum(prompt[0].startswith(PREFIX) for prompt in prompts) == 1
    assert len(prompts) == 6


async def test_tokens_include_the_template() -> None:
    """Without a known template there are no tokens."""
    server = VLLMShaped()
    async with judged(server) as engine:
        assert await engine.tokenise(["Hi."]) == [server.tokens(server.template.render("Hi."))]
    async with judged(OllamaShaped()) as engine:
        assert await engine.tokenise(["Hi."]) is None


FAULTS: tuple[Fault, ...] = (status(404), status(400), answer({}), answer({"tokens": "x"}))


@pytest.mark.parametrize("fault", FAULTS)
async def test_undetectable_template_disables_framed_forms(fault: Fault) -> None:
    """Without a detokenizer no prompt is framed here; other forms still work."""
    server = VLLMShaped(template=ToyTemplate())
    server.always("/detokenize", fault)
    server.always(BATCH, status(404))
    assert (await identified(server)).endpoint == "chat_exact"


def test_yes_no_probe_is_unchanged() -> None:
    """The probe prompts must not change, because precision is measured on them."""
    ending = "\nAnswer with one word: Yes or No.\nAnswer:"
    first, second = probe_prompts(("Yes", "No"))
    assert first == f"{PREFIX}Does the response name a city?{ending}"
    assert second == f"{PREFIX}Is the response about the weather?{ending}"


async def test_findings_on_a_scale() -> None:
    """Grades replace yes and no, and labels that may be two tokens are noted."""
    scale = tuple("54321")
    server = VLLMShaped(distribution=grades)
    async with judged(server, labels=scale) as engine:
        findings = {finding.name: finding for finding in await engine.findings()}
    assert "5 label tokens in the vocabulary" in findings["label tokens"].told
    assert findings["label tokens"].level == "good"
    assert "on 5, 4, 3, 2 and 1" in findings["mass"].told
    async with judged(OllamaShaped(distribution=grades), labels=("54", *scale)) as engine:
        findings = {finding.name: finding for finding in await engine.findings()}
    assert findings["label tokens"].level == "note"
    assert "start alike" in findings["label tokens"].told
