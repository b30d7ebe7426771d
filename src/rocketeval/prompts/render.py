"""Templates with `{{name}}` placeholders, and neutralized text that cannot forge markers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from pathlib import Path
from typing import Protocol

from rocketeval.errors import PromptError
from rocketeval.hashing import combine, content_hash
from rocketeval.items import MATERIALS
from rocketeval.neutral import (
    FIRST_RULES,
    MATERIAL_MARKERS,
    Neutralized,
    neutral_line,
    neutralize,
    neutralize_name,
    shown,
)
from rocketeval.records import Checklist, GradingTask, Query, Response, Turn
from rocketeval.registry import nearest

NO_HISTORY = "(none: the query opens the conversation)"
NO_REFERENCE = "(none)"
__all__ = [
    "FIRST_RULES",
    "GradingPrompt",
    "Prompt",
    "Template",
    "definition_of",
    "neutral_line",
    "neutralize",
    "neutralize_name",
    "render_checklist_request",
    "render_history",
    "shown",
    "shown_checklist",
    "shown_query",
    "shown_response",
]

_PLACEHOLDER = re.compile(r"\{\{(\w+)\}\}")
_FORGED = re.compile(r"\s*(?:#|Q?\d+\s*[.:)])", re.IGNORECASE)
"""The start of a line that could look like a heading or a numbered item."""
_INCLUDE = re.compile(r"^@include (\w+)$", re.MULTILINE)
"""A line of a packaged template that includes another template."""


@dataclass(frozen=True)
class Template:
    """A prompt template: its name, its text, and the user's file unless it is packaged."""

    name: str
    text: str
    path: Path | None = None

    @classmethod
    def load(cls, name: str, path: Path | None = None, *, needs: Sequence[str] = ()) -> Template:
        """Return the packaged template `name`, or the user's own file at `path`.

        Raises PromptError unless its placeholders are `needs`, each exactly once.
        """
        template = cls(name, _read(name, path), path)
        if needs:
            template.check(needs)
        return template

    def check(self, needs: Sequence[str]) -> None:
        """Raise PromptError unless the placeholders are `needs`, each exactly once."""
        found = _PLACEHOLDER.findall(self.text)
        which = f"The {self.name!r} template" + (f" {self.path}" if self.path else "")
        all_of_them = ", ".join(f"{{{{{name}}}}}" for name in needs)
        for problem, names in (
            ("lacks", [name for name in needs if name not in found]),
            ("holds more than once", [name for name in needs if found.count(name) > 1]),
        ):
            if names:
                raise PromptError(
                    f"{which} {problem}: {', '.join(f'{{{{{name}}}}}' for name in names)}.",
                    hint=f"Each of these must occur exactly once: {all_of_them}.",
                )
        for name in found:
            if name not in needs:
                raise PromptError(
                    f"{which} asks for {{{{{name}}}}}, which does not exist.",
                    hint=nearest(name, list(needs)),
                )

    @cached_property
    def hash(self) -> str:
        """Return the hex hash of the text, part of the judge's fingerprint."""
        return content_hash("template", self.text).hex()

    def fill(self, values: Mapping[str, str]) -> str:
        """Return the text with every placeholder replaced, in one pass.

        >>> Template("t", "{{a}} {{b}}").fill({"a": "{{b}}", "b": "2"})
        '{{b}} 2'
        """
        return _fill(self.text, values)


def _fill(text: str, values: Mapping[str, str]) -> str:
    def value_of(found: re.Match[str]) -> str:
        try:
            return values[found[1]]
        except KeyError:
            raise PromptError(
                f"The template asks for {{{{{found[1]}}}}}, which is not available here.",
                hint=f"Known placeholders: {', '.join(sorted(values))}.",
            ) from None

    return _PLACEHOLDER.sub(value_of, text)


def _read(name: str, path: Path | None) -> str:
    if path is None:
        return _INCLUDE.sub(lambda found: _packaged(found[1]), _packaged(name))
    try:
        return path.read_text(encoding="utf-8-sig").rstrip("\n")
    except OSError as error:
        raise PromptError(
            f"Cannot read the {name!r} template {path}: {error.strerror}.",
            hint="Check `template` in the config: it is relative to the config's folder. Without "
            "it, the packaged template is used.",
        ) from None
    except UnicodeDecodeError:
        raise PromptError(
            f"The template {path} is not text in UTF-8.", hint="Save it as UTF-8."
        ) from None


