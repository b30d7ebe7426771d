"""A minimal client: an aiohttp and orjson loop over prompts in the ideal order.

No retries, no ledger, no statuses: the minimum that gets a probability for every item.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp
import orjson

from harness.measured import Measured, share, timed
from harness.server import VLLMServer

Listed = Sequence[tuple[str, float]]


@dataclass(frozen=True)
class Labels:
    """The judge's tokens that mean yes and no, as they appear in a reply."""

    yes: frozenset[str]
    no: frozenset[str]
    settings: dict[str, Any]
    """Fields of the request body."""

    @classmethod
    def exact(cls, server: VLLMServer, yes: Sequence[str], no: Sequence[str]) -> Labels:
        """Ask for the log-probability of every label that is one token of the vocabulary."""
        yes_ids, no_ids = _single(server, yes), _single(server, no)
        settings = {"logprob_token_ids": [*yes_ids, *no_ids], "return_tokens_as_token_ids": True}
        return cls(_named(yes_ids), _named(no_ids), settings)

    @classmethod
    def top(cls, number: int, yes: Sequence[str], no: Sequence[str]) -> Labels:
        """Ask for the most likely tokens and look for the labels among them."""
        return cls(frozenset(yes), frozenset(no), {"top_logprobs": number})

    def share(self, listed: Listed) -> float | None:
        """Return p_yes."""
        yes = [logp for token, logp in listed if token in self.yes]
        no = [logp for token, logp in listed if token in self.no]
        return share(yes, no)


@dataclass(frozen=True)
class Form:
    """One request form for the items of a response."""

    path: str
    prompt: Callable[[Sequence[str]], dict[str, Any]]
    """Maps the prompts of one request to its part of the body."""
    listed: Callable[[dict[str, Any]], Listed]
    """Maps a choice to its `(token, logprob)` pairs."""
    several: bool
    """Whether one request takes all items of a response."""


def chat_item() -> Form:
    """Return the form with one chat request per item."""
    return Form(
        "/chat/completions",
        lambda prompts: {"messages": _user(prompts[0]), "logprobs": True},
        _chat_listed,
        several=False,
    )


def chat_batch() -> Form:
    """Return the form with one batch chat request per response."""
    return Form(
        "/chat/completions/batch",
        lambda prompts: {"messages": [_user(prompt) for prompt in prompts], "logprobs": True},
        _chat_listed,
        several=True,
    )


def completions(before: str, after: str) -> Form:
    """Return the form with one text completion per response: a list of templated prompts."""
    return Form(
        "/completions",
        lambda prompts: {
            "prompt": [before + prompt + after for prompt in prompts],
            "add_special_tokens": False,
            "logprobs": 1,
        },
        lambda choice: list(choice["logprobs"]["top_logprobs"][0].items()),
        several=True,
    )


class BareHttp:
    """A client with `in_flight` requests at once that reads p_yes from every reply."""

    def __init__(
        self,
        server: VLLMServer,
        prompts: Sequence[Sequence[str]],
        form: Form,
        labels: Labels,
        in_flight: int,
    ) -> None:
        self._url = server.base_url + form.path
        self._common = {"model": server.model, "max_tokens": 1, "temperature": 0, **labels.settings}
        self._form = form
        self._labels = labels
        self._in_flight = in_flight
        self._calls = [
            call
            for items in prompts
            for call in ([items] if form.several else [[i] for i in items])
        ]
        self._runner = asyncio.Runner()
        self._session: aiohttp.ClientSession | None = None

    def run(self) -> Measured:
        """Ask for every item once."""
        return self._runner.run(self._run())

    def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            self._runner.run(self._session.close())
        self._runner.close()

    async def _run(self) -> Measured:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._in_flight),
                headers={"Content-Type": "application/json"},
                timeout=aiohttp.ClientTimeout(total=3600),
            )
        found: list[list[float | None]] = [[] for _ in self._calls]
        measured = Measured([])
        with timed() as watch:
            calls = iter(enumerate(self._calls))
            async with asyncio.TaskGroup() as group:
                for _ in range(self._in_flight):
                    group.create_task(self._work(self._session, calls, found, measured))
        measured.p_yes = [p for answers in found for p in answers]
        measured.seconds, measured.cpu_seconds = watch.seconds, watch.cpu_seconds
        return measured

    async def _work(
        self,
        session: aiohttp.ClientSession,
        calls: Iterator[tuple[int, Sequence[str]]],
        found: list[list[float | None]],
        measured: Measured,
    ) -> None:
        for place, prompts in calls:
            body = orjson.dumps({**self._common, **self._form.prompt(prompts)})
            async with session.post(self._url, data=body) as reply:
                content = await reply.read()
                if reply.status != 200:
                    raise RuntimeError(f"HTTP {reply.status}: {content[:300]!r}")
            result = orjson.loads(content)
            found[place] = [
                self._labels.share(self._form.listed(choice)) for choice in result["choices"]
            ]
            measured.prompt_tokens += result["usage"]["prompt_tokens"]


def _chat_listed(choice: dict[str, Any]) -> Listed:
    rows = choice["logprobs"]["content"][0]["top_logprobs"]
    return [(row["token"], row["logprob"]) for row in rows]


def _user(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


def _single(server: VLLMServer, texts: Sequence[str]) -> list[int]:
    encoded = [server.tokenize(text) for text in texts]
    return sorted({tokens[0] for tokens in encoded if len(tokens) == 1})


def _named(tokens: Sequence[int]) -> frozenset[str]:
    return frozenset(f"token_id:{token}" for token in tokens)
