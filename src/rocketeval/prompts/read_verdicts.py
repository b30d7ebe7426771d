"""Read an author's verdicts on questions, strictly: one for each, in order, or a named mistake."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import orjson

from rocketeval.prompts.unreadable import Unreadable, quoted

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
        raise Unreadable("not JSON", f"it is not JSON ({error}): {quoted(text.strip())}.") from None
    if not isinstance(rows, list):
        raise Unreadable("not a JSON list", "it is not a JSON list of objects.")
    if len(rows) != count:
        raise Unreadable(
            "too few verdicts" if len(rows) < count else "too many verdicts",
            f"there are {len(rows)} verdicts; {count} questions were given.",
        )
    return tuple(_verdict(row, number) for number, row in enumerate(rows, 1))


def _verdict(row: Any, number: int) -> Verdict:
    if not isinstance(row, dict) or set(row) != set(_FIELDS):
        raise Unreadable(
            "a verdict with other fields",
            f"verdict {number} is not an object with exactly {', '.join(_FIELDS)}: "
            f"{quoted(str(row))}.",
        )
    if row["question"] is True or row["question"] != number:
        raise Unreadable(
            "verdicts out of order",
            f"the verdict on question {quoted(str(row['question']))} stands where {number} should.",
        )
    for name in ("yes_is_better", "fits"):
        if not isinstance(row[name], bool):
            raise _wrong_value(f"{name} of question {number} is neither true nor false", row[name])
    earlier = row["repeats"]
    if earlier is not None and not (type(earlier) is int and 1 <= earlier < number):
        raise _wrong_value(
            f"repeats of question {number} is neither null nor the number of an earlier question",
            earlier,
        )
    return Verdict(row["yes_is_better"], row["fits"], earlier)


def _wrong_value(told: str, value: Any) -> Unreadable:
    return Unreadable("a wrong value in a verdict", f"{told}: {quoted(str(value))}.")
