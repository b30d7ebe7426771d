"""Instance-specific checklists: a strong LLM writes one for each query (RocketEval, 3.1, A.1)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rocketeval.checklists.asking import Writer, list_tokens
from rocketeval.config import AuthorConfig, NoOptions, parse_options
from rocketeval.engines.base import Engine, create_engine, pulse_of
from rocketeval.errors import ConfigError
from rocketeval.hashing import content_hash
from rocketeval.observing import Pulse
from rocketeval.prompts.neutralise import RULES
from rocketeval.prompts.parse import parse_checklist
from rocketeval.prompts.render import Template, render_checklist_request
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.authored import Effort

ASKED_FOR = (5, 10)
"""How many items the paper lets its author write."""
SHOWN = ("history", "query", "reference")
"""Placeholders of the author's prompt; each stands in it exactly once."""
NUMBERS = ("least", "most")
"""Placeholders that a prompt may have: how many items it asks for."""


class InstanceAuthor:
    """Asks an engine for a checklist, and again with the mistake named if it cannot be read."""

    costly = True

    def __init__(self, config: AuthorConfig, engine: Engine, model: str) -> None:
        self.config = config
        self._engine = engine
        self.usage = Usage()
        """What its work has cost so far, lists that could not be used included."""
        self.lost = 0
        """Requests that brought no answer."""
        self._model = model
        self._extra_body = config.engine.extra_body if config.engine else {}
        self._efforts: dict[str, Effort] = {}
        self.in_flight = engine.in_flight
        self.durable = engine.durable
        self.asked_for = asked_for(config.min_items, config.max_items)
        """The least and the most items that a prompt with placeholders for them asks for."""
        self._longest = list_tokens(config.max_items)
        self._template = _load(config.template)
        self.digest = content_hash(
            "instance",
            model,
            self._extra_body,
            # With its numbers: a list is the work of the prompt that was sent.
            _with_numbers(self._template, *self.asked_for).hash,
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
        return self._writer().most(self._asked(query), self._longest)

    async def write(self, query: Query) -> Checklist:
        """Return the checklist the author wrote for `query`."""
        writer = self._writer()
        try:
            items = await writer.write(self._asked(query), self._parse, self._longest)
        finally:
            self.usage += writer.usage
            self.lost += writer.lost
            self._efforts[query.id] = writer.effort
        return Checklist(query.id, items, self._model)

    def about(self) -> dict[str, Any]:
        """Return who it is and how it asks."""
        own = self.config.template
        return {
            "kind": "instance",
            "author": self._model,
            "template": self._template.hash,
            "template_file": None if own is None else str(own),
            "asked_for": list(self.asked_for) if _asks_for_numbers(self._template) else None,
            "accepted": [self.config.min_items, self.config.max_items],
            "attempts": self.config.attempts,
        }

    def effort(self, query_id: str) -> Effort | None:
        """Return what the list for a query took, also one that failed; None if it was not asked."""
        return self._efforts.get(query_id)

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    def _writer(self) -> Writer:
        return Writer(self._engine, self.config.attempts, self._extra_body)

    def _asked(self, query: Query) -> str:
        least, most = self.asked_for
        return render_checklist_request(self._template, query, least=least, most=most)

    def _parse(self, text: str) -> tuple[str, ...]:
        return parse_checklist(
            text, min_items=self.config.min_items, max_items=self.config.max_items
        )


def asked_for(least: int, most: int) -> tuple[int, int]:
    """Return how many items to ask for where `least` to `most` are accepted.

    5 to 10 as in the paper as far as that is accepted; else all that is.

    >>> asked_for(3, 12), asked_for(3, 8), asked_for(1, 4), asked_for(3, 5), asked_for(12, 20)
    ((5, 10), (5, 8), (1, 4), (3, 5), (12, 20))
    """
    low, high = max(least, ASKED_FOR[0]), min(most, ASKED_FOR[1])
    return (low, high) if low < high else (least, most)


def _load(path: Path | None) -> Template:
    """Return the packaged prompt or the user's own, which may do without the numbers."""
    template = Template.load("checklist", path)
    numbers = (name for name in NUMBERS if _placeholder(name) in template.text)
    template.check((*SHOWN, *numbers))
    return template


def _asks_for_numbers(template: Template) -> bool:
    return any(_placeholder(name) in template.text for name in NUMBERS)


def _with_numbers(template: Template, least: int, most: int) -> Template:
    text = template.text.replace(_placeholder("least"), str(least))
    return Template(template.name, text.replace(_placeholder("most"), str(most)))


def _placeholder(name: str) -> str:
    return f"{{{{{name}}}}}"
