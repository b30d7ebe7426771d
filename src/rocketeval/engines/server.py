"""Detection of the server behind a base URL: kind, version, tokenizer and chat template."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

from rocketeval.config import EngineConfig
from rocketeval.engines.http import HttpClient
from rocketeval.engines.replies import UsageMeter, mapping_or_empty
from rocketeval.errors import ConfigError, EngineRefused, RequestRejected

Kind = Literal["vllm", "sglang", "llamacpp", "ollama", "unknown"]
NO_ANSWER = (EngineRefused, RequestRejected)
"""Errors of a server that lacks an endpoint."""


@dataclass(frozen=True, slots=True)
class Server:
    """What a server reports about itself."""

    kind: Kind
    version: str
    """As the server reports it, or `unknown`."""
    root: str
    """Its URL without the /v1 of the OpenAI endpoints."""
    served: tuple[str, ...] = ()
    """Names of the models the server lists."""
    slots: int | None = None
    """llama.cpp: the number of prompts it keeps in its cache."""
    context: int | None = None
    """Context length of the model, if reported."""
    precision: str = ""
    """Numeric precision, if reported."""

    def __str__(self) -> str:
        return self.version if self.kind == "unknown" else f"{self.kind} {self.version}"


def rows_or_empty(value: Any) -> list[dict[str, Any]]:
    """Return the objects in `value` if it is a list, else an empty list."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


async def inspect_server(http: HttpClient, model: str) -> Server:
    """Return what the server reports about itself.

    EngineUnavailable if it is unreachable, EngineRefused if it does not serve `model`.
    """
    rows = rows_or_empty(mapping_or_empty(await http.get("/models")).get("data"))
    served = tuple(str(row["id"]) for row in rows if "id" in row)
    if served and model not in served:
        raise EngineRefused(
            f"{http.base_url} does not serve the model {model!r}.",
            hint=f"Set `model` to one it serves: {', '.join(map(http.safe, served[:10]))}.",
        )
    ours = next((row for row in rows if row.get("id") == model), {})
    root = http.base_url.removesuffix("/v1")
    context = ours.get("max_model_len")
    found = await _kind(http, root, model, ours)
    return replace(found, served=served, context=context if isinstance(context, int) else None)


async def _kind(http: HttpClient, root: str, model: str, ours: Mapping[str, Any]) -> Server:
    reply = await http.get(root + "/version", optional=True)
    if reply and reply.get("version"):
        kind: Kind = "vllm" if ours.get("owned_by") == "vllm" else "unknown"
        return Server(kind, http.redact(str(reply["version"])), root)
    reply = await http.get(root + "/props", optional=True)
    if reply and reply.get("build_info"):
        slots = reply.get("total_slots")
        return Server(
            "llamacpp",
            http.redact(str(reply["build_info"])),
            root,
            slots=slots if isinstance(slots, int) else None,
            precision=_joined(mapping_or_empty(ours.get("meta")), "size", "n_params", "ftype"),
        )
    for path in ("/server_info", "/get_server_info"):
        reply = await http.get(root + path, optional=True)
        if reply and ("tokenizer_path" in reply or "mem_fraction_static" in reply):
            precision = _joined(reply, "dtype", "quantization", "kv_cache_dtype")
            version = http.redact(str(reply.get("version", "unknown")))
            return Server("sglang", version, root, precision=precision)
    reply = await http.get(root + "/api/version", optional=True)
    if reply and reply.get("version"):
        return Server(
            "ollama",
            http.redact(str(reply["version"])),
            root,
            precision=await _ollama(http, root, model),
        )
    return Server("unknown", "unknown", root)


def _joined(facts: Mapping[str, Any], *names: str) -> str:
    """Return these facts as text; empty if the first is missing."""
    if facts.get(names[0]) in (None, "auto"):
        return ""
    return ", ".join(f"{name} {facts[name]}" for name in names if facts.get(name) is not None)


async def _ollama(http: HttpClient, root: str, model: str) -> str:
    try:
        reply = await http.post(root + "/api/show", {"model": model}, UsageMeter())
    except NO_ANSWER:
        return ""
    return _joined(mapping_or_empty(reply.get("details")), "quantization_level", "parameter_size")


