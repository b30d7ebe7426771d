"""Prompts for items with their own labels, and for material shown besides query and response.

What more prompts share comes first: the system prompt and the query's context before the
conversation, then the query, a response's own context and the reference, then the response. An item
is shown only the material it uses. Without any, its prompt is that of a plain item.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocketeval.items import Checklist, ItemDetail, ItemKind, level_labels
from rocketeval.neutral import Neutralized, neutralize
from rocketeval.prompts.render import (
    MATERIAL_TEMPLATES,
    GradingPrompt,
    Template,
    render_history,
)
from rocketeval.records import GradingTask, PendingCheck, Query, Response

_SHARED, _OWN = "{{shared_material}}", "{{own_material}}"


class RubricPrompt(GradingPrompt):
    """Asks every item in its own way: with its labels, and with the material it uses.

    Plain checklists are rendered exactly as by `GradingPrompt`, and have the same hash.
    """

    def __init__(self, template: Template | None = None) -> None:
        super().__init__(template)
        with_places = _with_places(self._before)
        self._head = re.split(r"(\{\{\w+\}\})", with_places)
        self._materials = {
            name: Template.load(file, needs=("text",)) for name, file in MATERIAL_TEMPLATES.items()
        }
        self._endings = {
            (True, False): Template.load("item_scale", needs=("item", "levels")),
            (True, True): Template.load("item_scale_na", needs=("item", "levels")),
            (False, True): Template.load("item_yes_no_na", needs=("item",)),
        }
        self._known: tuple[Query, Checklist, _Special] | None = None

    def render(
        self, query: Query, response: Response, checklist: Checklist, key: bytes
    ) -> GradingTask:
        """Return the grading task for `response`; `key` is its judgment's identity."""
        if not checklist.asked_specially:
            return super().render(query, response, checklist, key)
        special = self._special(query, checklist)
        heads: dict[tuple[str, ...], str] = {}
        neutralised = special.neutralised
        for uses in special.shared:
            heads[uses], count = self._filled(query, response, uses, special.shared[uses])
            neutralised = max(neutralised, special.neutralised + count)
        prefix = _common(list(heads.values()))
        suffixes = tuple(
            "" if ending is None else heads[detail.uses][len(prefix) :] + ending
            for detail, ending in zip(checklist.every_detail, special.endings, strict=True)
        )
        return GradingTask(
            key=key,
            query_id=query.id,
            candidate=response.candidate,
            prefix=prefix,
            suffixes=suffixes,
            neutralised=neutralised,
            items=len(checklist.items),
            labels=tuple(detail.labels for detail in checklist.every_detail),
            checks={
                place: PendingCheck(detail.check, response.text, query.reference)
                for place, detail in enumerate(checklist.every_detail)
                if detail.check is not None
            },
        )

    def _special(self, query: Query, checklist: Checklist) -> _Special:
        """Return the parts that responses to a query share; cached for the last query."""
        known = self._known
        if known is None or known[0] is not query or known[1] is not checklist:
            asked = [each for each in checklist.every_detail if each.check is None]
            pairs = zip(checklist.items, checklist.every_detail, strict=True)
            rendered = [self._ending(text, detail) for text, detail in pairs]
            special = _Special(
                shared={
                    uses: self._shared_parts(query, uses)
                    for uses in dict.fromkeys(each.uses for each in asked)
                },
                endings=tuple(text for text, _ in rendered),
                neutralised=sum(count for _, count in rendered),
            )
            known = self._known = (query, checklist, special)
        return known[2]

    def _ending(self, text: str, detail: ItemDetail) -> tuple[str | None, int]:
        """Return an item as asked, and the number of neutralized markers; None for a check."""
        if detail.kind is ItemKind.CHECK:
            return None, 0
        item = neutralize(text)
        scale = detail.kind is ItemKind.SCALE
        if not scale and not detail.na:
            return item.text + self._after, item.count
        levels = [neutralize(" ".join(level.split())) for level in detail.levels]
        values = {"item": item.text}
        if scale:
            labels = level_labels(len(levels))
            pairs = zip(labels, levels, strict=True)
            values["levels"] = "\n".join(f"{label}: {level.text}" for label, level in pairs)
        filled = self._endings[scale, detail.na].fill(values)
        return filled, item.count + sum(level.count for level in levels)

    def _shared_parts(self, query: Query, uses: tuple[str, ...]) -> _SharedParts:
        """Return the parts of a head that do not depend on the response."""
        asked = neutralize(query.text)
        given = {"system": query.system, "reference": query.reference}
        sections = {
            name: self._section(name, text)
            for name, text in given.items()
            if name in uses and text is not None
        }
        if "context" in uses and query.context is not None:
            sections["context"] = self._passages(query.context)
        return _SharedParts(
            query=asked.text,
            history=render_history(query.history),
            sections={name: section.text for name, section in sections.items()},
            neutralised=asked.count + sum(section.count for section in sections.values()),
        )

    def _filled(
        self, query: Query, response: Response, uses: tuple[str, ...], shared: _SharedParts
    ) -> tuple[str, int]:
        """Return the text before the items that use this material, and the neutralized markers."""
        answer, (history, forged) = neutralize(response.text), shared.history
        if response.history is not None:
            history, forged = render_history(response.history)
        sections, count = dict(shared.sections), forged + answer.count + shared.neutralised
        first, later = ["system", "context"], ["reference"]
        if "context" in uses and response.context is not None:
            own = self._passages(response.context)
            sections["context"], count = own.text, count + own.count
            first, later = ["system"], ["context", "reference"]
        values = {
            "{{history}}": history,
            "{{query}}": shared.query,
            "{{response}}": answer.text,
            _SHARED: "".join(sections.get(name, "") for name in first),
            _OWN: "".join(sections.get(name, "") for name in later),
        }
        return "".join(values.get(piece, piece) for piece in self._head), count

    def _section(self, name: str, text: str) -> Neutralized:
        safe = neutralize(text)
        return Neutralized(self._materials[name].fill({"text": safe.text}) + "\n\n", safe.count)

    def _passages(self, passages: Sequence[str]) -> Neutralized:
        """Return the context as numbered passages."""
        safe = [neutralize(passage) for passage in passages]
        shown = "\n".join(
            f"<<<passage {number}>>>\n{passage.text}\n<<<end of passage>>>"
            for number, passage in enumerate(safe, 1)
        )
        section = self._materials["context"].fill({"text": shown or "(no passages)"})
        return Neutralized(section + "\n\n", sum(passage.count for passage in safe))


