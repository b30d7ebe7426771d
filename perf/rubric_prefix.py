"""Prefix reuse with contexts and references: tokens computed in our order over the minimum.

    PYTHONPATH=src python perf/rubric_prefix.py [--record]

Prompts of a made-up set (40 queries, 6 candidates, 6 items) are counted in words, in the order in
which a run sends them, for a cache of one slot (the last prompt) and for caches that keep the most
recently used prefixes of 32,000 and of 8,000 tokens. The minimum is that of a perfect cache.

A run sends the items of a response sorted by what they show. If items of a checklist show different
material, one slot loses the context between two responses; two other orders are computed for it:
every second response backwards, and all responses to a query sorted together.
"""

from __future__ import annotations

import random
import sys
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path

from rocketeval.grading.plan import trie_tokens
from rocketeval.items import Checklist, parse_item
from rocketeval.prompts.rubric import RubricPrompt
from rocketeval.records import Query, Response

BLOCK = 16
QUERIES, CANDIDATES = 40, 6
Prompt = tuple[int, ...]


def prompts(uses: Sequence[Sequence[str]], *, own_context: bool = False) -> list[Prompt]:
    """Return the prompts of a run in its order, as numbers of words."""
    numbers: dict[str, int] = {}
    rng = random.Random(0)

    def text(words: int) -> str:
        return " ".join(rng.choice(WORDS) for _ in range(words))

    items = [
        parse_item({"text": f"Is it true that {text(12)}?", "uses": list(own)}) for own in uses
    ]
    rendered, found = RubricPrompt(), []
    for place in range(QUERIES):
        query = Query(
            f"q{place}",
            text(40),
            reference=text(120),
            system="Answer briefly.",
            context=tuple(text(200) for _ in range(4)),
        )
        made = Checklist.from_items(query.id, items)
        for candidate in range(CANDIDATES):
            own = (text(400),) if own_context else None
            response = Response(query.id, f"c{candidate}", text(150), context=own)
            task = rendered.render(query, response, made, b"k")
            for item in task.left():
                words = (task.prefix + task.suffixes[item]).split(" ")
                found.append(tuple(numbers.setdefault(word, len(numbers)) for word in words))
    return found


WORDS = [f"w{number}" for number in range(5000)]


def backwards(sent: Sequence[Prompt], items: int) -> list[Prompt]:
    """Return the prompts with those of every second response in reverse order."""
    tasks = [sent[at : at + items] for at in range(0, len(sent), items)]
    return [
        prompt for place, task in enumerate(tasks) for prompt in (task[::-1] if place % 2 else task)
    ]


def together(sent: Sequence[Prompt], items: int) -> list[Prompt]:
    """Return the prompts with those of all responses to a query sorted together."""
    size = items * CANDIDATES
    return [prompt for at in range(0, len(sent), size) for prompt in sorted(sent[at : at + size])]


def one_slot(prompts: Iterable[Prompt]) -> int:
    """Return the tokens computed by a cache that keeps the last prompt only."""
    computed, before = 0, ()
    for prompt in prompts:
        same = next(
            (n for n, (a, b) in enumerate(zip(before, prompt, strict=False)) if a != b),
            min(len(before), len(prompt)),
        )
        computed += len(prompt) - min(same, len(prompt) - 1)
        before = prompt
    return computed


def recent(prompts: Iterable[Prompt], capacity: int) -> int:
    """Return the tokens computed by a cache of whole blocks that drops the least recently used."""
    kept: OrderedDict[Prompt, None] = OrderedDict()
    computed = 0
    for prompt in prompts:
        ends = range(BLOCK, len(prompt), BLOCK)
        hit = 0
        for end in ends:
            if prompt[:end] not in kept:
                break
            hit = end
        computed += len(prompt) - hit
        for end in reversed(ends):
            kept[prompt[:end]] = None
            kept.move_to_end(prompt[:end])
        while len(kept) * BLOCK > capacity:
            kept.popitem(last=False)
    return computed


CASES = {
    "no material": [[]] * 6,
    "all items use reference and context": [["context", "reference"]] * 6,
    "three items use the context, one the reference": [["context"]] * 3 + [["reference"], [], []],
}


def lines() -> Iterable[str]:
    """Yield the ratios of each case."""
    for name, uses in CASES.items():
        for own in (False, True) if "context" in name else (False,):
            sent = prompts(uses, own_context=own)
            least, blocks = trie_tokens(sent).computed, trie_tokens(sent, BLOCK).computed
            where = " (context of the response)" if own else ""
            yield f"{name}{where}: {len(sent)} prompts, minimum {least:,} tokens"
            yield f"  one slot {one_slot(sent) / least:.3f}"
            if len({tuple(each) for each in uses}) > 1:
                for order in (backwards, together):
                    ratio = one_slot(order(sent, len(uses))) / least
                    yield f"  one slot, {ORDERS[order.__name__]} {ratio:.3f}"
            for capacity in (32_000, 8_000):
                yield f"  {capacity:,} tokens {recent(sent, capacity) / blocks:.3f}"


ORDERS = {
    "backwards": "every second response backwards (not done)",
    "together": "all responses to a query together (not done)",
}


def main() -> None:
    """Print the ratios; with `--record`, also write them to `recorded/`."""
    text = "".join(f"{line}\n" for line in lines())
    sys.stdout.write(text)
    if "--record" in sys.argv[1:]:
        (Path(__file__).parent / "recorded" / "rubric_prefix.txt").write_text(text)


if __name__ == "__main__":
    main()
