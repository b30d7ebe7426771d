"""Output of a verb: text, one JSON document, or nothing."""

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
    """The output options of a command line."""

    quiet: bool = False
    """Print errors only."""
    as_json: bool = False
    """Print one JSON document to stdout, without any other text."""

    @property
    def silent(self) -> bool:
        """True if no text for people belongs on stdout."""
        return self.quiet or self.as_json

    def give(self, found: Any, show: Callable[[], None]) -> None:
        """Print `found` as JSON with --json, nothing with --quiet, else call `show`."""
        if self.as_json:
            try:
                click.echo(as_json(found))
            except OSError as error:
                raise unwritten(error) from None
        elif not self.quiet:
            show()


def with_output(verb: Verb) -> Verb:
    """Add --quiet and --json, passed to the verb as `output`."""

    @wraps(verb)
    def command(*args: Any, quiet: bool, as_json: bool, **own: Any) -> Any:
        return verb(*args, output=Output(quiet, as_json), **own)

    quietly = option("-q", "--quiet", is_flag=True, section=OUTPUT, help="Print errors only.")
    json = option(
        JSON, "as_json", is_flag=True, section=OUTPUT, help="Print one JSON document instead."
    )
    return quietly(json(command))


def as_json(found: Any) -> bytes:
    """Return a JSON document; NaN and infinity become null."""
    import orjson

    from rocketeval.store.codec import encode

    options = orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY
    return orjson.dumps(encode(found), default=_plain, option=options)


def unwritten(error: OSError) -> OSError:
    """Return the error of writing to stdout, with a name for it."""
    return OSError(error.errno, error.strerror, "standard output")


def asks_for_json(arguments: Sequence[str]) -> bool:
    """Return whether a command line, even an invalid one, asks for JSON."""
    options = list(arguments)
    return JSON in (options[: options.index("--")] if "--" in options else options)


def error_as_json(message: str, hint: str, exit_code: int) -> bytes:
    """Return the JSON document of an error."""
    error = {"message": _clean(message), "hint": _clean(hint) or None, "exit_code": exit_code}
    return as_json({"error": error})


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
    raise TypeError(f"cannot encode {type(value).__name__} as JSON")


def _clean(text: str) -> str:
    # File names need not be valid UTF-8; JSON must be.
    return text.encode("utf-8", "replace").decode("utf-8")
