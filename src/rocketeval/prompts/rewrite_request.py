"""The prompt that asks an author to rewrite some items of a checklist."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocketeval.prompts.neutralise import neutralise
from rocketeval.prompts.render import NO_REFERENCE, Template, render_history, told_about
from rocketeval.records import Checklist, Query

NEEDS = ("history", "query", "reference", "about", "checklist", "flagged", "numbers")
"""Placeholders of the template."""
EVERY_QUERY = "(none: the checklist is used for many queries, and every question must fit them all)"
NOT_TOLD = "(what decides the quality of a response)"


def render_rewrite_request(
    template: Template,
    query: Query | None,
    checklist: Checklist,
    wrong: Mapping[int, Sequence[str]],
) -> str:
    """Return the prompt; `wrong` says what is wrong with items, by their number from 1.

    Without a query, the checklist is one that all queries share.
    """
    history, _ = render_history(query.history if query else ())
    reference = query.reference if query else None
    return template.fill(
        {
            "history": history,
            "query": neutralise(query.text).text if query else EVERY_QUERY,
            "reference": NO_REFERENCE if reference is None else neutralise(reference).text,
            "about": NOT_TOLD if checklist.about is None else told_about(checklist.about).text,
            "checklist": "\n".join(
                _numbered(checklist, number) for number in range(1, len(checklist.items) + 1)
            ),
            "flagged": "\n".join(
                "\n".join([_numbered(checklist, number), *(f"   - {_line(why)}" for why in whys)])
                for number, whys in wrong.items()
            ),
            "numbers": ", ".join(map(str, wrong)),
        }
    )


def _numbered(checklist: Checklist, number: int) -> str:
    return f"{number}. {_line(checklist.items[number - 1])}"


def _line(text: str) -> str:
    """Return a text as one line: none can forge the number of another."""
    return neutralise(" ".join(text.split())).text