@dataclass(frozen=True, slots=True)
class _SharedParts:
    """The parts of a head that do not depend on the response."""

    query: str
    history: tuple[str, int]
    sections: Mapping[str, str]
    neutralised: int


@dataclass(frozen=True, slots=True)
class _Special:
    """The parts of all prompts of a checklist that do not depend on the response."""

    shared: Mapping[tuple[str, ...], _SharedParts]
    """By the material that items use."""
    endings: tuple[str | None, ...]
    """Each item as asked; None for a check."""
    neutralised: int


def _common(texts: Sequence[str]) -> str:
    """Return the longest common beginning of some texts."""
    first, last = min(texts, default=""), max(texts, default="")
    pairs = zip(first, last, strict=False)
    same = next((at for at, (one, other) in enumerate(pairs) if one != other), len(first))
    return first[:same]


def _with_places(before: str) -> str:
    """Return the text before `{{item}}` with places for material, each before a heading.

    >>> _with_places("# Talk\\n{{history}}\\n{{query}}\\n## Reply\\n{{response}}").splitlines()[::3]
    ['{{shared_material}}# Talk', '{{own_material}}## Reply']
    """
    for place, mark in ((_SHARED, "{{history}}"), (_OWN, "{{response}}")):
        at = _section_start(before, before.index(mark))
        before = before[:at] + place + before[at:]
    return before


def _section_start(text: str, at: int) -> int:
    """Return where the section around a position starts: its heading, else its paragraph."""
    lines = text[:at].splitlines(keepends=True)
    start = at
    paragraph = None
    for line in reversed(lines):
        start -= len(line)
        if line.startswith("#"):
            return start
        if paragraph is None and not line.strip():
            paragraph = start + len(line)
    return paragraph if paragraph is not None else 0
