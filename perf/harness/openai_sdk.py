"""The openai SDK in 16 threads, one chat request per item with the top 20 tokens.

The reference implementation of the method asks its judge this way. Run by `harness.child` in an
interpreter that has `openai`.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.child import serve
from harness.measured import Measured, share, timed


class OpenAISDK:
    """A thread pool over `client.chat.completions.create`."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from openai import OpenAI

        workload = settings["workload"]
        self._model = settings["model"]
        self._prompts = [prompt for items in workload["prompts"] for prompt in items]
        self._yes, self._no = set(workload["yes"]), set(workload["no"])
        self._client = OpenAI(base_url=settings["base_url"], api_key="none", timeout=3600)
        self._pool = ThreadPoolExecutor(settings["threads"])

    def run(self) -> Measured:
        """Ask every item once."""
        with timed() as watch:
            replies = list(self._pool.map(self._ask, self._prompts))
        tokens = sum(tokens for _, tokens in replies)
        return Measured([p for p, _ in replies], tokens, watch.seconds, watch.cpu_seconds)

    def close(self) -> None:
        """Close the connections."""
        self._pool.shutdown()
        self._client.close()

    def _ask(self, prompt: str) -> tuple[float | None, int]:
        reply = self._client.chat.completions.create(
            model=self._model,
            messages=[{"role": "user", "content": prompt}],
            max_tokens=1,
            temperature=0,
            logprobs=True,
            top_logprobs=20,
        )
        listed = reply.choices[0].logprobs.content[0].top_logprobs
        yes = [row.logprob for row in listed if row.token in self._yes]
        no = [row.logprob for row in listed if row.token in self._no]
        return share(yes, no), reply.usage.prompt_tokens


def prepare(settings: dict[str, Any]) -> tuple[OpenAISDK, dict[str, Any]]:
    """Open the client."""
    import openai

    return OpenAISDK(settings), {"version": openai.__version__}


if __name__ == "__main__":
    serve(prepare)
