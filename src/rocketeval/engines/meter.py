"""Adds up what one judgment or one written text costs while it is being made."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from rocketeval.engines.untrusted import count_or_zero, mapping_or_empty
from rocketeval.records import Usage


class Meter:
    """Counts every request sent, also those that failed, and the tokens the server reports."""

    def __init__(self) -> None:
        self._requests = 0
        self._prompt_tokens = 0
        self._cached_tokens = 0
        self._completion_tokens = 0
        self._started = 0.0
        self._ended = 0.0

    def sent(self) -> None:
        """Count one request that goes out now."""
        if not self._requests:
            self._started = time.monotonic()
        self._requests += 1

    def answered(self, reply: Mapping[str, Any], *, cached_told: bool = True) -> None:
        """Count the tokens that a reply says it used.

        `cached_told` is False where the server does not count the cached tokens of every prompt.
        """
        self._ended = time.monotonic()
        told = mapping_or_empty(reply.get("usage"))
        self._prompt_tokens += count_or_zero(told.get("prompt_tokens"))
        self._completion_tokens += count_or_zero(told.get("completion_tokens"))
        if cached_told:
            details = mapping_or_empty(told.get("prompt_tokens_details"))
            self._cached_tokens += count_or_zero(details.get("cached_tokens"))

    @property
    def usage(self) -> Usage:
        """What was spent so far."""
        return Usage(
            self._requests,
            self._prompt_tokens,
            self._cached_tokens,
            self._completion_tokens,
            max(0.0, self._ended - self._started),
        )
