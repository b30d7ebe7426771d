"""The chat template is learned from the server for sure, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from fakes.native_server import LlamaCppShaped, NativeServer
from fakes.openai_server import MODEL, answer, serving
from fakes.toy_tokenizer import ToyTemplate
from fakes.vllm_server import VLLMShaped
from rocketeval.engines.http import HttpClient
from rocketeval.engines.server import MARK, ChatFrame, Tokenizer, inspect_server, learn_frame

MESSAGES = ("Hi.", " Hi.", "Hi. ", "\nHi.\n", "two\n\nlines")


async def learned(stub: NativeServer, extra_body: dict[str, Any] | None = None) -> ChatFrame | None:
    """The frame that is learned from the stub."""
    async with serving(stub):
        http = HttpClient(stub.base_url, key=None, concurrency=2, timeout=5, patience=0.1)
        try:
            tokenizer = Tokenizer(http, await inspect_server(http, MODEL), MODEL)
            return await learn_frame(tokenizer, extra_body or {})
        finally:
            await http.aclose()


@pytest.mark.parametrize("kind", [VLLMShaped, LlamaCppShaped])
@pytest.mark.parametrize("trims", [True, False])
@pytest.mark.parametrize(
    ("head", "tail"),
    [(ToyTemplate.head, ToyTemplate.tail), ("USER: ", " ASSISTANT:"), ("Q: ", "\nA:"), ("", "")],
)
async def test_the_frame_is_the_template(
    kind: type[NativeServer], trims: bool, head: str, tail: str
) -> None:
    """Also with spaces of the template's own around a message that it trims."""
    template = ToyTemplate(head, tail, trims)
    frame = await learned(kind(template=template))
    assert frame is not None
    assert frame.trims is trims
    assert [frame.around(text) for text in MESSAGES] == [template.render(text) for text in MESSAGES]


class OneSided(ToyTemplate):
    """Strips a message on the left only."""

    def render(self, message: str) -> str:
        return self.head + message.lstrip() + self.tail


class Twice(ToyTemplate):
    """Shows a message twice."""

    def render(self, message: str) -> str:
        return self.head + message + self.tail + message


class Polite(ToyTemplate):
    """Changes a message."""

    def render(self, message: str) -> str:
        return self.head + message.title() + self.tail


@pytest.mark.parametrize("template", [OneSided(), Twice(), Polite()])
async def test_a_template_that_is_no_frame(template: ToyTemplate) -> None:
    """What does more than stand around a message is not imitated."""
    assert await learned(VLLMShaped(template=template)) is None


async def test_text_that_is_not_the_tokens() -> None:
    """A template whose text would come back as other tokens is not used."""
    stub = VLLMShaped()
    stub.always("/detokenize", answer({"prompt": f"<|user|>{MARK}<|bot|>"}))
    assert await learned(stub) is None


async def test_settings_of_the_template_are_passed_on() -> None:
    """What the user sets for chats is in force while their template is learned, nothing else."""
    stub = VLLMShaped()
    switched = {"enable_thinking": False}
    await learned(stub, {"chat_template_kwargs": switched, "seed": 3})
    asked = [
        seen.body for seen in stub.seen if seen.path == "/tokenize" and "messages" in seen.body
    ]
    assert asked
    assert all(body["chat_template_kwargs"] == switched for body in asked)
    assert not any("seed" in body for body in asked)
