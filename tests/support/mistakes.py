"""Mistakes that users make: how to make each, and the words that the message must contain."""

from __future__ import annotations

import asyncio
import atexit
import os
import shutil
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml

from fakes.openai_server import MODEL, FakeOpenAI, serving
from support.in_process import cli
from support.make import write_benchmark, write_jsonl

KEY = "MISTAKES_KEY"
SECRET = "sk-not-to-be-shown"


@dataclass
class Place:
    """The folder of a user who makes a mistake: a benchmark, a config, possibly a server."""

    folder: Path
    config: dict[str, Any]
    server: FakeOpenAI
    undo: ExitStack
    """Callbacks that undo changes afterwards."""

    @property
    def benchmark(self) -> Path:
        """Return the benchmark folder."""
        return self.folder / "benchmark"

    @property
    def run(self) -> Path:
        """Return the run directory."""
        return self.folder / "runs" / "demo"

    def write(self, name: str, content: str | bytes) -> None:
        """Write a benchmark file."""
        path = self.benchmark / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)

    def rows(self, name: str, *rows: Mapping[str, Any]) -> None:
        """Write a benchmark file as JSON lines."""
        write_jsonl(self.benchmark / name, rows)

    def save_config(self) -> None:
        """Write the config."""
        (self.folder / "rocketeval.yaml").write_text(yaml.safe_dump(self.config))

    def judged_over_http(self, **settings: Any) -> None:
        """Let the fake server judge."""
        judge = {"model": MODEL, "base_url": self.server.base_url, "patience": 0}
        self.config["judge"] = {**judge, "api_key_env": KEY, **settings}

    def written_over_http(self, **settings: Any) -> None:
        """Let the fake server write the checklists."""
        engine = {"model": MODEL, "base_url": self.server.base_url, "patience": 0}
        self.config["author"] = {
            "kind": "instance",
            "engine": {**engine, "api_key_env": KEY, **settings},
        }

    def set(self, section: str, **settings: Any) -> None:
        """Change settings in a section of the config."""
        self.config[section] = {**self.config.get(section, {}), **settings}

    def run_once(self) -> None:
        """Run everything before the mistake is made."""
        self.save_config()
        cli(self.folder, "run", "--quiet")

    def finish(self) -> None:
        """Copy a finished run of an unchanged place, which is faster than `run_once`."""
        self.save_config()
        shutil.copytree(_finished(), self.folder / "runs")

    def environment(self, **names: str) -> None:
        """Set environment variables."""
        self.undo.enter_context(patch.dict(os.environ, names))


Make = Callable[[Place], None]


@dataclass(frozen=True)
class Mistake:
    """One mistake and its expected message."""

    title: str
    make: Make
    says: tuple[str, ...]
    """Words that the output must contain."""
    command: tuple[str, ...] = ("run",)
    code: int = 2
    never: tuple[str, ...] = ()
    """Misleading words that the output must not contain."""
    asked: int | None = None
    """Maximum requests to write or judge that the server may see; None for any number."""
    check: Callable[[Place], None] | None = None
    """Check to run afterwards."""
    group: str = field(default="", compare=False)


@cache
def _finished() -> Path:
    """Return the folder of runs of a place without any mistake."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    with placed(folder) as place:
        place.run_once()
    return folder / "runs"


@contextmanager
def placed(folder: Path) -> Iterator[Place]:
    """Yield a place without any mistake."""
    write_benchmark(folder / "benchmark")
    config: dict[str, Any] = {
        "name": "demo",
        "benchmark": {"path": "benchmark"},
        "judge": {"engine": "scripted", "model": "scripted"},
        "ranking": {"bootstrap": 50},
    }
    with served(FakeOpenAI()) as server, ExitStack() as undo:
        undo.enter_context(patch.dict(os.environ, {KEY: SECRET}))
        yield Place(folder, config, server, undo)


@contextmanager
def served(server: FakeOpenAI) -> Iterator[FakeOpenAI]:
    """Serve in a separate thread while this one runs the command line."""
    loop, started, stop = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def serve() -> None:
        async with serving(server):
            started.set()
            await stop.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    assert started.wait(60)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


def told(place: Place, mistake: Mistake) -> str:
    """Make the mistake, run the command, and return its output without variable parts."""
    mistake.make(place)
    if not (place.folder / "rocketeval.yaml").exists() and place.config:
        place.save_config()
    done = cli(place.folder, *mistake.command, code=mistake.code)
    printed = done.stderr if mistake.code not in (0, 3, 7) else done.stdout + done.stderr
    port = place.server.base_url.rpartition(":")[2].removesuffix("/v1")
    return printed.replace(f"{place.folder}/", "").replace(f":{port}", ":8000").strip()
