"""A judge's tokenizer in this process, and hashes that identify its weights."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rocketeval.engines.control_tokens import ControlTokens, of_tokenizer
from rocketeval.engines.likelihood import ChatText, chat_text
from rocketeval.errors import EngineRefused


class ChatTokenizer:
    """A tokenizer that puts prompts into the judge's chat template."""

    def __init__(self, tokenizer: Any, template_kwargs: Mapping[str, Any]) -> None:
        self._tokenizer = tokenizer
        self._template_kwargs = dict(template_kwargs)
        self._names: dict[int, str] = {}
        self.controls: ControlTokens = of_tokenizer(tokenizer)
        """The control tokens of its vocabulary."""

    @property
    def template(self) -> str:
        """The chat template itself."""
        return str(self._tokenizer.get_chat_template())

    def encode_chats(self, prompts: Sequence[str]) -> list[list[int]]:
        """Return the tokens of each prompt as a user message, ready for the judge to answer."""
        return self._encode(self._render(prompts))

    def encode_spoken(self, prompt: str, text: str) -> ChatText:
        """Return the tokens of a prompt followed by `text` as the judge's answer."""
        (framed,) = self._render([prompt])
        return chat_text(*self._encode([framed, framed + text]))

    def encode(self, text: str) -> list[int]:
        """Return the tokens of `text` without special tokens."""
        return self._encode([text])[0]

    def name(self, token: int) -> str:
        """Return a token as its vocabulary spells it."""
        if token not in self._names:
            self._names[token] = str(self._tokenizer.convert_ids_to_tokens(token))
        return self._names[token]

    def _render(self, prompts: Sequence[str]) -> list[str]:
        chats = [[{"role": "user", "content": prompt}] for prompt in prompts]
        texts: list[str] = self._tokenizer.apply_chat_template(
            chats, add_generation_prompt=True, tokenize=False, **self._template_kwargs
        )
        return texts

    def _encode(self, texts: list[str]) -> list[list[int]]:
        # The template already contains the opening tokens: do not add them twice.
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        if backend is not None:
            # Skips the offsets that the usual call computes: twice as fast.
            batch = backend.encode_batch_fast(texts, add_special_tokens=False)
            return [encoding.ids for encoding in batch]
        # `verbose` would warn about long prompts, which the engine reports itself.
        encoded = self._tokenizer(texts, add_special_tokens=False, verbose=False)
        tokens: list[list[int]] = encoded["input_ids"]
        return tokens


def load_chat_tokenizer(
    model: str, template_kwargs: Mapping[str, Any], **settings: Any
) -> ChatTokenizer:
    """Return the tokenizer of a Hugging Face name or folder; EngineRefused if it cannot chat."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(model, **settings)
    except (OSError, ValueError, KeyError) as error:
        raise EngineRefused(
            f"Cannot load the tokenizer of {model!r}: {_first_line(error)}",
            hint="`model` must be a Hugging Face name, or a folder with weights and tokenizer.",
        ) from None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None:
        backend.no_truncation()
        backend.no_padding()
    chat = ChatTokenizer(tokenizer, template_kwargs)
    try:
        chat.encode_chats(["Hello"])
    except Exception as error:  # noqa: BLE001 - a template may raise anything
        raise EngineRefused(
            f"Cannot use the chat template of {model!r}: {_first_line(error)}",
            hint="A judge must be an instruct model with a chat template; set the template's "
            "variables in `options.chat_template_kwargs`.",
        ) from None
    return chat


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error) else ''}"


SAMPLES = 256
SAMPLE_BYTES = 65536
_SHARD = re.compile(r"-\d{5}-of-(\d{5})\.gguf$")


def file_hash(path: Path) -> str:
    """Return the sha256 of a weights file, including its other shards if it has any."""
    hashes = [_sha256(part) for part in _parts(path)]
    return hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()


def folder_hash(folder: Path) -> str:
    """Return a hash of a model folder: small files in full, large files sampled at 256 places.

    Training changes nearly every number of a checkpoint, so samples spread over the whole file
    detect a change in a fraction of the time that reading all of it takes.
    """
    digest = hashlib.sha256()
    for path in sorted(path for path in folder.iterdir() if path.is_file()):
        digest.update(f"{path.name}\0{path.stat().st_size}\0".encode())
        _add_samples(digest, path)
    return digest.hexdigest()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _add_samples(digest: hashlib._Hash, path: Path) -> None:
    size = path.stat().st_size
    with path.open("rb") as file:
        if size <= SAMPLES * SAMPLE_BYTES:
            digest.update(file.read())
            return
        for sample in range(SAMPLES):
            file.seek((size - SAMPLE_BYTES) * sample // (SAMPLES - 1))
            digest.update(file.read(SAMPLE_BYTES))


def _parts(path: Path) -> list[Path]:
    if not _SHARD.search(path.name):
        return [path]
    return sorted(path.parent.glob(_SHARD.sub(r"-*-of-\1.gguf", path.name)))
