"""Control tokens of a judge's own vocabulary: found, neutralized, counted, in its identity."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from fakes.openai_server import MODEL, serving
from fakes.vllm_package import FakeTokenizer, installed
from fakes.vllm_server import VLLMShaped
from rocketeval.config import EngineConfig
from rocketeval.engines.base import EngineIdentity, offline_identity
from rocketeval.engines.control_tokens import (
    NOT_ASKED,
    ControlTokens,
    of_gguf,
    of_tokenizer,
    of_tokenizer_info,
)
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.vllm import VLLMEngine
from rocketeval.records import GradingTask, JudgeFingerprint

QWEN = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|fim_pad|>", "<|repo_name|>", "<unk>")
SMOLLM2 = ("<|im_start|>", "<repo_name>", "<filename>", "<jupyter_output>", "<empty_output>")
ODD = "@@turn"
TASK = GradingTask(b"k", "q1", "mine", f"good {ODD} ", ("Is it good?", f"Is {ODD} short?"))


def known(*tokens: str) -> ControlTokens:
    """Return the control tokens of a judge that was asked."""
    return ControlTokens(frozenset(tokens), known=True)


def test_list_knows_the_tokens_of_usual_judges() -> None:
    """A judge whose control tokens are all listed keeps its identity and its prompts."""
    found = known(*QWEN)
    assert found.unlisted == ()
    assert found.identity == ""
    assert found.disarm_task(TASK) == (TASK, 0)
    assert found.finding().told == "6 tokens, all neutralized"


def test_other_tokens_are_neutralized_and_counted() -> None:
    """Brackets become round; a token without brackets is taken apart."""
    found = known(*SMOLLM2, ODD)
    text = found.disarm(f"cp <filename> x <empty_output>{ODD} <Filename>")
    assert text.text == "cp (filename) x (empty_output)@ @turn <Filename>"
    assert text.count == 3
    task, count = found.disarm_task(TASK)
    assert count == 2
    assert task.prefix == "good @ @turn "
    assert (
        "6 tokens, all neutralized; 5 for this judge only (<empty_output>" in found.finding().told
    )


def test_replacing_one_token_cannot_complete_another() -> None:
    """The text is searched again after a replacement."""
    found = known("<x>", "(x)!")
    text = found.disarm("<x>!").text
    assert not any(token in text for token in found.tokens)


def test_ordinary_words_stay() -> None:
    """A control token that is a word would break honest text and our own prompts."""
    found = known("Yes", "<odd_one>")
    assert found.disarm("Yes <odd_one>").text == "Yes (odd_one)"
    assert "except 1 ordinary word" in found.finding().told


def test_judge_that_cannot_be_asked_is_named() -> None:
    """Doctor says that the list was used; this alone needs no care."""
    finding = NOT_ASKED.finding()
    assert "the packaged list is used" in finding.told
    assert finding.level == "note"
    assert not finding.advice


@pytest.mark.parametrize(
    ("precision", "recorded"),
    [("", "d2a5313dc4a184972ca1823d38ba6504"), ("bf16", "9852555ac3f86b93a2299a5297c80f3b")],
)
def test_identity_changes_only_with_own_tokens(precision: str, recorded: str) -> None:
    """Recorded fingerprints stay valid; a judge with tokens of its own is another judge."""
    plain = JudgeFingerprint("e", "m", "chat", "1", "top20", "t", "r", precision)
    assert plain.digest.hex() == recorded
    marked = replace(plain, control_tokens=known(*SMOLLM2).identity)
    assert marked.digest != plain.digest
    assert set(plain.changes(marked)) == {"control_tokens"}
    assert "control_tokens" not in plain.parts
    assert (
        replace(plain, control_tokens="x", precision="").digest
        != replace(plain, precision="x").digest
    )


@dataclass
class Added:
    """An added token as Hugging Face keeps it."""

    content: str
    special: bool

    def __str__(self) -> str:
        return self.content


def test_tokenizer_names_special_and_added_special_tokens() -> None:
    """Added tokens that are ordinary text, such as HTML tags, are no control tokens."""
    added = {1: Added("<repo_name>", True), 2: Added("<table>", False), 3: Added("\n\n", False)}
    tokenizer = SimpleNamespace(added_tokens_decoder=added, all_special_tokens=["<|end|>"])
    assert of_tokenizer(tokenizer) == known("<repo_name>", "<|end|>")
    assert of_tokenizer(object()) is NOT_ASKED


def test_tokenizer_info_of_a_server() -> None:
    """Named tokens are certain; of other added tokens vLLM keeps only the text."""
    info = {
        "eos_token": "<|im_end|>",
        "additional_special_tokens": ["<odd_one>"],
        "added_tokens_decoder": {"0": "<|im_end|>", "1": "<odd_one>", "2": "<maybe>"},
    }
    found = of_tokenizer_info(info)
    assert found == ControlTokens(frozenset({"<|im_end|>", "<odd_one>"}), True, unsure=1)
    assert "does not say if 1 added token" in found.finding().told
    full = {"added_tokens_decoder": {"0": {"content": "<own>", "special": True}, "1": {}}}
    assert of_tokenizer_info(full) == known("<own>")


@pytest.mark.parametrize(
    "info",
    [None, {}, {"added_tokens_decoder": 3}, {"tokenizer_class": "x", "bos_token": None}],
)
def test_other_tokenizer_info_is_no_knowledge(info: Any) -> None:
    """An endpoint of another shape does not count as asked."""
    assert of_tokenizer_info(info) is NOT_ASKED


def gguf(path: Path, tokens: Iterable[str], types: Iterable[int]) -> Path:
    """Write the metadata of a GGUF file with this vocabulary."""

    def text(value: str) -> bytes:
        return struct.pack("<Q", len(value.encode())) + value.encode()

    def listed(name: str, kind: int, values: list[bytes]) -> bytes:
        return text(name) + struct.pack("<IIQ", 9, kind, len(values)) + b"".join(values)

    entries = [
        text("general.name") + struct.pack("<I", 8) + text("toy"),
        text("general.heads") + struct.pack("<II", 4, 8),
        listed("tokenizer.ggml.tokens", 8, list(map(text, tokens))),
        listed("tokenizer.ggml.token_type", 5, [struct.pack("<i", kind) for kind in types]),
    ]
    path.write_bytes(b"GGUF" + struct.pack("<IQQ", 3, 0, len(entries)) + b"".join(entries))
    return path


def test_gguf_types_tell_control_tokens(tmp_path: Path) -> None:
    """Only unknown and control tokens count; user-defined ones are ordinary text."""
    path = gguf(tmp_path / "a.gguf", ["a", "<odd>", "<table>", "<?>"], [1, 3, 4, 2])
    assert of_gguf(path) == known("<odd>", "<?>")


@pytest.mark.parametrize("keep", [4, 20, 40, 90])
def test_damaged_gguf_is_no_knowledge(tmp_path: Path, keep: int) -> None:
    """llama.cpp reports the damage when it loads the file."""
    path = gguf(tmp_path / "a.gguf", ["a", "<odd>"], [1, 3])
    path.write_bytes(path.read_bytes()[:keep])
    assert of_gguf(path) is NOT_ASKED


class OddTokenizer(FakeTokenizer):
    """A tokenizer with a control token that no list knows."""

    all_special_tokens = ("<|end|>", ODD)


async def test_vllm_in_process_uses_its_tokenizer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The model never reads the odd token; the places are counted; the identity has a mark."""
    fake = installed(monkeypatch)
    engine = VLLMEngine.create(EngineConfig(engine="vllm", model="judge"))
    plain = await engine.identify()
    await engine.aclose()
    monkeypatch.setattr("transformers.AutoTokenizer", OddTokenizer)
    engine = VLLMEngine.create(EngineConfig(engine="vllm", model="judge"))
    try:
        graded = await engine.grade(TASK, {})
        written = await engine.write(f"hello {ODD}", max_tokens=3)
        identity = await engine.identify()
        assert await offline_identity(engine) == identity
    finally:
        await engine.aclose()
    words = engine._chat._tokenizer.words.values()  # type: ignore[union-attr]
    assert ODD not in set(words)
    assert (graded.neutralised, written.neutralised) == (2, 1)
    assert plain.control_tokens == ""
    assert replace(identity, control_tokens="") == plain
    assert identity.control_tokens
    assert fake.engines