def _packaged(name: str) -> str:
    file = resources.files("rocketeval.prompts") / "templates" / f"{name}.txt"
    return file.read_text(encoding="utf-8").rstrip("\n")


class Prompt(Protocol):
    """Turns records into grading tasks."""

    @property
    def hash(self) -> str:
        """Return the hex hash of all that affects prompts, part of the judge's fingerprint."""
        ...

    def render(
        self, query: Query, response: Response, checklist: Checklist, key: bytes
    ) -> GradingTask:
        """Return the grading task for `response`; `key` is its judgment's identity."""
        ...


class GradingPrompt:
    """Renders a response with its whole checklist into one grading task.

    The template is split at `{{item}}`; the text before it is the prefix that all items share.
    Extra placeholders, named in `own`, are filled by `own_values`.
    """

    shows: tuple[str, ...] = ("history", "query", "response")
    own: tuple[str, ...] = ()

    def __init__(self, template: Template | None = None) -> None:
        self.template = template or Template.load("grade")
        self.template.check((*self.shows, *self.own, "item"))
        self._before, self._after = self.template.text.split("{{item}}")
        self._pieces = _pieces(self._before)
        self._last: tuple[Query, Checklist, _Shared] | None = None
        late = _PLACEHOLDER.search(self._after)
        if late:
            raise PromptError(
                f"The {self.template.name!r} template has {late[0]} after {{{{item}}}}.",
                hint="Put {{item}} last: all items share the text before it.",
            )

    @property
    def hash(self) -> str:
        """Return the hex hash of all that affects prompts, part of the judge's fingerprint."""
        sample, _ = render_history((Turn("role", "content"),))
        return content_hash("prompt", self.template.text, FIRST_RULES, NO_HISTORY, sample).hex()

    def own_values(self, query: Query, response: Response) -> Mapping[str, str]:
        """Return the values of the extra placeholders."""
        return {}

    def endings(
        self, items: Sequence[str], groups: Sequence[str] | None = None, about: str | None = None
    ) -> tuple[str, ...]:
        """Return the texts after the prefix, one per call: here one per item.

        `groups` names each item's group, and `about` the subject of all items; an item that is
        asked independently shows neither.
        """
        return tuple(item + self._after for item in items)

    def render(
        self, query: Query, response: Response, checklist: Checklist, key: bytes
    ) -> GradingTask:
        """Return the grading task for `response`; `key` is its judgment's identity.

        Raises PromptError for items that must be asked in their own way; see `RubricPrompt`.
        """
        if checklist.asked_specially:
            raise PromptError(
                f"The checklist of query {query.id!r} has items with levels, checks, `na` or "
                "`uses`, which this grading method cannot ask.",
                hint="Use `method.kind: checklist`.",
            )
        shared = self._shared_by(query, checklist)
        history, forged = shared.history
        if response.history is not None:
            history, forged = render_history(response.history)
        shown_text = neutralize(response.text if "response" in self.shows else "")
        own = {name: neutralize(text) for name, text in self.own_values(query, response).items()}
        values = {"history": history, "query": shared.query, "response": shown_text.text}
        values |= {name: safe.text for name, safe in own.items()}
        return GradingTask(
            key=key,
            query_id=query.id,
            candidate=response.candidate,
            prefix="".join(values.get(name, literal) for name, literal in self._pieces),
            suffixes=shared.suffixes,
            neutralised=forged
            + shown_text.count
            + shared.neutralised
            + sum(safe.count for safe in own.values()),
            items=len(checklist.items),
        )

    def _shared_by(self, query: Query, checklist: Checklist) -> _Shared:
        """Return the prompt parts that responses to a query share; cached for the last query."""
        if self._last is None or self._last[0] is not query or self._last[1] is not checklist:
            asked = neutralize(query.text)
            items = [neutralize(item) for item in checklist.items]
            groups = [neutralize_name(name) for name in checklist.groups or ()]
            about = [] if checklist.about is None else [definition_of(checklist.about)]
            shared = _Shared(
                history=render_history(query.history),
                query=asked.text,
                suffixes=self.endings(
                    [item.text for item in items],
                    [name.text for name in groups] or None,
                    about[0].text if about else None,
                ),
                neutralised=asked.count + sum(safe.count for safe in (*items, *groups, *about)),
            )
            self._last = (query, checklist, shared)
        return self._last[2]


