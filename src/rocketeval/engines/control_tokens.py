"""Control tokens of a judge's own vocabulary, and how text that contains them is neutralized.

Prompts are already neutralized by a list (`rocketeval.neutral`). An engine that can ask its
tokenizer also replaces the control tokens that the list does not contain.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from rocketeval.engines.base import EngineFinding
from rocketeval.hashing import content_hash
from rocketeval.neutral import Neutralized, harmless, neutralize
from rocketeval.records import GradingTask
from rocketeval.text import count_of

MOST_NAMED = 4
MOST_ROUNDS = 8
"""Replacing one token can complete another; no real vocabulary needs more rounds."""
MOST_HEADER = 1 << 28
"""Bytes of a GGUF file in which its vocabulary must be found."""


@dataclass(frozen=True)
class ControlTokens:
    """The control tokens of a judge."""

    tokens: frozenset[str] = frozenset()
    known: bool = False
    """Whether the judge's tokenizer could be asked."""
    unsure: int = 0
    """Number of added tokens that the tokenizer does not describe as control tokens or text."""

    @cached_property
    def unlisted(self) -> tuple[str, ...]:
        """The control tokens that `rocketeval.neutral` leaves as they are, the longest first."""
        passing = [token for token in self.tokens if _passes(token)]
        return tuple(sorted(passing, key=lambda token: (-len(token), token)))

    @property
    def words(self) -> int:
        """Number of control tokens that are ordinary words; text and templates keep them."""
        return sum(not _is_marked(token) for token in self.tokens)

    @property
    def identity(self) -> str:
        """The part of the judge's identity; empty unless it changes a prompt."""
        return content_hash("control tokens", sorted(self.unlisted)).hex() if self.unlisted else ""

    def disarm(self, text: str) -> Neutralized:
        """Return `text` with these tokens replaced by harmless look-alikes.

        >>> ControlTokens(frozenset({"<repo_name>"}), known=True).disarm("cd <repo_name>")
        Neutralized(text='cd (repo_name)', count=1)
        """
        if not self.unlisted:
            return Neutralized(text, 0)
        count = 0
        for _ in range(MOST_ROUNDS):
            text, found = self._pattern.subn(lambda one: harmless(one[0]), text)
            if not found:
                break
            count += found
        return Neutralized(text, count)

    def disarm_task(self, task: GradingTask) -> tuple[GradingTask, int]:
        """Return a task with these tokens replaced, and the number of places."""
        if not self.unlisted:
            return task, 0
        prefix, suffixes = self.disarm(task.prefix), [*map(self.disarm, task.suffixes)]
        count = prefix.count + sum(suffix.count for suffix in suffixes)
        safe = replace(task, prefix=prefix.text, suffixes=tuple(one.text for one in suffixes))
        return safe, count

    def finding(self) -> EngineFinding:
        """Return what a user should know about them."""
        if not self.known:
            message = "this judge cannot be asked for them: the packaged list is used"
            return EngineFinding("control tokens", message, "note")
        message = f"{count_of(len(self.tokens), 'token', 'tokens')}, all neutralized"
        if self.unlisted:
            named = ", ".join(sorted(self.unlisted)[:MOST_NAMED])
            more = ", ..." if len(self.unlisted) > MOST_NAMED else ""
            message += f"; {len(self.unlisted)} for this judge only ({named}{more})"
        if self.words:
            message += f"; except {count_of(self.words, 'ordinary word', 'ordinary words')}"
        if self.unsure:
            added = count_of(self.unsure, "added token", "added tokens")
            message += f"; the server does not say if {added} are any: the packaged list is used"
        return EngineFinding("control tokens", message)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(map(re.escape, self.unlisted)))


NOT_ASKED = ControlTokens()
"""The control tokens of a judge that cannot be asked."""


def _passes(token: str) -> bool:
    """Return whether the packaged list leaves a token as it is, although it should not."""
    return _is_marked(token) and token in neutralize(token).text


def _is_marked(token: str) -> bool:
    return any(not (mark.isalnum() or mark.isspace()) for mark in token)


