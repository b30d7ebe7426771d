"""checklist, with an evaluator: every query is asked about from the same perspectives."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from rocketeval.cost import usage_facts
from rocketeval.evolve.perspective import Perspective
from rocketeval.observing import Observer
from rocketeval.records import Checklist, Usage
from rocketeval.stages.evaluate.given import Given
from rocketeval.store.run import RunStore

AUTHOR = "evaluator"


def give_checklists(store: RunStore, given: Given, observer: Observer) -> dict[str, Any]:
    """Write the evaluator's perspectives as every query's checklist; return counts."""
    queries = store.inputs.queries
    observer.stage_began("checklist", len(queries))
    perspectives = given.evaluator.about_responses
    items, groups = item_texts(perspectives), tuple(each.origin.value for each in perspectives)
    made = [Checklist(query_id, items, AUTHOR, groups) for query_id in queries]
    if store.inputs.save_checklists(made):
        store.drop_from("score")
    store.inputs.save_provenance(None)
    return {
        "checklists": len(made),
        "items": len(made) * len(items),
        "reused": 0,
        "failures": {},
        "unwritten": 0,
        "usage": usage_facts(Usage(), None),
    }


def item_texts(perspectives: Sequence[Perspective]) -> tuple[str, ...]:
    """Return what each perspective is called: its question, with its form where two ask the same.

    >>> from rocketeval.evolve.perspective import Form
    >>> both = [Perspective("Is it kind?"), Perspective("Is it kind?", form=Form.GRADED)]
    >>> item_texts(both)
    ('Is it kind? (choice)', 'Is it kind? (graded)')
    """
    asked = Counter(each.text for each in perspectives)
    return tuple(
        each.text if asked[each.text] == 1 else f"{each.text} ({each.form.value})"
        for each in perspectives
    )
