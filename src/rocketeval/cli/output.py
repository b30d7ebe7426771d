"""How a verb hands out what it found: for people, for programs, or not at all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from pathlib import PurePath
from typing import Any

import click

from rocketeval.cli.help import OUTPUT, option
from rocketeval.errors import RocketEvalError

Verb = Callable[..., Any]
JSON = "--json"


@dataclass(frozen=True, slots=True)
class Output:
    """What the command line asked to see."""

    quiet: bool = False
    """Print nothing but errors."""
    as_json: bool = False
    """Print one JSON document, and nothing else, to stdout."""

    @property
    def silent(self) -> bool:
        """Whether words for people have no place on stdout."""
        return self.quiet or self.as_json

    def give(self, found: Any, show: Callable[[], None]) -> None:
        """Print `found` as JSON, or `show` it to a person, or do neither."""
        if self.as_json:
            click.echo(as_json(found))
        elif not self.quiet:
            show()


def with_output(verb: Verb) -> Verb:
    """Give the verb `--quiet` and `--json`, as `output`."""

    @wraps(verb)
    def command(*args: Any, quiet: bool, as_json: bool, **own: Any) -> Any:
        return verb(*args, output=Output(quiet, as_json), **own)

    quietly = option(
        "-q", "--quiet", is_flag=True, section=OUTPUT, help="Print nothing but errors."
    )
    json = option(
        JSON, "as_json", is_flag=True, section=OUTPUT, help="Print one JSON document instead."
    )
    return quietly(json(command))


def as_json(found: Any) -> bytes:
    """Return a document for programs: what is no number (NaN, infinity) is null."""
    import orjson

    from rocketeval.store.codec import encode

    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(encode(found), default=_plain, option=options)


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a command line, perhaps a wrong one, asks for JSON."""
    options = list(arguments)
    return JSON in (options[: options.index("--")] if "--" in options else options)


def error_as_json(message: str, hint: str, exit_code: int) -> bytes:
    """Return the document that stands in the place of what was asked for."""
    told = {"message": _clean(message), "hint": _clean(hint) or None, "exit_code": exit_code}
    return as_json({"error": told})


def _plain(value: Any) -> Any:
    if isinstance(value, PurePath):
        return _clean(str(value))
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, RocketEvalError):
        return value.message
    if isinstance(value, set | frozenset):
        return sorted(value)
    if hasattr(value, "items"):
        return dict(value.items())
    raise TypeError(f"{type(value).__name__} has no place in JSON")


def _clean(text: str) -> str:
    # A file name that is no UTF-8 must not spoil the document.
    return text.encode("utf-8", "replace").decode("utf-8")
