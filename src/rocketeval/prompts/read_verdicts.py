"""Read an author's verdicts on questions, strictly: one for each, in order, or a named mistake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from rocketeval.errors import ChecklistError

_FENCED = re.compile(r"```\w*\n(.*)\n```", re.DOTALL)
_FIELDS = ("question", "yes_is_better", "fits", "repeats")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What an author says of one question."""

    yes_is_better: bool
    """Whether the answer yes speaks for the text that is judged."""
    fits: bool
    """Whether it asks about the dimension it stands under, as that is defined."""
    repeats: int | None
    """The number of an earlier question that asks the same; None when it is new."""


def read_verdicts(text: str, count: int) -> tuple[Verdict, ...]:
    """Return the verdicts on `count` questions; ChecklistError says what is wrong.

    >>> told = '[{"question": 1, "yes_is_better": true, "fits": false, "repeats": null}]'
    >>> read_verdicts(told, 1)
    (Verdict(yes_is_better=True, fits=False, repeats=None),)
    """
    fenced = _FENCED.fullmatch(text.strip())
    try:
        rows = orjson.loads(fenced[1] if fenced else text)
    except orjson.JSONDecodeError as error:
        raise ChecklistError(f"it is not JSON ({error}): {text.strip()[:60]!r}.") from None
    if not isinstance(rows, list):
        raise ChecklistError("it is not a JSON list of objects.")
    if len(rows) != count:
        raise ChecklistError(f"there are {len(rows)} verdicts; {count} questions were given.")
    return tuple(_verdict(row, number) for number, row in enumerate(rows, 1))


def _verdict(row: Any, number: int) -> Verdict:
    if not isinstance(row, dict) or set(row) != set(_FIELDS):
        raise ChecklistError(
            f"verdict {number} is not an object with exactly {', '.join(_FIELDS)}."
        )
    if row["question"] is True or row["question"] != number:
        raise ChecklistError(
            f"the verdict on question {str(row['question'])[:60]!r} stands where {number} should."
        )
    for name in ("yes_is_better", "fits"):
        if not isinstance(row[name], bool):
            raise ChecklistError(f"{name} of question {number} is neither true nor false.")
    earlier = row["repeats"]
    if earlier is not None and not (type(earlier) is int and 1 <= earlier < number):
        raise ChecklistError(
            f"repeats of question {number} is neither null nor the number of an earlier question."
        )
    return Verdict(row["yes_is_better"], row["fits"], earlier)