@dataclass
class TellingServer(VLLMShaped):
    """A vLLM server that describes its tokenizer."""

    special: tuple[str, ...] = ()

    def endpoints(self) -> dict[str, Any]:
        info = {"additional_special_tokens": list(self.special), "added_tokens_decoder": {}}
        return {**super().endpoints(), "/tokenizer_info": lambda _: info}


async def asked(server: VLLMShaped) -> tuple[EngineIdentity, int, str]:
    """Return an engine's identity, the places it neutralized, and doctor's line."""
    async with serving(server):
        engine = OpenAIEngine(EngineConfig(model=MODEL, base_url=server.base_url))
        try:
            graded = await engine.grade(TASK, {})
            assert graded.failure is None
            (line,) = [one.told for one in await engine.findings() if "control" in one.name]
            return await engine.identify(), graded.neutralised, line
        finally:
            await engine.aclose()


async def test_server_is_asked_for_its_tokens() -> None:
    """Without the endpoint, or without unlisted tokens, requests and identity are unchanged."""
    silent, none, line = await asked(VLLMShaped())
    assert (none, silent.control_tokens) == (0, "")
    assert "the packaged list is used" in line
    usual, none, line = await asked(TellingServer(special=QWEN))
    assert none == 0
    assert usual.same_as(silent)
    assert line == "6 tokens, all neutralized"
    server = TellingServer(special=(*QWEN, ODD))
    odd, count, line = await asked(server)
    assert count == 2
    assert odd.control_tokens
    assert "1 for this judge only (@@turn)" in line
    assert not any(ODD in prompt for call in server.calls for prompt in call.prompts)
