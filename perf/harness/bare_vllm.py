"""The bare engine in-process: `vllm.LLM.generate` on token prompts, in the ideal order.

Run by `harness.child` in an interpreter that has vLLM. Prompts are tokenized before the clock
starts, so only the engine is timed.
"""

from __future__ import annotations

from typing import Any

from harness.child import serve
from harness.measured import Measured, share, timed
from harness.server import BLOCK_SIZE


class BareVLLM:
    """One `LLM`, every prompt in one call."""

    def __init__(self, llm: Any, prompts: list[str], yes: list[str], no: list[str]) -> None:
        from vllm import SamplingParams

        self._llm = llm
        tokenizer = llm.get_tokenizer()
        self._prompts = [{"prompt_token_ids": chat_tokens(tokenizer, text)} for text in prompts]
        self._yes, self._no = single_tokens(tokenizer, yes), single_tokens(tokenizer, no)
        self._params = SamplingParams(
            max_tokens=1, temperature=0.0, logprob_token_ids=[*self._yes, *self._no]
        )

    def run(self) -> Measured:
        """Generate one token for every prompt."""
        with timed() as watch:
            outputs = self._llm.generate(self._prompts, self._params, use_tqdm=False)
            found = [self._p_yes(output.outputs[0].logprobs[0]) for output in outputs]
        tokens = sum(len(prompt["prompt_token_ids"]) for prompt in self._prompts)
        return Measured(found, tokens, watch.seconds, watch.cpu_seconds)

    def reset(self) -> None:
        """Empty the prefix cache."""
        if not self._llm.reset_prefix_cache():
            raise RuntimeError("vLLM does not empty its prefix cache.")

    def close(self) -> None:
        """Do nothing: the engine ends with the process."""

    def _p_yes(self, result: dict[int, Any]) -> float | None:
        yes = [result[token].logprob for token in self._yes if token in result]
        no = [result[token].logprob for token in self._no if token in result]
        return share(yes, no)


def chat_tokens(tokenizer: Any, prompt: str) -> list[int]:
    """Return the tokens the judge sees when `prompt` is the user's turn."""
    found = tokenizer.apply_chat_template(
        [{"role": "user", "content": prompt}], add_generation_prompt=True, return_dict=False
    )
    return [int(token) for token in found]


def single_tokens(tokenizer: Any, texts: list[str]) -> list[int]:
    """Return the texts that are one token of the vocabulary."""
    encoded = [tokenizer.encode(text, add_special_tokens=False) for text in texts]
    return sorted({tokens[0] for tokens in encoded if len(tokens) == 1})


def make_llm(settings: dict[str, Any]) -> Any:
    """Return vLLM with the settings of the HTTP server."""
    from vllm import LLM

    return LLM(
        model=settings["folder"],
        dtype=settings["dtype"],
        max_model_len=settings["max_model_len"],
        max_logprobs=50,
        enable_prefix_caching=True,
        block_size=BLOCK_SIZE,
    )


def prepare(settings: dict[str, Any]) -> tuple[BareVLLM, dict[str, Any]]:
    """Load the engine and tokenize the workload."""
    import vllm

    workload = settings["workload"]
    prompts = [prompt for items in workload["prompts"] for prompt in items]
    method = BareVLLM(make_llm(settings), prompts, workload["yes"], workload["no"])
    return method, {"version": vllm.__version__}


if __name__ == "__main__":
    serve(prepare)
