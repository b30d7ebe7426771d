"""The chat template is detected reliably or not at all."""

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
    """Return the frame detected on the stub."""
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
async def test_frame_matches_template(
    kind: type[NativeServer], trims: bool, head: str, tail: str
) -> None:
    """The frame includes the template's own spaces around a trimmed message."""
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
async def test_template_that_changes_the_message_is_not_used(template: ToyTemplate) -> None:
    """A template that does more than surround the message gives no frame."""
    assert await learned(VLLMShaped(template=template)) is None


async def test_template_whose_text_retokenizes_differently_is_not_used() -> None:
    """A template whose text comes back as other tokens gives no frame."""
    stub = VLLMShaped()
    stub.always("/detokenize", answer({"prompt": f"<|user|>{MARK}<|bot|>"}))
    assert await learned(stub) is None


async def test_template_settings_are_passed_on() -> None:
    """Only the user's chat settings are sent while the template is detected."""
    stub = VLLMShaped()
    switched = {"enable_thinking": False}
    await learned(stub, {"chat_template_kwargs": switched, "seed": 3})
    asked = [
        seen.body for seen in stub.seen if seen.path == "/tokenize" and "messages" in seen.body
    ]
    assert asked
    assert all(body["chat_template_kwargs"] == switched for body in asked)
    assert not any("seed" in body for body in asked)
