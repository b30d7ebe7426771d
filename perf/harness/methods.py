"""The methods that perf/engine_ratio.py compares, by their short names."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.bare_http import BareHttp, Labels, chat_batch, chat_item, completions
from harness.child import Child
from harness.ours import Ours
from harness.rows import Row
from harness.server import MAX_MODEL_LEN, VLLMServer, environment
from harness.workload import Workload, make_workload
from rocketeval.config import EngineConfig

IN_PROCESS = ("bare", "ours")
OVER_HTTP = ("http-item", "http-list", "http-batch", "ours-http", "sdk", "autochecklist")
TRANSPORTS = ("chat", "chat_exact", "chat_batch", "completions")
METHODS = (*IN_PROCESS, *OVER_HTTP, *(f"ours-http:{name}" for name in TRANSPORTS))
SDK_THREADS = 16


@dataclass(frozen=True)
class Setup:
    """One judge, one workload, the interpreters."""

    model_folder: Path
    dtype: str
    base_url: str | None
    vllm_python: str
    peers_python: str
    responses: int
    items: int
    prefix_tokens: int
    items_in_flight: int
    """Requests in flight if the bare loop sends one item per request."""
    responses_in_flight: int
    """Requests in flight if it sends one response per request."""
    autochecklist_responses: int

    @property
    def workload(self) -> Workload:
        """Return the workload to grade."""
        return make_workload(self.responses, self.items, self.prefix_tokens)

    def open_server(self) -> VLLMServer:
        """Return the server the user named, or one started here."""
        if self.base_url is not None:
            return VLLMServer(self.base_url)
        return VLLMServer.start(self.vllm_python, self.model_folder, log("server"), self.dtype)


def start_in_process(key: str, setup: Setup) -> Row:
    """Return the bare engine, or RocketEval around it, in the interpreter that has vLLM."""
    settings = {
        "folder": str(setup.model_folder),
        "dtype": setup.dtype,
        "max_model_len": MAX_MODEL_LEN,
        "workload": setup.workload.plain(),
        "size": [setup.responses, setup.items, setup.prefix_tokens],
    }
    bare = key == "bare"
    module = "harness.bare_vllm" if bare else "harness.ours_vllm"
    child = Child(module, setup.vllm_python, settings, log(key), environment())
    title = f"{'bare vLLM' if bare else 'rocketeval'}, in-process"
    return Row(key, title, child, setup.workload.answers, child.reset, bare=bare)


def start_over_http(key: str, setup: Setup, server: VLLMServer) -> Row:
    """Return a method that uses the server."""
    name, _, transport = key.partition(":")
    if name in ("http-item", "http-list", "http-batch"):
        return _bare(key, setup, server)
    if name == "ours-http":
        return _ours(key, transport, setup, server)
    return _sdk(key, setup, server) if name == "sdk" else _autochecklist(key, setup, server)


def _bare(key: str, setup: Setup, server: VLLMServer) -> Row:
    plain = setup.workload.plain()
    labels = Labels.exact(server, plain["yes"], plain["no"])
    form, title = {
        "http-item": (chat_item(), "chat, one item per request"),
        "http-list": (completions(*server.chat_template_ends()), "completions, one response"),
        "http-batch": (chat_batch(), "chat batch, one response"),
    }[key]
    in_flight = setup.responses_in_flight if form.several else setup.items_in_flight
    method = BareHttp(server, plain["prompts"], form, labels, in_flight)
    title = f"bare HTTP, {title}"
    return Row(key, title, method, setup.workload.answers, server.reset_prefix_cache, bare=True)


def _ours(key: str, transport: str, setup: Setup, server: VLLMServer) -> Row:
    config = EngineConfig.model_validate(
        {"model": server.model, "base_url": server.base_url}
        | ({"transport": transport} if transport else {})
    )
    method = Ours(config, setup.workload)
    title = f"rocketeval, HTTP, {transport or f'auto ({method.identity.endpoint})'}"
    answers = setup.workload.answers
    # The top-20 list of plain chat may lack a label.
    exact = not method.identity.logprobs.startswith("top")
    return Row(key, title, method, answers, server.reset_prefix_cache, exact=exact)


def _sdk(key: str, setup: Setup, server: VLLMServer) -> Row:
    settings = _peer_settings(server, setup.workload.plain()) | {"threads": SDK_THREADS}
    child = Child("harness.openai_sdk", setup.peers_python, settings, log(key))
    title = f"openai SDK {child.facts['version']}, {SDK_THREADS} threads"
    answers = setup.workload.answers
    return Row(key, title, child, answers, server.reset_prefix_cache, exact=False)


def _autochecklist(key: str, setup: Setup, server: VLLMServer) -> Row:
    few = setup.workload.plain()["responses"][: setup.autochecklist_responses]
    settings = _peer_settings(server, {"responses": few})
    child = Child("harness.autochecklist_preset", setup.peers_python, settings, log(key))
    title = f"AutoChecklist {child.facts['version']}, rocketeval preset"
    answers = sum(len(row["items"]) for row in few)
    return Row(key, title, child, answers, server.reset_prefix_cache, exact=False)


def _peer_settings(server: VLLMServer, workload: dict[str, Any]) -> dict[str, Any]:
    return {"base_url": server.base_url, "model": server.model, "workload": workload}


def log(name: str) -> Path:
    """Return the path of a child's log."""
    folder = Path(tempfile.gettempdir()) / "rocketeval-perf"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.log"
