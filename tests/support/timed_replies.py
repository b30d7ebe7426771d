"""An HTTP client whose requests are answered after a given time, without a server.

For tests of waiting, on the clock of `support.virtual_time`: neither sockets nor load matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rocketeval.engines.http import HttpClient
from rocketeval.engines.replies import RetryableError


@dataclass(frozen=True)
class Reply:
    """What a server answers, and after how long."""

    status: int = 200
    seconds: float = 0.05
    body: bytes = b'{"choices": []}'
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class TimedReplies:
    """A client of a server that answers request number n (from 1) with `reply_to(n)`."""

    reply_to: Callable[[int], Reply]
    settings: dict[str, Any]
    sent: list[float] = field(default_factory=list)
    """When each request was sent, on the clock of the loop."""

    def __post_init__(self) -> None:
        self.client = HttpClient("http://x/v1", key=None, **self.settings)
        self.client._once = self._once  # type: ignore[method-assign]

    async def _once(self, *_: object) -> dict[str, Any] | RetryableError:
        self.sent.append(asyncio.get_running_loop().time())
        reply = self.reply_to(len(self.sent))
        await asyncio.sleep(reply.seconds)
        return self.client._understood(reply, reply.body)  # type: ignore[arg-type]
