"""The library of code checks: each reads a response, and decides true or false.

The functions are plain computation without `eval`, files, network or shell. They run in the limited
process of `rocketeval.checks.worker`, because a pattern or a response may be hostile. Every check
also accepts `negate: true`, which turns its result around.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rocketeval.items import MOST_NUMBER
from rocketeval.registry import nearest


@dataclass(frozen=True, slots=True)
class CheckArgument:
    """One argument of a check."""

    kind: str
    """`text`, `texts`, `number`, `count`, `flag` or `object`."""
    required: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class CheckFunction:
    """A check of the library."""

    run: Callable[..., bool]
    """Takes the response, the reference and the arguments."""
    about: str
    """One line for users."""
    args: Mapping[str, CheckArgument]
    needs_one_of: tuple[str, ...] = ()
    """At least one of these arguments must be given."""
    needs_reference: bool = False
    """Whether it reads the reference, so that a query without one cannot be checked."""
    instead_of_reference: str = ""
    """An argument that makes the reference needless."""
    version: int = 1
    """Part of a judgment's identity; raise it with every change of results."""
    package: str = ""
    """A package of the extra `checks` that it needs."""
    prepare: Callable[..., None] | None = None
    """Takes the arguments, and raises ValueError if they are wrong in a way that takes effort to
    find. Runs in the limited process, too."""


class NotCheckable(Exception):
    """A response that cannot be checked, with the reason."""


_NUMBER = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:[eE][-+]?\d{1,3})?|[-+]?\.\d+")
_FENCED = re.compile(r"```(\w*)[^\n]*\n(.*?)```", re.DOTALL)
_FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL}
MOST_PATTERN = 2000
"""Longest pattern."""
MOST_DIGITS = 400
"""Longest number that is read."""


def _regex(response: str, reference: str | None, pattern: str, flags: str = "") -> bool:
    return _compiled(pattern, flags).search(response) is not None


def _compiled(pattern: str, flags: str = "") -> re.Pattern[str]:
    return re.compile(pattern, sum(_FLAGS[flag] for flag in dict.fromkeys(flags)))


def _check_pattern(pattern: str, flags: str = "") -> None:
    try:
        _compiled(pattern, flags)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern of a regex is invalid: {error}.") from None


def _folded(ignore_case: bool, *texts: str) -> list[str]:
    return [text.casefold() if ignore_case else text for text in texts]


def _contains(response: str, reference: str | None, text: str, ignore_case: bool = False) -> bool:
    whole, part = _folded(ignore_case, response, text)
    return part in whole


def _equals(response: str, reference: str | None, text: str, ignore_case: bool = False) -> bool:
    one, other = _folded(ignore_case, response.strip(), text.strip())
    return one == other


def _contains_all(
    response: str, reference: str | None, texts: Sequence[str], ignore_case: bool = False
) -> bool:
    whole, *parts = _folded(ignore_case, response, *texts)
    return all(part in whole for part in parts)


def _contains_any(
    response: str, reference: str | None, texts: Sequence[str], ignore_case: bool = False
) -> bool:
    whole, *parts = _folded(ignore_case, response, *texts)
    return any(part in whole for part in parts)


def _starts_with(
    response: str, reference: str | None, text: str, ignore_case: bool = False
) -> bool:
    whole, part = _folded(ignore_case, response.lstrip(), text.lstrip())
    return whole.startswith(part)


def _ends_with(response: str, reference: str | None, text: str, ignore_case: bool = False) -> bool:
    whole, part = _folded(ignore_case, response.rstrip(), text.rstrip())
    return whole.endswith(part)


def _between(size: int, least: float | None, most: float | None) -> bool:
    return (least is None or size >= least) and (most is None or size <= most)


def _words(
    response: str, reference: str | None, min: float | None = None, max: float | None = None
) -> bool:
    return _between(len(response.split()), min, max)


def _characters(
    response: str, reference: str | None, min: float | None = None, max: float | None = None
) -> bool:
    return _between(len(response), min, max)


def _json_in(response: str) -> str:
    """Return the JSON text of a response: its only fenced block if it has one, else all of it."""
    blocks = _FENCED.findall(response)
    return blocks[0][1] if len(blocks) == 1 else response


def _parsed_json(response: str) -> tuple[bool, Any]:
    def refuse(name: str) -> Any:
        raise ValueError(f"{name} is not JSON")

    try:
        return True, json.loads(_json_in(response), parse_constant=refuse)
    except RecursionError:
        raise NotCheckable("its JSON is nested too deeply to parse") from None
    except ValueError:
        return False, None


def _json(response: str, reference: str | None) -> bool:
    return _parsed_json(response)[0]


