"""What a server sends: bounded, parsed, counted, checked for its model, and shown without keys."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import aiohttp
import orjson

from rocketeval.errors import EngineError, EngineRefused, JudgeChanged, UnusableReply
from rocketeval.records import Usage
from rocketeval.text import HIDDEN, with_secrets

MOST_BYTES = 64 << 20
"""Maximum size of a reply in bytes, after decompression."""
MOST_TOKENS = 1_000_000_000
"""A server that reports more tokens for one request reports none."""
LONGEST_ASKED = 86_400.0
"""A longer Retry-After, in seconds, counts as this long."""
SHOWN_ERROR = 300
SHOWN_NAME = 200
"""Maximum length of a model name or fingerprint that is kept."""
MOST_FINGERPRINTS = 8
"""Different system fingerprints that are kept and checked; a server with more of them names
requests rather than systems."""
SHORTEST_PART = 8
"""Parts of a key with at least this many characters are not shown."""
SHORTEST_WHOLE = 16
"""Keys with at least this many characters are not kept in text that a model wrote."""
ARRAY = "array"
"""Key under which a reply that is a JSON array keeps its rows."""
_USER_INFO = re.compile(r"//[^/@\s]+@")


class ReplyTooLarge(aiohttp.ClientError):
    """A reply was larger than `MOST_BYTES`."""


def mapping_or_empty(value: Any) -> Mapping[str, Any]:
    """Return `value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def count_or_zero(value: Any) -> int:
    """Return `value` if it is a possible count, else zero.

    >>> count_or_zero(3), count_or_zero(-3), count_or_zero(10**18), count_or_zero(True)
    (3, 0, 0, 0)
    """
    counts = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS
    return value if counts else 0


class UsageMeter:
    """Counter of every request sent, including failed ones, and of the tokens used."""

    def __init__(self) -> None:
        self._requests = 0
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._completion_tokens = 0
        self._started = 0.0
        self._ended = 0.0

    def sent(self) -> None:
        """Count one request that is sent now."""
        if not self._requests:
            self._started = time.monotonic()
        self._requests += 1

    def answered(self, reply: Mapping[str, Any], *, cached_reported: bool = True) -> None:
        """Count the tokens that a reply reports.

        `cached_reported` is False if the server reports cached tokens only for some prompts. An
        impossible number, such as a negative one, counts as not reported.
        """
        self._ended = time.monotonic()
        usage = mapping_or_empty(reply.get("usage"))
        prompt = count_or_zero(usage.get("prompt_tokens"))
        self._prompt_tokens += prompt
        self._completion_tokens += count_or_zero(usage.get("completion_tokens"))
        if cached_reported:
            details = mapping_or_empty(usage.get("prompt_tokens_details"))
            # More cached than sent would make a reply cheaper than free.
            self._cached_tokens += min(prompt, count_or_zero(details.get("cached_tokens")))

    @contextmanager
    def charging(self) -> Iterator[None]:
        """Attach the usage so far to an engine's error, because failed attempts may be billed."""
        try:
            yield
        except EngineError as error:
            error.spent = self.usage
            raise

    @property
    def usage(self) -> Usage:
        """Usage so far."""
        return Usage(
            self._requests,
            self._prompt_tokens,
            self._cached_tokens,
            self._completion_tokens,
            max(0.0, self._ended - self._started),
        )


@dataclass(frozen=True, slots=True)
class RetryableError:
    """A request that failed and may succeed later."""

    reason: str
    retry_after: float | None = None
    """Seconds the server asks us to wait."""
    busy: bool = False
    """Whether the server asks for fewer requests."""
    undone: bool = False
    """Whether the server certainly did not act on the request; False if unknown."""
    kind: str = "other"
    """The reason in a word or two; retries are counted by it."""
    alive: bool = False
    """Whether the request may only have waited behind others, whose answers renew its patience."""
    unusable: bool = False
    """Whether the server computed an answer that cannot be used, and that may have been billed."""


class Redactor:
    """Removes secrets, and longer parts of them, from text that a server sent."""

    def __init__(self, *secrets: str) -> None:
        self._whole = [one for one in secrets if len(one) >= SHORTEST_WHOLE]
        self._short = [one for one in secrets if 0 < len(one) < SHORTEST_PART]
        folded = [_folded(one) for one in secrets]
        self._parts = frozenset(
            one[start : start + SHORTEST_PART]
            for one in folded
            for start in range(len(one) - SHORTEST_PART + 1)
        )

    def __call__(self, text: str) -> str:
        """Return `text` with every secret replaced by asterisks.

        >>> Redactor("sk-0123456789abcdef")("your key sk-0123456789... is wrong")
        'your key ***... is wrong'
        """
        for secret in self._short:
            text = text.replace(secret, HIDDEN)
        folded = _folded(text)
        kept: list[str] = []
        hidden_to = 0
        for start in range(len(text)):
            if folded[start : start + SHORTEST_PART] in self._parts:
                if start >= hidden_to:
                    kept.append(HIDDEN)
                hidden_to = start + SHORTEST_PART
            elif start >= hidden_to:
                kept.append(text[start])
        return "".join(kept)

    def in_written(self, text: str) -> str:
        """Return text that a model wrote, without whole keys.

        Parts of keys stay, and so do short keys such as `EMPTY`: they may be honest words.

        >>> Redactor("sk-0123456789abcdef").in_written("Is sk-0123456789abcdef shown? sk-01234567")
        'Is *** shown? sk-01234567'
        """
        for secret in self._whole:
            text = text.replace(secret, HIDDEN)
        return text


def _folded(text: str) -> str:
    """Return `text` without differences of case; each character keeps its place."""
    folded = text.casefold()
    if len(folded) == len(text):
        return folded
    # Some characters fold to two, as the German sharp s.
    return "".join(one.casefold() if len(one.casefold()) == 1 else one for one in text)


def secrets_in(*settings: object) -> list[str]:
    """Return the texts in request settings whose name says that they are secret."""
    found: list[str] = []

    def kept(secret: str) -> str:
        found.append(secret)
        return HIDDEN

    for each in settings:
        with_secrets(each, kept)
    return found


async def read_bounded(reply: aiohttp.ClientResponse) -> bytes:
    """Return the body of a reply; ReplyTooLarge as soon as it exceeds `MOST_BYTES`."""
    parts, size = [], 0
    while part := await reply.content.readany():
        size += len(part)
        if size > MOST_BYTES:
            reply.close()
            raise ReplyTooLarge(f"the reply is larger than {MOST_BYTES >> 20} MB")
        parts.append(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def json_object(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body; None if it is anything else."""
    reply = json_reply(body)
    return None if reply is None or ARRAY in reply else reply


def json_reply(body: bytes) -> dict[str, Any] | None:
    """Return the JSON object in a body, or an array under `ARRAY`; None if it is neither."""
    try:
        parsed = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if isinstance(parsed, list):
        return {ARRAY: parsed}
    return parsed if isinstance(parsed, dict) else None


def error_in(reply: Mapping[str, Any]) -> Any | None:
    """Return the error in the body of a reply with HTTP 200; None if it has an answer."""
    if "choices" in reply or "data" in reply:
        return None
    return reply.get("error") or None


def code_of(error: Any) -> int | None:
    """Return the HTTP status that an error in a body names; None if it names none."""
    code = mapping_or_empty(error).get("code")
    if isinstance(code, str) and code.isdecimal() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else None


def unusable(reason: str, kind: str) -> UnusableReply:
    """Return the error for a reply that has no usable answer; `kind` is the reason in a word."""
    error = UnusableReply(reason)
    error.kind = kind
    return error


def parse_retry_after(header: str | None) -> float | None:
    """Return the seconds in a Retry-After header (a number or a date); None if unreadable.

    >>> parse_retry_after("3")
    3.0
    >>> parse_retry_after("soon") is None
    True
    """
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        pass
    else:
        return None if math.isnan(seconds) else min(LONGEST_ASKED, max(0.0, seconds))
    try:
        when = parsedate_to_datetime(header)
        if when.tzinfo is None:
            when = when.replace(tzinfo=UTC)
        seconds = (when - datetime.now(UTC)).total_seconds()
    except (ValueError, OverflowError, TypeError, IndexError):
        return None
    return min(LONGEST_ASKED, max(0.0, seconds))


def name_of(error: BaseException) -> str:
    """Describe `error` in one line for a user."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return f"no server named {error.host} (DNS)"
    if isinstance(error, ReplyTooLarge):
        return str(error)
    refused = isinstance(getattr(error, "os_error", None), ConnectionRefusedError)
    if isinstance(error, aiohttp.ClientConnectorError) and refused:
        return f"connection refused, nothing listens on {error.host}:{error.port}"
    if isinstance(error, aiohttp.ClientConnectorSSLError) and "WRONG_VERSION" in str(error):
        return "the server does not speak https"
    # A URL in an error message may contain a proxy's password.
    text = _USER_INFO.sub("//***@", str(error))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@dataclass
class ReplyWatch:
    """The model and system fingerprint that replies name."""

    shown: Callable[[str], str] = str
    """Makes a server's text safe to show and to keep."""
    judges: bool = True
    """Whether another model name is an error. An author may be behind a router that names its
    backend; a judge may not."""
    model: str = ""
    """Name in the first reply, or in the replies of an earlier process; empty if unknown."""
    fingerprints: list[str] = field(default_factory=list)
    """The first system fingerprints, in order of appearance."""
    _last: tuple[Any, Any] = (None, None)
    """What the last reply named, which most replies repeat."""

    def check(self, reply: Mapping[str, Any]) -> None:
        """Record what a reply names; JudgeChanged if it names another model."""
        named = (reply.get("model"), reply.get("system_fingerprint"))
        if named != self._last:
            self._check(*named)
            self._last = named

    def _check(self, name: Any, fingerprint: Any) -> None:
        if isinstance(fingerprint, str) and fingerprint:
            shown = self.shown(fingerprint)[:SHOWN_NAME]
            if shown not in self.fingerprints and len(self.fingerprints) < MOST_FINGERPRINTS:
                self.fingerprints.append(shown)
        if not isinstance(name, str) or not name:
            return
        name = self.shown(name)[:SHOWN_NAME]
        if not self.model:
            self.model = name
        elif self.judges and name != self.model:
            raise JudgeChanged(
                f"The server now answers as {name!r}; before, it answered as {self.model!r}.",
                hint="Serve the first model again and run the same command, or give the run "
                "another `name`: a run never mixes two judges.",
            )

    def resume(self, model: str, fingerprints: Iterable[str]) -> None:
        """Continue from what an earlier process saw; JudgeChanged if the model is another."""
        self._last = (None, None)
        if model and self.model and model != self.model:
            found, self.model = self.model, model
            self._check(found, None)
        self.model = model or self.model
        seen = list(dict.fromkeys([*fingerprints, *self.fingerprints]))
        self.fingerprints = seen[:MOST_FINGERPRINTS]


def refuse_control_characters(key: str, variable: str) -> None:
    """Raise EngineRefused if a key cannot be sent in a header."""
    if not key.isprintable():
        raise EngineRefused(
            f"The key in the environment variable {variable} contains a control character, such "
            "as a line break.",
            hint="Copy the key again, on one line.",
        )
