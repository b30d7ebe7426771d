"""One BLAS thread for small matrices."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any


def one_blas_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS uses one thread, where threadpoolctl is there to ask it to.

    At a thousand candidates and fewer, threads cost more in waiting than they save.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[Any] = threadpool_limits(limits=1, user_api="blas")
    return limits
