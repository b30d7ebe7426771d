"""How many requests may be in flight: fewer when the server pushes back, slowly more again."""

from __future__ import annotations

import asyncio
import time


class AdaptiveLimiter:
    """Additive increase, multiplicative decrease, and a shared pause after 429 or 503."""

    def __init__(self, ceiling: int) -> None:
        self.ceiling = ceiling
        self.allowed = float(ceiling)
        self._in_flight = 0
        self._resume_at = 0.0
        self._shrunk_at = -1.0
        self._changed = asyncio.Condition()

    async def __aenter__(self) -> None:
        async with self._changed:
            while self._in_flight >= max(1, int(self.allowed)):
                await self._changed.wait()
            self._in_flight += 1
        pause = self._resume_at - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)

    async def __aexit__(self, *_: object) -> None:
        async with self._changed:
            self._in_flight -= 1
            self._changed.notify()

    def succeeded(self) -> None:
        """Let a little more through after an answer."""
        if self.allowed < self.ceiling:
            self.allowed = min(self.ceiling, self.allowed + 1.0 / self.allowed)

    def pushed_back(self, pause: float) -> None:
        """Halve what is allowed, at most once a second, and hold everything for `pause`."""
        now = time.monotonic()
        self._resume_at = max(self._resume_at, now + pause)
        if now - self._shrunk_at >= 1.0:
            self.allowed = max(1.0, self.allowed / 2)
            self._shrunk_at = now
