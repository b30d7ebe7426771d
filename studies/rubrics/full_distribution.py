"""Do the proven bounds hold a real model's exact answers? On the full distribution of a judge.

    PYTHONPATH=src:studies python studies/rubrics/full_distribution.py MODEL_FOLDER [--record]

Needs torch and transformers. The probability of every token after each prompt is computed once; for
k = 1 to 20 the k most likely tokens are read as a server would list them, and the bounds of value
and applicability are compared with the exact figures. Prompts are those of the RAG set, asked with
yes/no, NA, and scales of 3, 5 and 10 levels.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rocketeval.engines.rubric_readout import RubricReadout
from rocketeval.items import Checklist, parse_item
from rocketeval.prompts.rubric import RubricPrompt
from rocketeval.records import Query, Response

HERE = Path(__file__).parent
ITEMS = (
    {"text": "Is everything that the response states true?", "na": True},
    {"text": "How complete is the response?", "levels": ["not at all", "partly", "fully"]},
    {"text": "How clear is it?", "levels": [f"clarity {n} of 5" for n in range(1, 6)], "na": True},
    {"text": "How exact is it?", "levels": [f"exactness {n} of 10" for n in range(1, 11)]},
)


KINDS = ("yes/no with NA", "3 levels", "5 levels with NA", "10 levels")
MOST_LISTED = 20
SLACK = 1e-9


@dataclass
class Count:
    """Readings of one kind of item."""

    prompts: int = 0
    bounded: int = 0
    """Readings with bounds, over all prompts and k."""
    usable: int = 0
    """Readings that a score uses: bounds narrow enough."""
    outside: int = 0
    """Readings whose bounds do not contain the exact figure."""


def prompts() -> Iterator[tuple[int, str, RubricReadout]]:
    """Yield each prompt of the RAG set with the place of its item and its readout."""
    made = Checklist.from_items("q", [parse_item(item) for item in ITEMS])
    for row in map(json.loads, (HERE / "rag_set.jsonl").read_text().splitlines()):
        query = Query(row["id"], row["question"], context=tuple(row["context"]))
        for side in ("faithful", "unfaithful"):
            response = Response(row["id"], side, row[side])
            task = RubricPrompt().render(query, response, made, b"k")
            for place, suffix in enumerate(task.suffixes):
                labels = task.labels_of(place)
                assert labels is not None
                yield place, task.prefix + suffix, RubricReadout(labels)


def count_readings(
    found: Count, readout: RubricReadout, names: Sequence[str], logps: Sequence[float]
) -> None:
    """Read the k most likely tokens for every k, and compare the bounds with the exact figures."""
    found.prompts += 1
    value, na = exact(readout, dict(zip(names, logps, strict=False)))
    ranked = sorted(zip(names, logps, strict=False), key=lambda pair: -pair[1])
    for k in range(1, MOST_LISTED + 1):
        answer = readout.read(ranked[:k])
        if answer.p_low is None or answer.p_high is None:
            continue
        found.bounded += 1
        found.usable += answer.p_yes is not None
        inside = answer.p_low - SLACK <= value <= answer.p_high + SLACK
        if answer.na_low is not None and answer.na_high is not None:
            inside &= answer.na_low - SLACK <= na <= answer.na_high + SLACK
        found.outside += not inside


def main() -> None:
    """Check the bounds of every prompt and k, and print the counts."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=Path)
    parser.add_argument("--record", action="store_true", help="write recorded/*.txt")
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(options.model)
    model = AutoModelForCausalLM.from_pretrained(options.model, dtype=torch.float32).eval()
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    counts = [Count() for _ in ITEMS]
    for place, prompt, readout in prompts():
        tokens = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            add_generation_prompt=True,
            return_tensors="pt",
            return_dict=True,
        )
        with torch.no_grad():
            logits = model(**tokens).logits[0, -1].double()
        count_readings(counts[place], readout, names, torch.log_softmax(logits, -1).tolist())
    lines = [f"{options.model.name}, k = 1 to {MOST_LISTED}, {len(names):,} tokens"]
    for kind, found in zip(KINDS, counts, strict=True):
        lines.append(
            f"{kind}: {found.prompts} prompts, {found.bounded} readings with bounds, "
            f"{found.usable} usable, {found.outside} outside their bounds"
        )
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if options.record:
        (HERE / "recorded").mkdir(exist_ok=True)
        (HERE / "recorded" / "full_distribution.txt").write_text(text, encoding="utf-8")


def exact(readout: RubricReadout, logps: Mapping[str, float]) -> tuple[float, float]:
    """Return value and share of NA, summed over the whole vocabulary."""
    sums = [
        math.fsum(math.exp(logps[token]) for token in own if token in logps)
        for own in readout.spelled
    ]
    levels = sums[: len(readout.values)]
    value = sum(v * p for v, p in zip(readout.values, levels, strict=True)) / sum(levels)
    return value, (sums[-1] / sum(sums) if readout.labels.na else 0.0)


if __name__ == "__main__":
    main()
