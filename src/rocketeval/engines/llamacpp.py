"""llama.cpp inside this process: a judge from one GGUF file, without a GPU and without a server.

xllamacpp's own server is started on a free loopback port and asked over HTTP like any other, so
that every probability takes the path that is tested against real servers. While the file loads,
llama.cpp holds the interpreter: an event loop in this process stands still for that long.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from rocketeval.config import EngineConfig, Section, parse_options
from rocketeval.engines.base import EngineIdentity, Likelihood, need_package, refuse_settings
from rocketeval.engines.likelihood import refused_likelihood
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.server import Server
from rocketeval.engines.tokenizer import file_hash
from rocketeval.errors import ConfigError, EngineRefused

MAGIC = b"GGUF"
SERVED_AS = "judge"
NOT_STARTED = "http://127.0.0.1/v1"
"""Stands for the address of a server that is not there yet."""
NO_KEY = "ROCKETEVAL_NO_KEY"
"""No such variable is set: a key for some other server must not be sent to this one."""


class LlamaCppOptions(Section):
    """What the config can say to the llamacpp engine."""

    context: Annotated[int, Field(gt=0)] = 8192
    """Tokens a prompt may have at most, as far as the model allows."""
    threads: Annotated[int, Field(gt=0)] | None = None
    """Processor threads; what llama.cpp chooses when absent."""
    slots: Annotated[int, Field(gt=0)] = 1
    """Responses at once. Each has a cache of its own and they share the processor: one is
    fastest, unless a GPU does the work."""


class LlamaCppEngine(OpenAIEngine):
    """A judge or author in a GGUF file. Loading happens at first use."""

    def __init__(self, config: EngineConfig, options: LlamaCppOptions) -> None:
        self._gguf = Path(config.model).expanduser()
        self._model, self._options = config.model, options
        self._running: Any = None
        self._weights = ""
        self._starting = asyncio.Lock()
        asked = {
            "engine": "openai",
            "model": SERVED_AS,
            "base_url": NOT_STARTED,
            "api_key_env": NO_KEY,
            "concurrency": config.concurrency or options.slots,
            "options": {},
        }
        super().__init__(config.model_copy(update=asked))

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> LlamaCppEngine:
        """Return an engine for `config`, whose file is looked at but not loaded yet."""
        options = parse_options(config.options, LlamaCppOptions, "The llamacpp engine's options")
        refuse_settings(config, "base_url")
        need_package("llamacpp", "xllamacpp", "pip install 'rocketeval[llamacpp]'")
        _check_gguf(Path(config.model).expanduser())
        return cls(config, options)

    async def identify(self) -> EngineIdentity:
        """Load the model; return all about it that can change a probability."""
        found = await super().identify()
        if not self._weights:
            self._weights = await asyncio.to_thread(file_hash, self._gguf)
        told = f"xllamacpp {version('xllamacpp')} sha256 {self._weights}"
        # The hash of the weights says how exactly they are written.
        return replace(
            found, engine="llamacpp", model=self._model, version=told, precision="", measured=""
        )

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Raise EngineRefused: llama.cpp tells the tokens it writes, not those it reads."""
        raise refused_likelihood("llama.cpp")

    async def aclose(self) -> None:
        """Let go of the model and its memory."""
        await super().aclose()
        self._running = self._server = self._probed = None

    async def _look(self) -> Server:
        """Start the server unless it runs; return what it says about itself."""
        async with self._starting:
            if self._running is None:
                self._running = await asyncio.to_thread(_start, self._gguf, self._options)
                self.base_url = self._http.base_url = f"{self._running.listening_address}/v1"
        return await super()._look()


def _check_gguf(path: Path) -> None:
    hint = "`model` must be the path of a GGUF file; relative paths start where you run."
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise ConfigError(f"Cannot read the judge {path}: {error.strerror}.", hint=hint) from None
    if magic != MAGIC:
        raise ConfigError(f"{path} is not a GGUF file.", hint=hint)


def _start(gguf: Path, options: LlamaCppOptions) -> Any:
    """Return the running server; it answers for as long as the object lives."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.model_alias = {SERVED_AS}
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.n_parallel = options.slots
    params.n_ctx = options.context * options.slots
    if options.threads is not None:
        params.cpuparams.n_threads = options.threads
    # One prefix a slot is the cache a checklist needs; the default keeps up to 8 GB of old prompts.
    params.cache_ram_mib = 0
    # There is no key on this server: give web pages no way to it.
    params.ui = False
    params.cors_origins = ""
    params.cors_origins_explicit = True
    params.verbosity = 1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise EngineRefused(
            f"llama.cpp cannot load {gguf.name}: {error}",
            hint="Its own messages are above: a damaged file, a model it does not know, or too "
            "little memory for `options.context`.",
        ) from None
