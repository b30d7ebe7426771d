"""How finely each perspective is answered: the paper's refinement of output granularity."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Literal

from rocketeval.evolve.perspective import Form, Kind, Perspective

Answers = Literal["choice", "graded", "both"]
_FORMS: dict[Answers, tuple[Form, ...]] = {
    "choice": (Form.CHOICE,),
    "graded": (Form.GRADED,),
    "both": (Form.CHOICE, Form.GRADED),
}


def forms_of(answers: Answers) -> tuple[Form, ...]:
    """Return the forms that a setting stands for, the first one first."""
    return _FORMS[answers]


def with_forms(perspectives: Iterable[Perspective], answers: Answers) -> tuple[Perspective, ...]:
    """Return the perspectives in the wanted forms; what is there in one of them stays as it is.

    With `both`, the choice comes first and is the parent of its graded twin. A question about a
    query is always a choice.

    >>> [each.form.value for each in with_forms([Perspective("Is it kind?")], "both")]
    ['choice', 'graded']
    """
    return in_forms(perspectives, forms_of(answers))


def in_forms(
    perspectives: Iterable[Perspective], forms: tuple[Form, ...]
) -> tuple[Perspective, ...]:
    """Return the perspectives in these forms, each once."""
    listed = list(perspectives)
    # Of two the same the first stays: it was there before.
    there = {each.id: each for each in reversed(listed)}
    made: dict[str, Perspective] = {}
    for each in listed:
        for formed in _formed(each, forms):
            made.setdefault(formed.id, there.get(formed.id, formed))
    return tuple(made.values())


def _formed(perspective: Perspective, forms: tuple[Form, ...]) -> Iterator[Perspective]:
    if perspective.kind is Kind.QUERY:
        yield _as(perspective, Form.CHOICE)
        return
    first, *others = forms
    root = _as(perspective, first)
    yield root
    for form in others:
        yield replace(_as(perspective, form), parents=(root.id,))


def _as(perspective: Perspective, form: Form) -> Perspective:
    """Return a perspective in a form; what was learned of it in another does not hold."""
    if perspective.form is form:
        return perspective
    return replace(perspective, form=form, importance=None, stability=None)