def _json_schema(response: str, reference: str | None, schema: Mapping[str, Any]) -> bool:
    from jsonschema import validators
    from referencing import Registry

    valid, found = _parsed_json(response)
    kind = validators.validator_for(schema)
    # An empty registry: a schema from a benchmark must not make this process fetch a URL.
    return valid and bool(kind(schema, registry=Registry()).is_valid(found))


def _check_schema(schema: Mapping[str, Any]) -> None:
    from jsonschema import exceptions, validators

    kind = validators.validator_for(schema)
    try:
        kind.check_schema(schema, format_checker=kind.FORMAT_CHECKER)
    except exceptions.SchemaError as error:
        place = error.json_path.removeprefix("$.")
        at = f" at {place}" if place != "$" else ""
        raise ValueError(f"the schema is not a JSON schema{at}: {error.message[:200]}") from None


def _language(response: str, reference: str | None, code: str) -> bool:
    from py3langid import langid

    if not response.strip():
        return False
    found: str = langid.classify(response[:20_000])[0]
    return found == code.casefold()


def _numbers(text: str) -> list[float]:
    found = (match[0].replace(",", "") for match in _NUMBER.finditer(text))
    return [float(number) for number in found if len(number) <= MOST_DIGITS]


def _number(
    response: str,
    reference: str | None,
    value: float | None = None,
    tolerance: float = 0.0,
    relative: float = 0.0,
    which: str = "last",
) -> bool:
    target = value
    if target is None:
        numbers = _numbers(reference or "")
        if not numbers:
            raise NotCheckable("its reference has no number")
        target = numbers[-1]
    found = _numbers(response)
    tried = {"first": found[:1], "last": found[-1:], "any": found}[which]
    return any(
        math.isclose(one, target, rel_tol=max(relative, 1e-12), abs_tol=tolerance) for one in tried
    )


def _equals_reference(
    response: str, reference: str | None, ignore_case: bool = False, ignore_space: bool = True
) -> bool:
    if reference is None:
        raise NotCheckable("its query has no reference")
    one, other = _folded(ignore_case, response, reference)
    if ignore_space:
        one, other = " ".join(one.split()), " ".join(other.split())
    return one == other


def _code_parses(response: str, reference: str | None) -> bool:
    blocks = [code for name, code in _FENCED.findall(response) if name.lower() in _PYTHON]
    for code in blocks or [response]:
        try:
            ast.parse(code)
        except (RecursionError, MemoryError):
            raise NotCheckable("its code is nested too deeply to parse") from None
        except (SyntaxError, ValueError):
            return False
    return True


_PYTHON = ("", "py", "python", "python3")
_TEXT = CheckArgument("text", required=True)
_TEXTS = CheckArgument("texts", required=True)
_CASE = {"ignore_case": CheckArgument("flag")}
_SIZE = {"min": CheckArgument("count"), "max": CheckArgument("count")}

LIBRARY: Mapping[str, CheckFunction] = {
    "regex": CheckFunction(
        _regex,
        "the pattern (Python syntax) is found in the response",
        {"pattern": _TEXT, "flags": CheckArgument("text", about="some of i, m and s")},
        prepare=_check_pattern,
    ),
    "contains": CheckFunction(
        _contains, "the response contains the text", {"text": _TEXT, **_CASE}
    ),
    "equals": CheckFunction(
        _equals, "the response is the text, but for space around it", {"text": _TEXT, **_CASE}
    ),
    "contains_all": CheckFunction(
        _contains_all, "the response contains every text", {"texts": _TEXTS, **_CASE}
    ),
    "contains_any": CheckFunction(
        _contains_any, "the response contains one of the texts", {"texts": _TEXTS, **_CASE}
    ),
    "starts_with": CheckFunction(
        _starts_with, "the response starts with the text", {"text": _TEXT, **_CASE}
    ),
    "ends_with": CheckFunction(
        _ends_with, "the response ends with the text", {"text": _TEXT, **_CASE}
    ),
    "words": CheckFunction(
        _words, "the number of words is between min and max", _SIZE, ("min", "max")
    ),
    "characters": CheckFunction(
        _characters, "the number of characters is between min and max", _SIZE, ("min", "max")
    ),
    "json": CheckFunction(_json, "the response, or its only fenced block, is valid JSON", {}),
    "json_schema": CheckFunction(
        _json_schema,
        "the JSON of the response fits the schema",
        {"schema": CheckArgument("object", required=True)},
        package="jsonschema",
        prepare=_check_schema,
    ),
    "language": CheckFunction(
        _language,
        "the response is written in the language, given as a code such as en",
        {"code": _TEXT},
        package="py3langid",
    ),
    "number": CheckFunction(
        _number,
        "a number in the response equals the value (default: the last number of the reference)",
        {
            "value": CheckArgument("number"),
            "tolerance": CheckArgument("number", about="absolute"),
            "relative": CheckArgument("number", about="relative to the value"),
            "which": CheckArgument("text", about="first, last (default) or any"),
        },
        needs_reference=True,
        instead_of_reference="value",
    ),
    "equals_reference": CheckFunction(
        _equals_reference,
        "the response equals the reference",
        {**_CASE, "ignore_space": CheckArgument("flag", about="default: true")},
        needs_reference=True,
    ),
    "code_parses": CheckFunction(
        _code_parses, "the response, or each of its fenced blocks, parses as Python", {}
    ),
}
"""All checks by name."""


