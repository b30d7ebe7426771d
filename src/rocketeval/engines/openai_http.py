"""Any OpenAI-compatible server over HTTP: chat completions with log-probabilities."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from rocketeval.config import EngineConfig, NoOptions, parse_options
from rocketeval.engines.base import EngineIdentity, Finding, Graded, Written
from rocketeval.engines.http import HttpClient
from rocketeval.engines.meter import Meter
from rocketeval.engines.readout import Readout
from rocketeval.errors import ConfigError, EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.hashing import content_hash
from rocketeval.records import Answer, GradingTask, Status

DEFAULT_BASE_URL = "https://api.openai.com/v1"


IN_FLIGHT = 8


class OpenAIEngine:
    """A judge or author behind `/chat/completions`.

    The items of one response are asked one after the other, so that the server finds their
    shared prefix in its cache; several responses are in flight at once.
    """

    durable = False

    def __init__(self, config: EngineConfig) -> None:
        self.config = config
        self.in_flight = config.concurrency or IN_FLIGHT
        self.base_url = base_url(config)
        self.readout = Readout(min_mass=config.min_mass, max_width=config.max_width)
        self._http = HttpClient(
            self.base_url,
            key=os.environ.get(config.api_key_env),
            concurrency=self.in_flight,
            timeout=config.timeout,
            patience=config.patience,
        )

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> OpenAIEngine:
        """Return an engine for `config`; nothing is contacted yet."""
        parse_options(config.options, NoOptions, f"The engine of {config.model!r}: options")
        return cls(config)

    @property
    def retries(self) -> int:
        """Requests sent again so far."""
        return self._http.retries

    async def identify(self) -> EngineIdentity:
        """Check that the server is up and serves the model; return what it says about itself."""
        await self._check_model()
        return EngineIdentity(
            engine="openai",
            model=self.config.model,
            endpoint="chat",
            version=await self._version(),
            logprobs=f"top{self.config.top_logprobs}{self._extra()}",
            readout=self.readout.hash,
        )

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> Graded:
        """Answer every item of `task` that is not already `known`."""
        answers: list[Answer] = []
        meter = Meter()
        for position, suffix in enumerate(task.suffixes):
            if position in known:
                answers.append(known[position])
                continue
            try:
                answers.append(await self._ask(task.prefix + suffix, meter))
            except (EngineUnavailable, RequestRejected) as error:
                # The other items share the prefix, so they would fail the same way.
                answers += [
                    known.get(rest, Answer(Status.ERROR))
                    for rest in range(position, len(task.suffixes))
                ]
                return Graded(
                    tuple(answers),
                    meter.usage,
                    failure=f"item {position + 1}: {error.message}",
                    unavailable=isinstance(error, EngineUnavailable),
                )
        return Graded(tuple(answers), meter.usage)

    async def findings(self) -> Sequence[Finding]:
        """Return nothing yet."""
        return ()

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return None: it cannot tell yet."""
        return None

    async def write(self, prompt: str, *, max_tokens: int) -> Written:
        """Return the text the model writes for `prompt`."""
        meter = Meter()
        choice = await self._chat(prompt, {"max_tokens": max_tokens}, meter)
        with _expected_shape():
            text = choice.get("message", {}).get("content") or ""
        return Written(text, meter.usage, finished=choice.get("finish_reason") != "length")

    async def aclose(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    def _extra(self) -> str:
        """Return what settings of the user's own add to the identity: they can change answers."""
        extra = self.config.extra_body
        return f"+{content_hash('extra_body', extra).hex()}" if extra else ""

    async def _ask(self, prompt: str, meter: Meter) -> Answer:
        settings = {"max_tokens": 1, "logprobs": True, "top_logprobs": self.config.top_logprobs}
        choice = await self._chat(prompt, settings, meter)
        with _expected_shape():
            return self.readout.read(listed_tokens(choice))

    async def _chat(self, prompt: str, settings: Mapping[str, Any], meter: Meter) -> dict[str, Any]:
        reply = await self._http.post(
            "/chat/completions",
            {
                "model": self.config.model,
                "messages": [{"role": "user", "content": prompt}],
                "temperature": 0,
                **settings,
                **self.config.extra_body,
            },
            meter,
        )
        meter.answered(reply)
        return _first_choice(reply)

    async def _check_model(self) -> None:
        listing = await self._http.get("/models")
        rows = (listing or {}).get("data")
        rows = rows if isinstance(rows, list) else []
        served = [str(row["id"]) for row in rows if isinstance(row, dict) and "id" in row]
        if served and self.config.model not in served:
            raise EngineRefused(
                f"{self.base_url} does not serve the model {self.config.model!r}.",
                hint=f"It serves: {', '.join(served[:10])}. Set `model` to one of these.",
            )

    async def _version(self) -> str:
        root = urlsplit(self.base_url)._replace(path="", query="").geturl()
        for path, field in (("/version", "version"), ("/props", "build_info")):
            told = await self._http.get(root + path, optional=True)
            if told and told.get(field):
                return str(told[field])
        return "unknown"


def base_url(config: EngineConfig) -> str:
    """Return the endpoint: the config's, else $OPENAI_BASE_URL, else the OpenAI API."""
    url = config.base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL
    parts = urlsplit(url)
    if parts.username or parts.password:
        raise ConfigError(
            "base_url holds a user name or password.",
            hint="Keys belong in the environment variable that `api_key_env` names.",
        )
    if parts.scheme not in ("http", "https") or not parts.hostname or not _valid_port(parts):
        raise ConfigError(f"base_url {url!r} is not an http(s) address.")
    if parts.query or parts.fragment:
        raise ConfigError(f"base_url {url!r} has something after its path.")
    return url.rstrip("/")


def listed_tokens(choice: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the `(token, logprob)` pairs of the first generated position."""
    logprobs = choice.get("logprobs") or {}
    positions = logprobs.get("content") or []
    if not positions:
        return []
    rows = positions[0].get("top_logprobs") or []
    return [(row["token"], float(row["logprob"])) for row in rows]


def _first_choice(reply: Mapping[str, Any]) -> dict[str, Any]:
    choices = reply.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise RequestRejected("the server answered without any choice.")
    return choices[0]


def _valid_port(parts: SplitResult) -> bool:
    try:
        return parts.port != 0
    except ValueError:
        return False


@contextmanager
def _expected_shape() -> Iterator[None]:
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise RequestRejected(
            f"the server's answer is not a chat completion ({type(error).__name__}: {error})."
        ) from None
