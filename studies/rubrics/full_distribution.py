"""Do the proven bounds hold a real model's exact answers? On the full distribution of a judge.

    PYTHONPATH=src:studies python studies/rubrics/full_distribution.py MODEL_FOLDER

Needs torch and transformers. The probability of every token after each prompt is computed once; for
k = 1 to 20 the k most likely tokens are read as a server would list them, and the bounds of value
and applicability are compared with the exact figures. Prompts are those of the RAG set, asked with
yes/no, NA, and scales of 3, 5 and 10 levels.
"""

from __future__ import annotations

import json
import math
import sys
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


def main() -> None:
    """Check the bounds of every prompt and k, and print the counts."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = sys.argv[1]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    names = tokenizer.convert_ids_to_tokens(range(len(tokenizer)))
    checked = broken = usable = 0
    rows = [json.loads(line) for line in (HERE / "rag_set.jsonl").read_text().splitlines()]
    for row in rows:
        query = Query(row["id"], row["question"], context=tuple(row["context"]))
        for answer in ("faithful", "unfaithful"):
            made = Checklist.from_items(row["id"], [parse_item(item) for item in ITEMS])
            task = RubricPrompt().render(
                query, Response(row["id"], answer, row[answer]), made, b"k"
            )
            for place, suffix in enumerate(task.suffixes):
                message = [{"role": "user", "content": task.prefix + suffix}]
                tokens = tokenizer.apply_chat_template(
                    message, add_generation_prompt=True, return_tensors="pt", return_dict=True
                )
                with torch.no_grad():
                    logps = torch.log_softmax(model(**tokens).logits[0, -1].double(), -1).tolist()
                labels = task.labels_of(place)
                assert labels is not None
                readout = RubricReadout(labels)
                value, na = exact(readout, dict(zip(names, logps, strict=False)))
                ranked = sorted(zip(names, logps, strict=False), key=lambda pair: -pair[1])
                for k in range(1, 21):
                    found = readout.read(ranked[:k])
                    if found.p_low is None:
                        continue
                    checked += 1
                    usable += found.p_yes is not None
                    inside = found.p_low - 1e-9 <= value <= (found.p_high or 0) + 1e-9
                    if found.na_low is not None and found.na_high is not None:
                        inside &= found.na_low - 1e-9 <= na <= found.na_high + 1e-9
                    broken += not inside
    print(f"{checked} readings with bounds, {usable} usable, {broken} outside their bounds")


def exact(readout: RubricReadout, logps: dict[str, float]) -> tuple[float, float]:
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
