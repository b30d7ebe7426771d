"""Instance-specific checklists: a strong LLM writes one for each query (RocketEval, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocketeval.budget import TEMPLATE_TOKENS, most_tokens, most_written
from rocketeval.config import AuthorConfig, NoOptions, parse_options
from rocketeval.engines.base import Engine, create_engine, pulse_of
from rocketeval.errors import ChecklistError, ConfigError, RequestRejected
from rocketeval.hashing import content_hash
from rocketeval.observing import Pulse
from rocketeval.prompts.neutralise import RULES, neutralise
from rocketeval.prompts.parse import parse_checklist
from rocketeval.prompts.render import Template, render_checklist_request
from rocketeval.records import Checklist, Query, Usage

MAX_TOKENS = 1500
LONGEST_REASON = 1000
"""Bytes of what `parse_checklist` says is wrong, which quotes sixty characters at most."""
REFUSED = "\n\nYour last list was refused: {reason} Write the whole list again, in the form asked."


class InstanceAuthor:
    """Asks an engine for a checklist, and again with the mistake named if it cannot be read."""

    costly = True

    def __init__(self, config: AuthorConfig, engine: Engine, model: str) -> None:
        self.config = config
        self._engine = engine
        self._model = model
        self.in_flight = engine.in_flight
        self.durable = engine.durable
        self.usage = Usage()
        self.lost = 0
        self._template = Template.load(
            "checklist", config.template, needs=("history", "query", "reference")
        )
        self.digest = content_hash(
            "instance",
            model,
            config.engine.extra_body if config.engine else {},
            self._template.hash,
            RULES,
            config.min_items,
            config.max_items,
        )

    @classmethod
    def create(
        cls, config: AuthorConfig, imported: Mapping[str, Checklist], home: Path | None = None
    ) -> InstanceAuthor:
        """Return an author that uses the engine in `config`."""
        parse_options(config.options, NoOptions, "author.options")
        if config.engine is None:
            raise ConfigError(
                "`author.kind: instance` needs an author LLM.",
                hint="Set author.engine.model (and base_url, api_key_env if not the OpenAI API).",
            )
        return cls(config, create_engine(config.engine, home), config.engine.model)

    @property
    def pulse(self) -> Pulse:
        """How its engine fares at this moment."""
        return pulse_of(self._engine)

    async def prepare(self) -> None:
        """Check that the author LLM answers."""
        await self._engine.ready()

    def most(self, query: Query) -> Usage:
        """Return what all attempts together use at most."""
        asked = render_checklist_request(self._template, query)
        extra_body = self.config.engine.extra_body if self.config.engine else {}
        attempts = self.config.attempts
        return Usage(
            prompt_tokens=attempts * most_tokens(asked + REFUSED, TEMPLATE_TOKENS + LONGEST_REASON),
            completion_tokens=attempts * most_written(MAX_TOKENS, extra_body),
        )

    async def write(self, query: Query) -> Checklist:
        """Return the checklist the author wrote for `query`."""
        asked = render_checklist_request(self._template, query)
        prompt, reason = asked, ""
        for _ in range(self.config.attempts):
            try:
                written = await self._engine.write(prompt, max_tokens=MAX_TOKENS)
            except RequestRejected as error:
                raise ChecklistError(f"the author rejected it: {error.message}") from None
            self.usage += written.usage
            self.lost += written.usage.requests - 1
            try:
                items = self._parse(written.text, finished=written.finished)
            except ChecklistError as error:
                reason = error.message
                prompt = asked + REFUSED.format(reason=neutralise(reason).text)
                continue
            return Checklist(query.id, items, self._model)
        raise ChecklistError(
            f"the author's list was refused {self.config.attempts} times: {reason}"
        )

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    def _parse(self, text: str, *, finished: bool) -> tuple[str, ...]:
        if not finished:
            raise ChecklistError("it was cut off at the token limit.")
        return parse_checklist(
            text, min_items=self.config.min_items, max_items=self.config.max_items
        )
