"""A judge made of rules: a server with log-probabilities that looks for words.

It answers yes if the words of the question after "mention" are in the response, or if the response
thanks. So the walk needs no model, and its outcome is known.
"""

from __future__ import annotations

import json
import math
import re
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "word-judge"
_RESPONSE = re.compile(r"<<<response>>>\n(.*?)\n<<<end of response>>>", re.DOTALL)


def p_yes(prompt: str) -> float:
    """Return the probability of yes for a grading prompt."""
    found = _RESPONSE.search(prompt)
    response = (found[1] if found else prompt).lower()
    asked = prompt[found.end() :] if found else prompt
    if mention := re.search(r"mention (.+?)\?", asked):
        return 0.95 if mention[1].lower() in response else 0.04
    if "rude" in asked:
        return 0.03
    return 0.9 if "thanks" in response else 0.3


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: WordServer

    def do_GET(self) -> None:
        self.server.count += 1
        if self.path.endswith("/models"):
            self._send({"object": "list", "data": [{"id": MODEL}]})
        else:
            self._send({"error": {"message": "no such path"}}, 404)

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.count += 1
        if not self.path.endswith("/chat/completions"):
            self._send({"error": {"message": "no such path"}}, 404)
            return
        yes = p_yes(body["messages"][-1]["content"])
        rows = [
            {"token": token, "logprob": math.log(p)}
            for token, p in sorted(
                {"Yes": 0.98 * yes, "No": 0.98 * (1 - yes), "Maybe": 0.02}.items(),
                key=lambda pair: -pair[1],
            )
        ]
        logprobs = {"content": [{**rows[0], "top_logprobs": rows}]}
        message = {"role": "assistant", "content": rows[0]["token"]}
        choice = {"index": 0, "finish_reason": "length", "message": message, "logprobs": logprobs}
        usage = {"prompt_tokens": 100, "completion_tokens": 1}
        self._send({"object": "chat.completion", "choices": [choice], "usage": usage})

    def _send(self, body: Any, status: int = 200) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Print nothing."""


class WordServer(ThreadingHTTPServer):
    """The server, with the number of requests it received."""

    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 1024
    count = 0

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing about a client that closed its connection, as after its time limit."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def base_url(self) -> str:
        """The URL of the judge."""
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def serving(port: int = 0) -> Iterator[WordServer]:
    """Serve on loopback, by default on a free port."""
    server = WordServer(("127.0.0.1", port), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


if __name__ == "__main__":
    with serving(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as running:
        print(running.base_url, flush=True)
        threading.Event().wait()
