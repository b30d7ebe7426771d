"""Instance-specific checklists: a strong LLM writes one for each query (RocketEval, 3.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from rocketeval.checklists.asking import Writer
from rocketeval.config import AuthorConfig, NoOptions, parse_options
from rocketeval.engines.base import Engine, create_engine, pulse_of
from rocketeval.errors import ConfigError
from rocketeval.hashing import content_hash
from rocketeval.observing import Pulse
from rocketeval.prompts.neutralise import RULES
from rocketeval.prompts.parse import parse_checklist
from rocketeval.prompts.render import Template, render_checklist_request
from rocketeval.records import Checklist, Query, Usage


class InstanceAuthor:
    """Asks an engine for a checklist, and again with the mistake named if it cannot be read."""

    costly = True

    def __init__(self, config: AuthorConfig, engine: Engine, model: str) -> None:
        self.config = config
        self._engine = engine
        self._model = model
        extra_body = config.engine.extra_body if config.engine else {}
        self._writer = Writer(engine, config.attempts, extra_body)
        self.in_flight = engine.in_flight
        self.durable = engine.durable
        self._template = Template.load(
            "checklist", config.template, needs=("history", "query", "reference")
        )
        self.digest = content_hash(
            "instance",
            model,
            extra_body,
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
    def usage(self) -> Usage:
        """What its work has cost so far, lists that could not be used included."""
        return self._writer.usage

    @property
    def lost(self) -> int:
        """Requests that brought no answer."""
        return self._writer.lost

    @property
    def pulse(self) -> Pulse:
        """How its engine fares at this moment."""
        return pulse_of(self._engine)

    async def prepare(self) -> None:
        """Check that the author LLM answers."""
        await self._engine.ready()

    def most(self, query: Query) -> Usage:
        """Return what all attempts together use at most."""
        return self._writer.most(render_checklist_request(self._template, query))

    async def write(self, query: Query) -> Checklist:
        """Return the checklist the author wrote for `query`."""
        asked = render_checklist_request(self._template, query)
        return Checklist(query.id, await self._writer.write(asked, self._parse), self._model)

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    def _parse(self, text: str) -> tuple[str, ...]:
        return parse_checklist(
            text, min_items=self.config.min_items, max_items=self.config.max_items
        )
