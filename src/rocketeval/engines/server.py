"""What is behind a base URL: server, version, tokenizer and chat template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from rocketeval.engines.http import HttpClient, UsageMeter, mapping_or_empty
from rocketeval.errors import EngineRefused, RequestRejected

Kind = Literal["vllm", "sglang", "llamacpp", "ollama", "unknown"]
NO_ANSWER = (EngineRefused, RequestRejected)
"""How a server says that it does not have an endpoint."""


@dataclass(frozen=True, slots=True)
class Server:
    """What a server says about itself."""

    kind: Kind
    version: str
    """Its own words, or `unknown`."""
    root: str
    """Its address without the /v1 of the OpenAI endpoints."""
    served: tuple[str, ...] = ()
    """Names of the models it lists."""
    slots: int | None = None
    """llama.cpp: how many prompts it keeps a cache for."""
    context: int | None = None
    """Tokens the model can read, where told."""
    precision: str = ""
    """How exactly it computes, where told."""

    def __str__(self) -> str:
        return self.version if self.kind == "unknown" else f"{self.kind} {self.version}"


def rows_or_empty(value: Any) -> list[dict[str, Any]]:
    """Return the objects in `value` if it is a list, else an empty one."""
    return [row for row in value if isinstance(row, dict)] if isinstance(value, list) else []


async def inspect_server(http: HttpClient, model: str) -> Server:
    """Return what is known about the server.

    EngineUnavailable if nobody is there, EngineRefused if it serves other models only.
    """
    rows = rows_or_empty(mapping_or_empty(await http.get("/models")).get("data"))
    served = tuple(str(row["id"]) for row in rows if "id" in row)
    if served and model not in served:
        raise EngineRefused(
            f"{http.base_url} does not serve the model {model!r}.",
            hint=f"It serves: {', '.join(served[:10])}. Set `model` to one of them.",
        )
    ours = next((row for row in rows if row.get("id") == model), {})
    root = http.base_url.removesuffix("/v1")
    context = ours.get("max_model_len")
    found = await _kind(http, root, model, ours)
    return replace(found, served=served, context=context if isinstance(context, int) else None)


async def _kind(http: HttpClient, root: str, model: str, ours: Mapping[str, Any]) -> Server:
    told = await http.get(root + "/version", optional=True)
    if told and told.get("version"):
        kind: Kind = "vllm" if ours.get("owned_by") == "vllm" else "unknown"
        return Server(kind, str(told["version"]), root)
    told = await http.get(root + "/props", optional=True)
    if told and told.get("build_info"):
        slots = told.get("total_slots")
        return Server(
            "llamacpp",
            str(told["build_info"]),
            root,
            slots=slots if isinstance(slots, int) else None,
            precision=_told(mapping_or_empty(ours.get("meta")), "size", "n_params", "ftype"),
        )
    for path in ("/server_info", "/get_server_info"):
        told = await http.get(root + path, optional=True)
        if told and ("tokenizer_path" in told or "mem_fraction_static" in told):
            precision = _told(told, "dtype", "quantization", "kv_cache_dtype")
            version = str(told.get("version", "unknown"))
            return Server("sglang", version, root, precision=precision)
    told = await http.get(root + "/api/version", optional=True)
    if told and told.get("version"):
        return Server(
            "ollama", str(told["version"]), root, precision=await _ollama(http, root, model)
        )
    return Server("unknown", "unknown", root)


def _told(facts: Mapping[str, Any], *names: str) -> str:
    """Return the facts of these names as text; empty where the first is not told."""
    if facts.get(names[0]) in (None, "auto"):
        return ""
    return ", ".join(f"{name} {facts[name]}" for name in names if facts.get(name) is not None)


async def _ollama(http: HttpClient, root: str, model: str) -> str:
    try:
        told = await http.post(root + "/api/show", {"model": model}, UsageMeter())
    except NO_ANSWER:
        return ""
    return _told(mapping_or_empty(told.get("details")), "quantization_level", "parameter_size")


class Tokenizer:
    """A server's own tokenizer, over its endpoints."""

    def __init__(self, http: HttpClient, server: Server, model: str) -> None:
        self._http = http
        self._server = server
        self._model = model

    async def encode(self, text: str) -> list[int] | None:
        """Return the tokens of `text`, no special ones added; None where the server has none."""
        if self._server.kind == "llamacpp":
            body = {"content": text, "add_special": False, "parse_special": True}
        else:
            body = {"model": self._model, "prompt": text, "add_special_tokens": False}
        return _tokens(await self._post("/tokenize", body))

    async def render(
        self, content: str, chat_settings: Mapping[str, Any]
    ) -> tuple[str, list[int] | None] | None:
        """Return a user message as the chat template writes it, as text and as tokens."""
        messages: Sequence[Mapping[str, str]] = [{"role": "user", "content": content}]
        if self._server.kind == "llamacpp":
            told = await self._post("/apply-template", {"messages": messages, **chat_settings})
            text = (told or {}).get("prompt")
            return (text, None) if isinstance(text, str) else None
        body = {"model": self._model, "messages": messages, "add_generation_prompt": True}
        tokens = _tokens(await self._post("/tokenize", {**body, **chat_settings}))
        if tokens is None:
            return None
        told = await self._post("/detokenize", {"model": self._model, "tokens": tokens})
        text = (told or {}).get("prompt")
        return (text, tokens) if isinstance(text, str) else None

    async def _post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any] | None:
        if self._server.kind in ("unknown", "ollama"):
            return None
        try:
            return await self._http.post(self._server.root + path, body, UsageMeter())
        except NO_ANSWER:
            return None


def _tokens(told: Mapping[str, Any] | None) -> list[int] | None:
    tokens = (told or {}).get("tokens")
    if isinstance(tokens, list) and all(isinstance(token, int) for token in tokens):
        return tokens
    return None


MARK = "ROCKETEVALMARK"
CHAT_SETTINGS = frozenset(
    {"chat_template", "chat_template_kwargs", "add_generation_prompt", "continue_final_message"}
)
"""Settings of a request that change the template, and mean nothing to raw completions."""


@dataclass(frozen=True, slots=True)
class ChatFrame:
    """What stands before and after a user message in the prompt that the model reads.

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
    """Return the frame the server's template makes; None where it cannot be learned for sure."""
    settings = {name: value for name, value in extra_body.items() if name in CHAT_SETTINGS}
    plain = await tokenizer.render(MARK, settings)
    spaced = await tokenizer.render(f" {MARK} ", settings)
    if plain is None or spaced is None or plain[0].count(MARK) != 1:
        return None
    head, tail = plain[0].split(MARK)
    # Two renderings, because a template may have spaces of its own around the message.
    for trims in (False, True):
        frame = ChatFrame(head, tail, trims)
        if frame.around(f" {MARK} ") == spaced[0]:
            break
    else:
        return None
    text, tokens = plain
    if tokens is not None and await tokenizer.encode(text) != tokens:
        # Text that does not come back as the same tokens would show the model another prompt.
        return None
    return frame
