"""Runs code checks in a process of their own, with limits on time and memory.

The library's names are the only ones that data may use. Python functions of the user have names in
the config: `functions: {polite: my_package.checks:polite}`.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import queue
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from importlib.machinery import ModuleSpec
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from threading import Lock, Thread
from typing import Any

from rocketeval.checks.library import LIBRARY, check_arguments, needs_reference
from rocketeval.checks.worker import read_frame, write_frame
from rocketeval.errors import ConfigError
from rocketeval.hashing import content_hash
from rocketeval.items import CheckCall
from rocketeval.records import Answer, PendingCheck, Status
from rocketeval.registry import nearest

ENTRY_POINTS = "rocketeval.checks"
START_SECONDS = 60.0
"""Time for the process to start and import the user's functions."""
EXAMINE_SECONDS = 3.0
"""Time to read a pattern or schema before a run."""
INSTALL = "pip install 'rocketeval[checks]'"
_START = """import sys
sys.path += sys.argv[1:]
from rocketeval.checks.worker import main
main()
"""
"""The program of the process. It runs with `-P`, because the current folder may hold anything, such
as a json.py; the folders of this package and of the user's functions come last."""


@dataclass(frozen=True, slots=True)
class CheckSettings:
    """The user's functions, and the limits of one check."""

    functions: Mapping[str, str] = field(default_factory=dict)
    """`module:function`, or the name of an entry point, by the name that items use."""
    seconds: float = 2.0
    """Time limit of one check."""
    megabytes: int = 1024
    """Memory limit of the process that runs checks."""

    def bind(self, call: CheckCall) -> CheckCall:
        """Return a call of a known function with valid arguments; raise ValueError otherwise.

        It gets the identity of its code, so that a changed function checks again: for a function of
        the config a hash of its file, for one of the library its version.
        """
        if call.fn in self.functions:
            return replace(call, source=_source_of(call.fn, self.functions[call.fn]))
        if call.fn not in LIBRARY:
            raise ValueError(
                f"there is no check {call.fn!r}. {nearest(call.fn, [*LIBRARY, *self.functions])} "
                "Your own Python function needs a name in the config: method.options.functions."
            )
        check_arguments(call.fn, call.args)
        package = LIBRARY[call.fn].package
        if package and find_spec(package) is None:
            raise ValueError(
                f"the check {call.fn!r} needs the package {package}, which is not installed: "
                f"{INSTALL}"
            )
        _examine(call.fn, json.dumps(call.args, sort_keys=True))
        return replace(call, source=f"library {LIBRARY[call.fn].version}")

    def reads_reference(self, call: CheckCall) -> bool:
        """Return whether the result depends on the reference; for the user's functions it may."""
        return call.fn in self.functions or needs_reference(call.fn, call.args)

    def targets(self) -> dict[str, str]:
        """Return the functions as `module:function`, with entry points resolved."""
        return {name: _target(name, target) for name, target in self.functions.items()}

    def folders(self) -> list[str]:
        """Return the folders from which the process imports this package and the functions."""
        modules = [target.partition(":")[0] for target in self.targets().values()]
        found = [_specs(module.partition(".")[0])[:1] for module in modules]
        own = Path(__file__).parents[2]
        return list(
            dict.fromkeys(map(str, [own, *(_folder(spec) for each in found for spec in each)]))
        )


def _target(name: str, target: str) -> str:
    if ":" in target:
        return target
    found = {each.name: each.value for each in entry_points(group=ENTRY_POINTS)}
    if target not in found:
        raise ConfigError(
            f"method.options.functions.{name}: {target!r} is neither `module:function` nor an "
            f"entry point of the group {ENTRY_POINTS}.",
            hint=nearest(target, list(found))
            if found
            else "No package declares such entry points.",
        )
    return found[target]


def _source_of(name: str, given: str) -> str:
    """Return the identity of a function: its import path and a hash of its module's file."""
    target = _target(name, given)
    module = target.partition(":")[0]
    specs = _specs(module)
    origin = specs[-1].origin if specs else None
    if not origin or not Path(origin).is_file():
        raise ConfigError(
            f"method.options.functions.{name}: the module {module!r} cannot be found.",
            hint="Install it, or add its folder to PYTHONPATH.",
        )
    return f"{target} {content_hash('code', Path(origin).read_bytes().hex()).hex()}"


def _specs(module: str) -> list[ModuleSpec]:
    """Return the specs of a module and its packages, outermost first; empty if one is missing.

    Nothing is imported: a package of the user may raise anything.
    """
    found: list[ModuleSpec] = []
    parts = module.split(".")
    for count, part in enumerate(parts, 1):
        inside = found[-1].submodule_search_locations if found else None
        if not part or (found and inside is None):
            return []
        name = ".".join(parts[:count])
        searched = (finder.find_spec(name, inside) for finder in sys.meta_path)
        spec = next((each for each in searched if each is not None), None)
        if spec is None:
            return []
        found.append(spec)
    return found


def _folder(spec: ModuleSpec) -> Path:
    """Return the folder from which a top-level module is imported."""
    inside = list(spec.submodule_search_locations or ())
    return Path(inside[0] if inside else spec.origin or "").absolute().parent


