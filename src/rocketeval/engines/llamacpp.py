"""The `llamacpp` engine: a judge from one GGUF file, without a GPU and without a server.

xllamacpp's own server is started on a free loopback port and used over HTTP like any other, so
every probability takes the path that is tested against real servers. While the file loads,
llama.cpp holds the GIL, so an event loop in this process is blocked for that time.
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
from rocketeval.engines.control_tokens import ControlTokens, of_gguf
from rocketeval.engines.likelihood import refused_likelihood
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.server import Server
from rocketeval.engines.tokenizer import file_hash
from rocketeval.errors import ConfigError, EngineRefused

MAGIC = b"GGUF"
SERVED_AS = "judge"
NOT_STARTED = "http://127.0.0.1/v1"
"""Placeholder for the URL of a server that is not started yet."""
NO_KEY = "ROCKETEVAL_NO_KEY"
"""A variable that is never set, so that no key of another server is sent to this one."""


class LlamaCppOptions(Section):
    """Engine-specific options of the `llamacpp` engine."""

    context: Annotated[int, Field(gt=0)] = 8192
    """Maximum tokens per prompt, up to the model's limit."""
    threads: Annotated[int, Field(gt=0)] | None = None
    """CPU threads; chosen by llama.cpp if absent."""
    slots: Annotated[int, Field(gt=0)] = 1
    """Responses graded at once. Each has its own cache, and they share the CPU: one is fastest,
    unless a GPU does the work."""


class LlamaCppEngine(OpenAIEngine):
    """A judge or author in a GGUF file, loaded at first use."""

    def __init__(self, config: EngineConfig, options: LlamaCppOptions) -> None:
        self._gguf = config.local_model
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
        """Return an engine for `config`; the file is checked but not loaded."""
        options = parse_options(config.options, LlamaCppOptions, "The llamacpp engine's options")
        refuse_settings(config, "base_url")
        need_package("llamacpp", "xllamacpp", "pip install 'rocketeval[llamacpp]'")
        _check_gguf(config.local_model)
        return cls(config, options)

    async def identify(self) -> EngineIdentity:
        """Load the model and return everything about it that can change a probability."""
        found = await super().identify()
        if not self._weights:
            self._weights = await asyncio.to_thread(file_hash, self._gguf)
        release = f"xllamacpp {version('xllamacpp')} sha256 {self._weights}"
        # The hash of the weights already implies their precision.
        return replace(
            found, engine="llamacpp", model=self._model, version=release, precision="", measured=""
        )

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Raise EngineRefused: llama.cpp reports tokens it writes, not tokens it reads."""
        raise refused_likelihood("llama.cpp")

    async def aclose(self) -> None:
        """Unload the model and free its memory."""
        await super().aclose()
        self._running = self._server = self._probed = None
        self._forms.clear()

    async def _ask_control_tokens(self) -> ControlTokens:
        return await asyncio.to_thread(of_gguf, self._gguf)

    async def _look(self) -> Server:
        """Start the server if needed, and return what it reports about itself."""
        async with self._starting:
            if self._running is None:
                self._running = await asyncio.to_thread(_start, self._gguf, self._options)
                self.base_url = self._http.base_url = f"{self._running.listening_address}/v1"
        return await super()._look()


def _check_gguf(path: Path) -> None:
    hint = "`model` must be the path of a GGUF file, relative to the config file or absolute."
    try:
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
    except OSError as error:
        raise ConfigError(f"Cannot read the judge {path}: {error.strerror}.", hint=hint) from None
    if magic != MAGIC:
        raise ConfigError(f"{path} is not a GGUF file.", hint=hint)


def _start(gguf: Path, options: LlamaCppOptions) -> Any:
    """Return the running server; it stops when the object is garbage-collected."""
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
    # A checklist needs one prefix per slot; the default keeps up to 8 GB of old prompts.
    params.cache_ram_mib = 0
    # This server has no key: block access from web pages.
    params.ui = False
    params.cors_origins = ""
    params.cors_origins_explicit = True
    params.verbosity = 1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise EngineRefused(
            f"llama.cpp cannot load {gguf.name}: {error}",
            hint="See llama.cpp's own messages above. Usual causes: a damaged file, an "
            "unsupported model, or too little memory for `options.context`.",
        ) from None
