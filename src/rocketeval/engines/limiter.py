"""How many requests may be in flight: fewer when the server pushes back, slowly more again."""

from __future__ import annotations

import asyncio
import time
from collections import deque

SHRINK_SECONDS = 1.0
"""One burst of push-back halves only once."""


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a shared pause after push-back.

    Whoever just gave a place back may take it again before those who wait: the next item of a
    response goes out while its prefix is still in the server's cache.
    """

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.allowed = float(ceiling)
        self.in_flight = 0
        self._resume_at = 0.0
        self._shrunk_at = -SHRINK_SECONDS
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        try:
            while not self._may_start():
                await self._wait()
        except BaseException:
            # The place this waiter was woken for must not be lost with it.
            self._wake()
            raise
        self.in_flight += 1

    async def __aexit__(self, *_: object) -> None:
        self.in_flight -= 1
        self._wake()

    def succeeded(self) -> None:
        """Let a little more through after an answer."""
        if self.allowed < self.ceiling:
            self.allowed = min(self.ceiling, self.allowed + 1.0 / self.allowed)
            self._wake()

    def pushed_back(self, pause: float) -> None:
        """Halve what is allowed, at most once a second, and start nothing for `pause` seconds."""
        now = time.monotonic()
        self._resume_at = max(self._resume_at, now + pause)
        if now - self._shrunk_at >= SHRINK_SECONDS:
            self.allowed = max(1.0, self.allowed / 2)
            self._shrunk_at = now

    def _may_start(self) -> bool:
        return self.in_flight < int(self.allowed) and time.monotonic() >= self._resume_at

    async def _wait(self) -> None:
        pause = self._resume_at - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        await turn

    def _wake(self) -> None:
        free = int(self.allowed) - self.in_flight
        while self._waiting and free > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                free -= 1