class CheckRunner:
    """Runs checks one after the other; a process that hangs is replaced.

    >>> runner = CheckRunner(CheckSettings())
    >>> call = PendingCheck(CheckCall("contains", {"text": "Paris"}), "It is Paris.")
    >>> runner.check(call).p_yes
    1.0
    >>> runner.close()
    """

    def __init__(self, settings: CheckSettings) -> None:
        self.settings = settings
        self._lock = Lock()
        self._closed = False
        self._loaded: set[str] = set()
        self._process: subprocess.Popen[bytes] | None = None
        self._replies: queue.SimpleQueue[Any] = queue.SimpleQueue()

    async def run(self, checks: Mapping[int, PendingCheck]) -> dict[int, Answer]:
        """Return the answer to each check of a response, by its position."""
        return {place: await asyncio.to_thread(self.check, one) for place, one in checks.items()}

    def check(self, pending: PendingCheck) -> Answer:
        """Return the answer to one check: 1 or 0, or a named failure.

        A check that exceeded a limit has the status `error`, so that the next run tries it again.
        """
        with self._lock:
            reply = self._ask(pending.call, pending.response, pending.reference)
        if "result" in reply:
            p_yes = float(reply["result"])
            return Answer(Status.OK, p_yes, p_yes, p_yes, 1.0)
        limit = bool(reply.get("limit"))
        return Answer(Status.ERROR if limit else Status.CHECK_FAILED, text=reply["problem"])

    def problem(self, call: CheckCall) -> str | None:
        """Return what is wrong with a pattern or schema of a library check; None if nothing is."""
        with self._lock:
            reply = self._ask(call, None, None)
        if "result" in reply:
            return None
        return f"the check {call.fn!r} cannot be used: {reply['problem']}"

    def close(self) -> None:
        """End the process at once, even during a check; checks that wait have no result."""
        self._closed = True
        process = self._process
        if process is not None:
            # The lock is held while a check runs, but the check ends together with its process.
            process.kill()
        with self._lock:
            self._stop()

    def _ask(self, call: CheckCall, response: str | None, reference: str | None) -> dict[str, Any]:
        """Return the reply to a check, or without a response to its preparation."""
        if not self._closed and (self._process is None or self._process.poll() is not None):
            self._start()
        if self._closed:
            return {"problem": "the run was stopped", "limit": True}
        package = LIBRARY[call.fn].package if call.fn in LIBRARY else ""
        if package and package not in self._loaded:
            # Importing is no part of a check's time.
            loaded = self._exchange({"package": package}, START_SECONDS)
            if "result" not in loaded:
                return loaded
            self._loaded.add(package)
        asked = {
            "fn": call.fn,
            "args": dict(call.args),
            "response": response,
            "reference": reference,
        }
        return self._exchange(asked, self.settings.seconds)

    def _exchange(self, asked: Mapping[str, object], seconds: float) -> dict[str, Any]:
        """Send a frame to the process and return its reply, or why there is none."""
        assert self._process is not None
        assert self._process.stdin is not None
        try:
            write_frame(self._process.stdin, asked)
            reply = self._replies.get(timeout=seconds)
        except queue.Empty:
            self._stop()
            return {"problem": f"it took longer than {seconds:g} s", "limit": True}
        except OSError:
            reply = None
        if reply is None:
            self._stop()
            return {"problem": "its process ended: too much memory, or a crash", "limit": True}
        found: dict[str, Any] = reply
        return found

    def _start(self) -> None:
        self._stop()
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", _START, *self.settings.folders()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._process = process
        self._loaded = set()
        if self._closed:
            process.kill()
        self._replies = queue.SimpleQueue()
        Thread(target=_listen, args=(process, self._replies), daemon=True).start()
        assert process.stdin is not None
        with suppress(OSError):
            settings = {
                "functions": self.settings.targets(),
                "megabytes": self.settings.megabytes,
            }
            write_frame(process.stdin, settings)
        try:
            ready = self._replies.get(timeout=START_SECONDS)
        except queue.Empty:
            ready = None
        if ready is None or not ready["ready"]:
            self._stop()
            if self._closed:
                return
            why = "it did not start" if ready is None else ready["problem"]
            raise ConfigError(
                f"The process that runs checks failed: {why}.",
                hint="Check method.options.functions and method.options.check_megabytes.",
            )

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()


@cache
def _examiner() -> CheckRunner:
    """Return the runner that examines checks before a run; it ends with this process."""
    runner = CheckRunner(CheckSettings(seconds=EXAMINE_SECONDS))
    atexit.register(runner.close)
    return runner


@lru_cache(maxsize=10_000)
def _examine(fn: str, args: str) -> None:
    """Raise ValueError if a library check, whose arguments are JSON, has a wrong pattern or schema.

    Errors are not remembered: a busy machine may have been too slow.
    """
    if LIBRARY[fn].prepare is not None:
        problem = _examiner().problem(CheckCall(fn, json.loads(args)))
        if problem is not None:
            raise ValueError(problem)


def passes_all(call: CheckCall, texts: Sequence[str]) -> bool:
    """Return whether a library check passes for all texts; False if it takes too long."""
    pending = (PendingCheck(call, text) for text in texts)
    return all(_examiner().check(each).p_yes == 1.0 for each in pending)


def _listen(process: subprocess.Popen[bytes], replies: queue.SimpleQueue[Any]) -> None:
    """Pass the process's frames on; None when it ends."""
    assert process.stdout is not None
    with suppress(OSError, ValueError):
        while (frame := read_frame(process.stdout)) is not None:
            replies.put(frame)
    replies.put(None)