def needs_reference(name: str, args: Mapping[str, object]) -> bool:
    """Return whether a check of the library has no result without a reference.

    A function of the user, which may read one, needs none.

    >>> needs_reference("number", {}), needs_reference("number", {"value": 3})
    (True, False)
    """
    function = LIBRARY.get(name)
    if function is None:
        return False
    return function.needs_reference and function.instead_of_reference not in args


NEGATE = "negate"
_CHECKED: Mapping[str, Callable[[object], bool]] = {
    "text": lambda value: isinstance(value, str) and bool(value),
    "texts": lambda value: (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(each, str) and each for each in value)
    ),
    "number": lambda value: (
        isinstance(value, int | float)
        and not isinstance(value, bool)
        and -MOST_NUMBER <= value <= MOST_NUMBER
    ),
    "count": lambda value: (
        isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_NUMBER
    ),
    "flag": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, Mapping),
}
_NAMED = {
    "text": "a text that is not empty",
    "texts": "a list of texts that are not empty",
    "number": "a finite number of at most 1e+18",
    "count": "a whole number from 0 to 1e+18",
    "flag": "true or false",
    "object": "an object",
}


def check_arguments(name: str, args: Mapping[str, object]) -> None:
    """Raise ValueError unless `args` are valid arguments of the library's check `name`.

    A pattern or schema is not read: that may take long, so `prepare` does it elsewhere.
    """
    function = LIBRARY[name]
    valid = {**function.args, NEGATE: CheckArgument("flag")}
    for given, value in args.items():
        if given not in valid:
            hint = nearest(given, list(valid))
            raise ValueError(f"the check {name!r} has no argument {given!r}. {hint}")
        if not _CHECKED[valid[given].kind](value):
            kind = _NAMED[valid[given].kind]
            raise ValueError(f"the argument {given!r} of the check {name!r} must be {kind}.")
    for needed, argument in function.args.items():
        if argument.required and needed not in args:
            raise ValueError(f"the check {name!r} needs the argument {needed!r}.")
    if function.needs_one_of and not any(each in args for each in function.needs_one_of):
        raise ValueError(f"the check {name!r} needs {' or '.join(function.needs_one_of)}.")
    _check_values(name, args)


def _check_values(name: str, args: Mapping[str, object]) -> None:
    """Raise ValueError for values of the right type that mean nothing."""
    if name == "regex":
        flags = str(args.get("flags", ""))
        if not set(flags) <= set(_FLAGS):
            raise ValueError(f"the flags {flags!r} of a regex may only be {', '.join(_FLAGS)}.")
        if len(str(args["pattern"])) > MOST_PATTERN:
            raise ValueError(f"the pattern of a regex has more than {MOST_PATTERN} characters.")
    if name in ("starts_with", "ends_with") and not str(args["text"]).strip():
        raise ValueError(f"`text` of the check {name!r} must not be blank: it would always pass.")
    if name == "number" and args.get("which", "last") not in ("first", "last", "any"):
        raise ValueError("`which` of the check 'number' must be first, last or any.")
    low, high = args.get("min"), args.get("max")
    if isinstance(low, int) and isinstance(high, int) and low > high:
        raise ValueError(f"`min` of the check {name!r} is above its `max`.")


def prepare(name: str, args: Mapping[str, object]) -> None:
    """Raise ValueError if arguments that `check_arguments` accepts are still wrong."""
    function = LIBRARY[name]
    if function.prepare is not None:
        function.prepare(**{key: value for key, value in args.items() if key != NEGATE})


def run_library(
    name: str, args: Mapping[str, object], response: str, reference: str | None
) -> bool:
    """Return the result of a check of the library; raise NotCheckable with a reason."""
    given = {key: value for key, value in args.items() if key != NEGATE}
    return LIBRARY[name].run(response, reference, **given) is not bool(args.get(NEGATE, False))
