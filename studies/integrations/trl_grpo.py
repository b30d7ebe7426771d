"""A tiny GRPO run with TRL on a CPU: does the checklist reward rise?

    python studies/integrations/trl_grpo.py --steps 60 [--judge MODEL --base-url URL]

The policy is SmolLM2-135M-Instruct. The checklist is what a small policy can learn: at most 30
words and the word "sure", decided by code, plus one item for the judge if one is given. Prints the
reward per step, the rewards per second and the p99 of a reward call; writes trl_grpo.json.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from datasets import Dataset
from trl import GRPOConfig, GRPOTrainer

from rocketeval import ScriptedEngine
from rocketeval.rewards.functions import trl_reward
from rocketeval.rewards.monitor import RewardMonitor

POLICY = "HuggingFaceTB/SmolLM2-135M-Instruct"
CHECKS: list[Any] = [
    {"text": "At most 30 words", "check": {"fn": "words", "args": {"max": 30}}},
    {"text": "Says sure", "check": {"fn": "contains", "args": {"text": "sure"}}},
]
QUERIES = (
    "Can you help me plan a picnic?",
    "Can you explain what rain is?",
    "Can you name a good book?",
    "Can you help me sleep better?",
    "Can you suggest a short walk?",
    "Can you tell me about bees?",
    "Can you help me cook rice?",
    "Can you recommend a game?",
)


def main() -> None:
    """Train, and print the rewards."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--policy", default=POLICY)
    parser.add_argument("--judge")
    parser.add_argument("--base-url")
    parser.add_argument("--out", type=Path, default=Path("trl_grpo.json"))
    given = parser.parse_args()
    items = [*CHECKS, "Does the response agree to help?"] if given.judge else CHECKS
    judge = given.judge or ScriptedEngine(lambda prefix, item: 0.5)
    monitor = RewardMonitor()
    reward = trl_reward(items, judge=judge, base_url=given.base_url, monitor=monitor)
    calls: list[float] = []

    async def timed(**columns: Any) -> list[float | None]:
        began = time.perf_counter()
        found = await reward(**columns)
        calls.append(time.perf_counter() - began)
        return found

    timed.__name__ = "checklist_reward"
    rows = [{"prompt": [{"role": "user", "content": query}]} for query in QUERIES]
    config = GRPOConfig(
        output_dir="trl_grpo",
        per_device_train_batch_size=8,
        num_generations=8,
        max_completion_length=48,
        max_steps=given.steps,
        learning_rate=2e-5,
        temperature=1.0,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        seed=0,
    )
    trainer = GRPOTrainer(
        model=given.policy, reward_funcs=[timed], args=config, train_dataset=Dataset.from_list(rows)
    )
    began = time.perf_counter()
    trainer.train()
    seconds = time.perf_counter() - began
    curve = [log["reward"] for log in trainer.state.log_history if "reward" in log]
    tenth = max(1, len(curve) // 10)
    print("reward per step:", " ".join(f"{value:.2f}" for value in curve))
    first, last = sum(curve[:tenth]) / tenth, sum(curve[-tenth:]) / tenth
    print(f"first tenth {first:.3f}, last tenth {last:.3f}, {seconds / 60:.1f} minutes")
    ordered = sorted(calls)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    rate = 8 * len(calls) / sum(calls)
    print(f"{len(calls)} reward calls of 8: {rate:.0f} rewards/s, p99 {p99 * 1000:.0f} ms")
    print("warnings:", monitor.warnings or "none")
    result = {"curve": curve, "calls": calls, "seconds": seconds, "warnings": monitor.warnings}
    given.out.write_text(json.dumps(result))


if __name__ == "__main__":
    main()