@dataclass(frozen=True, slots=True)
class _Shared:
    """The parts of a prompt that do not depend on the response."""

    history: tuple[str, int]
    query: str
    suffixes: tuple[str, ...]
    neutralised: int


def definition_of(about: str) -> Neutralized:
    """Return the items' subject, with no line that could look like a heading or a question.

    >>> definition_of("tone: kind\\n# Task\\nQ1. Is it?").text
    'tone: kind\\n- # Task\\n- Q1. Is it?'
    """
    lines = (f"- {line}" if _FORGED.match(line) else line for line in about.splitlines())
    return neutralize("\n".join(lines))


def _pieces(text: str) -> list[tuple[str, str]]:
    """Return a template's pieces in order: a placeholder's name, or a literal text."""
    parts = _PLACEHOLDER.split(text)
    return [(part, "") if place % 2 else ("", part) for place, part in enumerate(parts)]


def render_history(turns: Sequence[Turn]) -> tuple[str, int]:
    """Return the earlier turns as text, and the number of neutralized markers."""
    if not turns:
        return NO_HISTORY, 0
    blocks, count = [], 0
    for turn in turns:
        safe = neutralize(turn.content)
        role = neutralize_name(turn.role)
        blocks.append(f"<<<{role.text} turn>>>\n{safe.text}\n<<<end of turn>>>")
        count += safe.count + role.count
    return "\n".join(blocks), count


def shown_query(query: Query, uses: Sequence[str] = ()) -> bytes:
    """Return the identity of a query as shown to a judge, with the material that items use."""
    plain = shown(query.content_hash, query.text, *(turn.content for turn in query.history))
    if not uses:
        return plain
    return combine(plain, shown(query.material_hash(uses), *_material(query, uses)))


def _material(query: Query, uses: Sequence[str]) -> Iterator[str]:
    """Yield the texts of a query that items use."""
    for name in uses:
        given: str | tuple[str, ...] | None = getattr(query, name)
        yield from (given,) if isinstance(given, str) else given or ()


def shown_response(response: Response, context: bool = False) -> bytes:
    """Return the identity of a response as shown to a judge, with or without its own context."""
    turns = response.history or ()
    content = response.hash_with_context if context else response.content_hash
    passages = (response.context or ()) if context else ()
    return shown(content, response.text, *(turn.content for turn in turns), *passages)


def shown_checklist(checklist: Checklist) -> bytes:
    """Return the identity of a checklist as shown to a judge."""
    about = () if checklist.about is None else (checklist.about,)
    levels = (level for detail in checklist.details or () for level in detail.levels)
    plain = shown(checklist.content_hash, *checklist.items, *about, *levels)
    return combine(plain, special_format()) if checklist.asked_specially else plain


MATERIAL_TEMPLATES = {name: f"shown_{name}" for name in MATERIALS}
ENDING_TEMPLATES = ("item_yes_no_na", "item_scale", "item_scale_na")
_FORMAT = 1
"""Version of how material is placed and how labels of special items are read."""


@cache
def special_format() -> bytes:
    """Return a hash of the form of items that are not asked as a plain yes/no question.

    It is part of the identity of their checklists, not of the judge, so that plain checklists keep
    their judgments.
    """
    texts = [_packaged(name) for name in (*MATERIAL_TEMPLATES.values(), *ENDING_TEMPLATES)]
    return content_hash("special items", texts, MATERIAL_MARKERS, _FORMAT)


def render_checklist_request(template: Template, query: Query, *, least: int, most: int) -> str:
    """Return the prompt that asks an author for a checklist of `least` to `most` items."""
    history, _ = render_history(query.history)
    reference = NO_REFERENCE if query.reference is None else neutralize(query.reference).text
    return template.fill(
        {
            "history": history,
            "query": neutralize(query.text).text,
            "reference": reference,
            "least": str(least),
            "most": str(most),
        }
    )
