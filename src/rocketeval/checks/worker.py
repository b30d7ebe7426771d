"""The process that runs checks, with a limit on its memory; its parent limits the time.

It reads frames of JSON from stdin and writes one frame per check to stdout.
`rocketeval.checks.runner` starts it without the current folder on the import path.
"""

from __future__ import annotations

import importlib
import json
import os
import struct
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import IO, Any

from rocketeval.checks.library import NotCheckable, prepare, run_library

HEADER = struct.Struct(">I")
MOST_REASON = 300
"""Longest reason, in characters."""


def write_frame(stream: IO[bytes], content: object) -> None:
    """Write one JSON value with its length."""
    packed = json.dumps(content).encode()
    stream.write(HEADER.pack(len(packed)) + packed)
    stream.flush()


def read_frame(stream: IO[bytes]) -> Any:
    """Return the next JSON value; None at the end of the stream."""
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        return None
    (size,) = HEADER.unpack(head)
    packed = stream.read(size)
    return None if len(packed) < size else json.loads(packed)


def load_function(target: str) -> Callable[..., object]:
    """Import the function that the config names as `module:function`."""
    module, _, name = target.partition(":")
    found: object = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if not callable(found):
        raise TypeError(f"{target} is not a function")
    return found


def main() -> None:
    """Answer checks until stdin ends."""
    source, sink = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    # A user's function may print: that must not mix with the frames.
    os.dup2(2, 1)
    settings = read_frame(source)
    _limit_memory(int(settings["megabytes"]))
    functions: dict[str, Callable[..., object]] = {}
    problem = ""
    for name, target in settings["functions"].items():
        try:
            functions[name] = load_function(target)
        except BaseException as error:  # noqa: BLE001 - a user's module may raise anything
            problem = f"cannot import {target}: {type(error).__name__}: {error}"
            break
    write_frame(sink, {"ready": not problem, "problem": problem[:MOST_REASON]})
    while (asked := read_frame(source)) is not None:
        write_frame(sink, _answer(asked, functions))


def _answer(asked: Mapping[str, Any], functions: Mapping[str, Callable[..., object]]) -> object:
    try:
        return {"result": _run(asked, functions)}
    except NotCheckable as error:
        return {"problem": str(error)[:MOST_REASON]}
    except MemoryError:
        return {"problem": "it needs more memory than allowed", "limit": True}
    except RecursionError:
        return {"problem": "it is nested too deeply"}
    except Exception as error:  # noqa: BLE001 - a user's function may raise anything
        return {"problem": f"{type(error).__name__}: {error}"[:MOST_REASON]}


def _run(asked: Mapping[str, Any], functions: Mapping[str, Callable[..., object]]) -> bool:
    if "package" in asked:
        importlib.import_module(asked["package"])
        return True
    name, args = asked["fn"], asked["args"]
    if asked["response"] is None:
        try:
            prepare(name, args)
        except ValueError as error:
            raise NotCheckable(str(error)) from None
        return True
    if name not in functions:
        return run_library(name, args, asked["response"], asked["reference"])
    result = functions[name](asked["response"], asked["reference"], **args)
    if not isinstance(result, bool):
        raise TypeError(f"the function returned {type(result).__name__}, not True or False")
    return result


def _limit_memory(megabytes: int) -> None:
    """Limit the address space of this process, where the system can."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        size = megabytes << 20
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
