"""AutoChecklist's `rocketeval` preset: its scorer, its prompt, our checklists and responses.

Its pipeline scores responses one after the other and a checklist's items one after the other; it
does not batch for this preset. Its readout lets the judge write up to 512 tokens and reads the
first one's top 5. Run by `harness.child` in an interpreter that has `autochecklist`.
"""

from __future__ import annotations

from typing import Any

from harness.child import serve
from harness.measured import Measured, timed


class Preset:
    """`pipeline("rocketeval").score` over the workload."""

    def __init__(self, settings: dict[str, Any]) -> None:
        from autochecklist import Checklist, ChecklistItem, pipeline

        self._client = _counting_client(settings["base_url"])
        self._pipe = pipeline(
            "rocketeval",
            generator_model=settings["model"],
            scorer_model=settings["model"],
            provider="vllm",
            base_url=settings["base_url"],
            client=self._client,
        )
        self._work = [
            (
                Checklist(
                    items=[ChecklistItem(question=item) for item in row["items"]],
                    source_method="given",
                    generation_level="instance",
                    input=row["query"],
                ),
                row["response"],
                row["query"],
            )
            for row in settings["workload"]["responses"]
        ]

    def run(self) -> Measured:
        """Score every response once."""
        self._client.start_again()
        with timed() as watch:
            for checklist, response, query in self._work:
                self._pipe.score(checklist, response, input=query)
        client = self._client
        return Measured(client.found, client.prompt_tokens, watch.seconds, watch.cpu_seconds)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _counting_client(base_url: str) -> Any:
    """Return its own HTTP client, which also counts tokens and answers without a probability."""
    from autochecklist.providers.http_client import LLMHTTPClient

    class CountingClient(LLMHTTPClient):
        def start_again(self) -> None:
            self.found: list[float | None] = []
            self.prompt_tokens = 0

        def chat_completion(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
            reply = super().chat_completion(*args, **kwargs)
            self.prompt_tokens += reply["usage"]["prompt_tokens"]
            return reply

        def get_logprobs(self, *args: Any, **kwargs: Any) -> dict[str, float]:
            probs = super().get_logprobs(*args, **kwargs)
            total = probs["yes"] + probs["no"]
            self.found.append(probs["yes"] / total if total else None)
            return probs

    client = CountingClient(provider="vllm", base_url=base_url, timeout=3600)
    client.start_again()
    return client


def prepare(settings: dict[str, Any]) -> tuple[Preset, dict[str, Any]]:
    """Build the pipeline."""
    from importlib.metadata import version

    return Preset(settings), {"version": version("autochecklist")}


if __name__ == "__main__":
    serve(prepare)
