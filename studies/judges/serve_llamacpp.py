"""Serve a GGUF judge on loopback with llama.cpp, OpenAI-compatible, until SIGTERM or Ctrl-C.

    pip install xllamacpp==2026.10.11549
    python studies/judges/serve_llamacpp.py MODEL.gguf --port 8080

Once the server accepts requests, standard output gets one line: `ready BASE_URL NAME`.
"""

from __future__ import annotations

import argparse
import signal
import socket
import sys
from pathlib import Path
from typing import Any


def start(
    gguf: Path, name: str, port: int, slots: int, context: int, threads: int | None = None
) -> Any:
    """Return the running server; it answers HTTP while the object lives."""
    try:
        import xllamacpp
    except ImportError:
        raise SystemExit(
            "xllamacpp is not installed: pip install xllamacpp==2026.10.11549"
        ) from None

    params = xllamacpp.CommonParams()
    params.model.path = str(gguf)
    params.model_alias = {name}
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_parallel = slots
    params.n_ctx = context * slots
    if threads is not None:
        params.cpuparams.n_threads = threads
    # A checklist needs one prefix per slot; the default keeps up to 8 GB of old prompts.
    params.cache_ram_mib = 0
    # Prompts that share only a chat template do not take each other's slot.
    params.slot_prompt_similarity = 0.5
    # This server has no key, so web pages must not reach it.
    params.ui = False
    params.cors_origins = ""
    params.cors_origins_explicit = True
    params.verbosity = 1
    try:
        return xllamacpp.Server(params)
    except RuntimeError as error:
        raise SystemExit(
            f"llama.cpp could not serve {gguf.name} on port {port}: {error}\n"
            "See its messages above: a damaged file, a port in use or too little memory."
        ) from None


def wait_for_stop_signal() -> None:
    """Return once SIGTERM or SIGINT has arrived, on any thread."""
    received, wakeup = socket.socketpair()
    wakeup.setblocking(False)
    signal.set_wakeup_fd(wakeup.fileno())
    for stop in (signal.SIGTERM, signal.SIGINT):
        signal.signal(stop, lambda _number, _frame: None)
    received.recv(1)


def main() -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gguf", type=Path, help="the GGUF file")
    parser.add_argument("--port", type=int, default=0, help="default: any free port")
    parser.add_argument("--name", help="name the judge is served under (default: the file's stem)")
    parser.add_argument("--slots", type=int, default=1, help="requests at once, each with a cache")
    parser.add_argument("--context", type=int, default=4096, help="tokens per slot")
    parser.add_argument("--threads", type=int, help="processor threads (default: llama.cpp's own)")
    arguments = parser.parse_args()
    if not arguments.gguf.is_file():
        parser.error(f"{arguments.gguf} is not a file; fetch_weights.py gets one.")

    name = arguments.name or arguments.gguf.stem
    server = start(
        arguments.gguf,
        name,
        arguments.port,
        arguments.slots,
        arguments.context,
        arguments.threads,
    )
    sys.stdout.write(f"ready {server.listening_address}/v1 {name}\n")
    sys.stdout.flush()
    wait_for_stop_signal()
    del server
    return 0


if __name__ == "__main__":
    sys.exit(main())
