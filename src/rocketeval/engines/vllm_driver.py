"""One vLLM engine on a thread of its own: token prompts in, finished requests out, in order."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import count
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from typing import Any

from rocketeval.errors import EngineUnavailable, RequestRejected

CLOSE_SECONDS = 60.0
"""How long closing waits for vLLM to let go of its memory."""
_COMPUTING = Lock()
"""vLLM keeps what belongs to one forward pass in globals, so that two engines in one process must
not compute at the same time."""


@dataclass(slots=True, eq=False)
class _Job:
    """Prompts that were handed over together."""

    prompts: Sequence[list[int]]
    params: Any
    done: Future[list[Any]] = field(default_factory=Future)
    outputs: dict[int, Any] = field(default_factory=dict)


class Driver:
    """Owns an engine from its loading to its end and keeps it busy with everything submitted.

    Only its thread touches the engine. Between two steps it hands over all that has arrived, so
    vLLM's scheduler always sees every task in flight, and one future is resolved per task, not
    per item.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self.loaded: Future[None] = Future()
        """Done once the engine can be asked; or says why it could not be loaded."""
        self.loaded.set_running_or_notify_cancel()
        self.engine: Any = None
        """vLLM's engine, while it is loaded: to be looked at, not to be asked."""
        self._inbox: SimpleQueue[_Job | None] = SimpleQueue()
        self._asked: dict[str, tuple[_Job, int]] = {}
        self._numbers = count()
        self._ending = Lock()
        self._ended: EngineUnavailable | None = None
        self._thread = Thread(target=self._run, args=(load,), name="rocketeval-vllm", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> EngineUnavailable | None:
        """Why nothing can be asked any more; None while it can."""
        return self._ended

    def submit(self, prompts: Sequence[list[int]], params: Any) -> Future[list[Any]]:
        """Return a future of one finished request per prompt, or RequestRejected in its place.

        EngineUnavailable is raised, now or by the future, once the engine is gone.
        """
        job = _Job(prompts, params)
        with self._ending:
            if self._ended is not None:
                raise self._ended
            self._inbox.put(job)
        return job.done

    def close(self) -> None:
        """Let go of the engine; one that is still loading is let go of when it is there."""
        self._inbox.put(None)
        if self.loaded.done():
            self._thread.join(CLOSE_SECONDS)

    def _run(self, load: Callable[[], Any]) -> None:
        # Processes that vLLM starts inherit this: Ctrl-C in a terminal reaches all of them, and
        # must not end them while tasks in flight are being finished.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            with _COMPUTING:
                self.engine = load()
        except BaseException as error:  # noqa: BLE001 - whoever waits must learn of it
            self._end(EngineUnavailable("The engine could not be loaded."))
            self.loaded.set_exception(error)
            return
        self.loaded.set_result(None)
        ended = EngineUnavailable("The engine was closed.")
        try:
            self._serve(self.engine)
        except Exception as error:  # noqa: BLE001 - whatever it was, this engine is gone
            ended = EngineUnavailable(
                f"vLLM stopped working: {type(error).__name__}: {error}",
                hint="Its own messages are above. Finished judgments are safe: run the same "
                "command again to go on.",
            )
        self._end(ended)
        self._let_go()

    def _serve(self, engine: Any) -> None:
        while self._hand_over(engine):
            with _COMPUTING:
                outputs = engine.step()
            for output in outputs:
                if output.finished:
                    self._deliver(*self._asked.pop(output.request_id), output)

    def _hand_over(self, engine: Any) -> bool:
        """Give the engine all that has arrived, waiting if it has nothing to do; False to end."""
        while True:
            try:
                job = self._inbox.get(block=not self._asked)
            except Empty:
                return True
            if job is None:
                return False
            if job.done.set_running_or_notify_cancel():
                self._ask(engine, job)

    def _ask(self, engine: Any, job: _Job) -> None:
        for position, prompt in enumerate(job.prompts):
            name = str(next(self._numbers))
            try:
                engine.add_request(name, _token_prompt(prompt), job.params)
            except Exception as error:
                if not _is_rejection(error):
                    raise
                self._deliver(job, position, RequestRejected(str(error)))
            else:
                self._asked[name] = (job, position)

    def _deliver(self, job: _Job, position: int, output: Any) -> None:
        job.outputs[position] = output
        if len(job.outputs) == len(job.prompts):
            job.done.set_result([job.outputs[place] for place in range(len(job.prompts))])

    def _end(self, reason: EngineUnavailable) -> None:
        with self._ending:
            self._ended = reason
        jobs = {job: None for job, _ in self._asked.values()}
        while True:
            try:
                waiting = self._inbox.get(block=False)
            except Empty:
                break
            if waiting is not None and waiting.done.set_running_or_notify_cancel():
                jobs[waiting] = None
        for job in jobs:
            job.done.set_exception(reason)

    def _let_go(self) -> None:
        self.engine.engine_core.shutdown()
        renderer = getattr(self.engine, "renderer", None)
        if renderer is not None:
            renderer.shutdown()
        # A model is full of reference cycles: without this its memory stays taken.
        self.engine = renderer = None
        gc.collect()


def _is_rejection(error: Exception) -> bool:
    """Whether vLLM refuses one request, such as a prompt too long, and could answer others.

    Older releases raise ValueError for it, newer ones have a tree of their own.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    return not names.isdisjoint({"ValueError", "VLLMClientError"})


def _token_prompt(tokens: list[int]) -> dict[str, Any]:
    return {"type": "token", "prompt_token_ids": tokens}
