"""Count the tokens of a checklist, of Direct and of CoT on the same responses, and price them.

    python studies/cost.py CONFIG TOKENIZER_FOLDER --cot RUN [--record]

CONFIG is a benchmark with checklists (studies/mt_bench/first_turn.yaml). Prompts are rendered as
in a run and counted with the judge's own tokenizer and chat template. What CoT writes is measured:
RUN is the directory of a run with `method: {kind: cot}` on some of the responses. Prices are those
of RocketEval's Table 4 (2024): GPT-4o and GPT-4o-mini in batch mode, and a rented GPU with the
time that the paper measured for each judge. The checklists are written once per query. In the
paper this costs as much as one CoT pass of GPT-4o; the table leaves it out.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.config import MethodConfig, RunConfig, load_config
from rocketeval.grading.methods import create_method
from rocketeval.grading.plan import PrefixBound, trie_tokens
from rocketeval.records import Checklist, GradingTask
from rocketeval.store.run import RunStore
from rocketeval.strategy import effective_config

RECORD = Path(__file__).parent / "recorded" / "cost.txt"
PRICES = {"GPT-4o": (1.25, 5.00), "GPT-4o-mini": (0.075, 0.30)}
"""Dollars per million tokens read and written, in batch mode."""
GPU_HOUR = 0.36
"""Dollars for an RTX A5000, which runs a judge of up to 8B."""
GPU_SECONDS = {"Llama-3-8B": 685, "Gemma-2-2B": 248, "Qwen2.5-1.5B": 165}
"""Seconds for the 1,024 responses of one WildBench test, by judge, in the paper."""
WILDBENCH = 1024
PAPER_COT = 3400
"""Dollars for 1,000 of these tests with GPT-4o and CoT."""
PAPER_RATIOS = {
    judge: PAPER_COT / dollars
    for judge, dollars in {"Llama-3-8B": 71.4, "Gemma-2-2B": 27.7, "Qwen2.5-1.5B": 19.4}.items()
}
"""Cost of GPT-4o with CoT over that of the judge for 1,000 tests, checklists included."""
BLOCK = 32
"""Tokens that the server's prefix cache keeps together."""


@dataclass(frozen=True, slots=True)
class MethodTokens:
    """Tokens of a method per 1,000 responses."""

    name: str
    requests: float
    read: float
    computed: float
    """Tokens read that a perfect prefix cache does not hold."""
    written: float

    def money(self, price: tuple[float, float]) -> float:
        """Return the dollars at a price per million tokens, cached ones at the full price."""
        return (self.read * price[0] + self.written * price[1]) / 1e6


def count(config: RunConfig, kind: str, tokenizer: Any, written: float | None) -> MethodTokens:
    """Return the tokens of a method; `written` per response, or one per request."""
    chosen = config.model_copy(update={"method": MethodConfig(kind=kind)})
    found = list(tasks(chosen))
    bound = counted(found, tokenizer)
    per = 1000 / len(found)
    return MethodTokens(
        kind,
        bound.prompts * per,
        bound.tokens * per,
        bound.computed * per,
        1000 * (bound.prompts / len(found) if written is None else written),
    )


def tasks(config: RunConfig) -> Iterator[GradingTask]:
    """Yield what a run would ask about each response."""
    opened = load(open_benchmark(config.benchmark), config.benchmark)
    prompt = create_method(config).prompt
    checklists = {one.query_id: one for one in opened.benchmark.checklists()}
    author = effective_config(config).author
    if author.kind == "fixed":  # A method with one question for all queries.
        asked = tuple(map(str, cast("list[object]", author.options["items"])))
        checklists = {name: Checklist(name, asked) for name in checklists}
    queries = {query.id: query for query in opened.queries}
    for response in opened.responses():
        query = queries[response.query_id]
        yield prompt.render(query, response, checklists[query.id], b"")


def counted(found: list[GradingTask], tokenizer: Any) -> PrefixBound:
    """Return the tokens of all prompts, in the judge's chat template."""
    return trie_tokens(
        (
            tokenizer.apply_chat_template(
                [{"role": "user", "content": task.prefix + task.suffixes[place]}],
                add_generation_prompt=True,
                return_dict=False,
            )
            for task in found
            for place in task.left()
        ),
        BLOCK,
    )


def written_by_cot(run: Path) -> tuple[float, int]:
    """Return the tokens that CoT wrote per response, and the number of responses."""
    facts = RunStore(run).manifest().stages.grade
    usage = facts.usage_of_ledger or facts.usage
    return usage.completion_tokens / usage.requests, usage.requests


def table(methods: list[MethodTokens]) -> Iterator[str]:
    """Yield the lines of the two tables."""
    yield "per 1,000 responses     requests       read   computed    written"
    for one in methods:
        yield (
            f"{one.name:20}{one.requests:12,.0f}{one.read:11,.0f}{one.computed:11,.0f}"
            f"{one.written:11,.0f}"
        )
    yield ""
    yield "dollars per 1,000 responses, prices of the paper"
    for model, price in PRICES.items():
        for one in methods:
            yield f"{one.name + ' with ' + model:40}{one.money(price):8.3f}"
    yield ""
    yield "the paper's own figures, on WildBench, whose responses are longer"
    yield f"{'CoT with GPT-4o':40}{PAPER_COT / WILDBENCH:8.3f}"
    for judge, seconds in GPU_SECONDS.items():
        dollars = seconds / 3600 * GPU_HOUR / WILDBENCH * 1000
        yield (
            f"{'checklist with ' + judge + ' on a GPU':40}{dollars:8.3f}   "
            f"with the checklists, CoT with GPT-4o costs {PAPER_RATIOS[judge]:.0f} times as much"
        )


def main() -> None:
    """Print the tokens and the money, and record them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("tokenizer")
    parser.add_argument("--cot", type=Path, required=True)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()

    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(given.tokenizer)
    config = load_config(given.config)
    written, responses = written_by_cot(given.cot)
    methods = [
        count(config, "checklist", tokenizer, None),
        count(config, "direct", tokenizer, None),
        count(config, "cot", tokenizer, written),
    ]
    lines = [
        "python studies/cost.py studies/mt_bench/first_turn.yaml TOKENIZER --cot RUN --record",
        f"CoT: what the judge wrote about {responses} responses, {written:.0f} tokens each",
        "",
        *table(methods),
    ]
    print("\n".join(lines))
    if given.record:
        RECORD.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
