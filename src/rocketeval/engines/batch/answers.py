"""A finished batch's answers, found by request: the file stays on disk, the index in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import orjson

from rocketeval.errors import RequestRejected


class Answers:
    """What the output and error files of one batch say, in whatever order they say it."""

    def __init__(self, output: Path, otherwise: str, safe: Callable[[str], str]) -> None:
        self.given: dict[str, tuple[int, int]] = {}
        """Where the row of each answered request stands: offset and length."""
        self._failed: dict[str, str] = {}
        self._output = output
        self._otherwise = otherwise
        """What to say about a request of which neither file says anything."""
        self._safe = safe
        self._index(output, keep=True)

    def add_errors(self, errors: Path) -> None:
        """Take the reasons in an error file."""
        self._index(errors, keep=False)

    def get(self, request: str) -> dict[str, Any]:
        """Return the completion that answers `request`; RequestRejected says why there is none."""
        if request not in self.given:
            raise RequestRejected(self._failed.get(request, self._otherwise))
        offset, length = self.given[request]
        with self._output.open("rb") as stream:
            stream.seek(offset)
            row = orjson.loads(stream.read(length))
        body: dict[str, Any] = row["response"]["body"]
        return body

    def _index(self, path: Path, *, keep: bool) -> None:
        offset = 0
        with path.open("rb") as stream:
            for line in stream:
                row = _row(line)
                if row is not None:
                    request, problem = row["custom_id"], _problem(row)
                    if problem is not None:
                        self._failed[request] = self._safe(problem)
                    elif keep:
                        self.given[request] = (offset, len(line))
                offset += len(line)


def _row(line: bytes) -> dict[str, Any] | None:
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) and isinstance(row.get("custom_id"), str) else None


def _problem(row: Mapping[str, Any]) -> str | None:
    """Return why a row is no answer; None when it is one."""
    error = row.get("error")
    if error:
        return _words(error)
    response = row.get("response")
    if not isinstance(response, dict):
        return "the batch's row for it holds no answer"
    status, body = response.get("status_code", 200), response.get("body")
    if status == 200 and isinstance(body, dict):
        return None
    told = body.get("error") if isinstance(body, dict) else body
    return f"HTTP {status}: {_words(told)}"


def _words(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("message") or error.get("code") or "no reason given"
    return str(error)