class Tokenizer:
    """A server's tokenizer, over its HTTP endpoints."""

    def __init__(self, http: HttpClient, server: Server, model: str) -> None:
        self._http = http
        self._server = server
        self._model = model

    async def encode(self, text: str) -> list[int] | None:
        """Return the tokens of `text` without special ones; None if the server has no tokenizer."""
        if self._server.kind == "llamacpp":
            body = {"content": text, "add_special": False, "parse_special": True}
        else:
            body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return _tokens(await self._post("/tokenize", body))

    async def render(
        self, content: str, chat_settings: Mapping[str, Any]
    ) -> tuple[str, list[int] | None] | None:
        """Return a user message in the chat template, as text and as tokens."""
        messages: Sequence[Mapping[str, str]] = [{"role": "user", "content": content}]
        if self._server.kind == "llamacpp":
            reply = await self._post("/apply-template", {"messages": messages, **chat_settings})
            text = (reply or {}).get("prompt")
            return (text, None) if isinstance(text, str) else None
        body = {"model": self._model, "messages": messages, "add_generation_prompt": True}
        tokens = _tokens(await self._post("/tokenize", {**body, **chat_settings}))
        if tokens is None:
            return None
        reply = await self._post("/detokenize", {"model": self._model, "tokens": tokens})
        text = (reply or {}).get("prompt")
        return (text, tokens) if isinstance(text, str) else None

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._server.kind in ("unknown", "ollama"):
            return None
        try:
            return await self._http.post(self._server.root + path, body, UsageMeter())
        except NO_ANSWER:
            return None


def _tokens(reply: Mapping[str, Any] | None) -> list[int] | None:
    tokens = (reply or {}).get("tokens")
    if isinstance(tokens, list) and all(isinstance(token, int) for token in tokens):
        return tokens
    return None


MARK = "ROCKETEVALMARK"
CHAT_SETTINGS = frozenset(
    {"chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"}
)
"""Request settings that change the chat template; raw completions do not support them."""


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """The text before and after a user message in the prompt that the model reads.

    >>> ChatFrame("<user>", "<assistant>", trims=True).around(" hello ")
    '<user>hello<assistant>'
    """

    head: str
    tail: str
    trims: bool
    """Whether the template strips the message."""

    def around(self, message: str) -> str:
        """Return the whole prompt for `message`."""
        return self.head + (message.strip() if self.trims else message) + self.tail


async def learn_frame(tokenizer: Tokenizer, extra_body: Mapping[str, Any]) -> ChatFrame | None:
    """Return the frame of the server's template; None if it cannot be determined reliably."""
    settings = {name: value for name, value in extra_body.items() if name in CHAT_SETTINGS}
    plain = await tokenizer.render(MARK, settings)
    spaced = await tokenizer.render(f" {MARK} ", settings)
    if plain is None or spaced is None or plain[0].count(MARK) != 1:
        return None
    head, tail = plain[0].split(MARK)
    # Two renderings, because a template may itself put spaces around the message.
    for trims in (False, True):
        frame = ChatFrame(head, tail, trims)
        if frame.around(f" {MARK} ") == spaced[0]:
            break
    else:
        return None
    text, tokens = plain
    if tokens is not None and await tokenizer.encode(text) != tokens:
        # The text does not tokenize back to the same tokens: the model would read another prompt.
        return None
    return frame


DEFAULT_BASE_URL = "https://api.openai.com/v1"


def base_url(config: EngineConfig) -> str:
    """Return the base URL: the config's, else $OPENAI_BASE_URL, else the OpenAI API."""
    url = config.base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")  # Refused below: it is not an http(s) address.
    if parts.username or parts.password:
        raise ConfigError(
            "base_url contains a user name or password.",
            hint="Put the key into the environment variable that `api_key_env` names.",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not _valid_port(parts):
        raise ConfigError(f"base_url {url!r} is not an http(s) address.", hint=_meant(url))
    if parts.query or parts.fragment:
        raise ConfigError(f"base_url {url!r} has a query or fragment after its path; remove it.")
    return url.rstrip("/")


def _meant(url: str) -> str:
    if "$" in url:
        return (
            "Variables in the config are not replaced. Write the URL itself, or leave "
            "`base_url` out and set $OPENAI_BASE_URL."
        )
    if "://" not in url:
        return f"Did you mean http://{url}? A URL starts with http:// or https://."
    return "Write it like http://127.0.0.1:8000/v1."


def _valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False