def of_tokenizer(tokenizer: Any) -> ControlTokens:
    """Return the control tokens of a Hugging Face tokenizer; not asked if it has no names."""
    added = getattr(tokenizer, "added_tokens_decoder", None)
    named = getattr(tokenizer, "all_special_tokens", None)
    if added is None and named is None:
        return NOT_ASKED
    special = [str(token) for token in (added or {}).values() if getattr(token, "special", False)]
    return ControlTokens(frozenset([*special, *map(str, named or ())]), known=True)


_NAMED = ("bos", "eos", "unk", "pad", "sep", "cls", "mask")


def of_tokenizer_info(info: Mapping[str, Any] | None) -> ControlTokens:
    """Return the control tokens in vLLM's `/tokenizer_info`; not asked if it has none.

    vLLM shortens its added tokens to their text, so most are certain only if named elsewhere.
    """
    if info is None or not isinstance(added := info.get("added_tokens_decoder"), dict):
        return NOT_ASKED
    found = [_content(info.get(f"{name}_token")) for name in _NAMED]
    for name in ("additional_special_tokens", "extra_special_tokens"):
        more = info.get(name)
        values = more.values() if isinstance(more, dict) else more
        found += [_content(one) for one in values or () if not isinstance(values, str)]
    full = [one for one in added.values() if isinstance(one, dict)]
    found += [_content(one) for one in full if one.get("special")]
    certain = frozenset(filter(None, found))
    texts = {one for one in added.values() if isinstance(one, str)}
    return ControlTokens(certain, known=True, unsure=sum(map(_passes, texts - certain)))


def _content(token: Any) -> str:
    text = token.get("content") if isinstance(token, dict) else token
    return text if isinstance(text, str) else ""


_NUMBERS = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
"""GGUF's types of numbers, as `struct` names them."""
_TEXT, _LIST = 8, 9
_CONTROLS = (2, 3)
"""GGUF's types of tokens that a text can forge: unknown, control."""


def of_gguf(path: Path) -> ControlTokens:
    """Return the control tokens in a GGUF file's vocabulary; not asked if it has none."""
    try:
        with path.open("rb") as file:
            tokens, types = _vocabulary(file)
    except (OSError, struct.error, KeyError, TypeError, ValueError, MemoryError):
        # llama.cpp reports a damaged file itself.
        return NOT_ASKED
    kinds = zip(tokens, types, strict=False)
    return ControlTokens(frozenset(one for one, kind in kinds if kind in _CONTROLS), known=True)


def _vocabulary(file: BinaryIO) -> tuple[list[str], list[int]]:
    """Return the tokens and their types, which the metadata at the start of a file contains."""
    _, _, _, entries = struct.unpack("<IIQQ", file.read(24))
    wanted = {"tokenizer.ggml.tokens": None, "tokenizer.ggml.token_type": None}
    for _ in range(entries):
        name = _value(file, _TEXT)
        (kind,) = struct.unpack("<I", file.read(4))
        value = _value(file, kind)
        if name in wanted:
            wanted[name] = value
        if all(wanted.values()):
            break
    tokens, types = wanted.values()
    if not isinstance(tokens, list) or not isinstance(types, list):
        raise ValueError("no vocabulary")
    return tokens, types


def _value(file: BinaryIO, kind: int) -> Any:
    if file.tell() > MOST_HEADER:
        raise ValueError("no vocabulary in the first part of the file")
    if kind == _TEXT:
        (length,) = struct.unpack("<Q", file.read(8))
        return _exactly(file, length).decode("utf-8", "replace")
    if kind != _LIST:
        one = f"<{_NUMBERS[kind]}"
        return struct.unpack(one, file.read(struct.calcsize(one)))[0]
    of, length = struct.unpack("<IQ", file.read(12))
    if of not in _NUMBERS:
        return [_value(file, of) for _ in range(min(length, MOST_HEADER))]
    size = struct.calcsize(f"<{_NUMBERS[of]}")
    return list(struct.unpack(f"<{length}{_NUMBERS[of]}", _exactly(file, size * length)))


def _exactly(file: BinaryIO, length: int) -> bytes:
    if length > MOST_HEADER:
        raise ValueError("no vocabulary in the first part of the file")
    return file.read(length)
