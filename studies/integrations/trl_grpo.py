"""A tiny GRPO run with TRL on a CPU: does the checklist reward rise?

    python studies/integrations/trl_grpo.py POLICY_FOLDER --steps 60 \\
        --plot docs/images/trl_grpo.png > studies/integrations/recorded/trl_grpo.txt

The policy is SmolLM2-135M-Instruct (`studies/judges/fetch_weights.py smollm2-135m`, then
`convert_to_hf.py`); its last layers are trained. The checklist is what a small policy can learn:
brevity and the word "sure", decided by code, and one item for a judge behind HTTP, which is the
program of rules in word_judge.py unless `--judge` names a real one. Prints the reward per step, the
rewards per second and the p99 of a reward call.
"""

from __future__ import annotations

import argparse
import time
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from statistics import fmean
from typing import Any

import matplotlib as mpl
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from word_judge import MODEL, serving

from rocketeval.rewards.functions import trl_reward
from rocketeval.rewards.monitor import RewardMonitor

mpl.use("Agg")

GENERATIONS = 8
CHECKLIST: list[Any] = [
    *(
        {"text": f"At most {most} words", "check": {"fn": "words", "args": {"max": most}}}
        for most in (7, 6, 5, 4)
    ),
    {
        "text": 'Says "sure"',
        "weight": 2,
        "check": {"fn": "contains", "args": {"text": "sure", "ignore_case": True}},
    },
    {"text": "Does the response mention help?", "weight": 2},
]
SYSTEM = "Say sure and help."
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


class TimedReward:
    """The reward function, with the time of each call and the texts it graded."""

    def __init__(self, reward: Any) -> None:
        self.__name__ = "checklist_reward"
        self._reward = reward
        self.seconds: list[float] = []
        self.means: list[float] = []
        self.texts: list[str] = []
        self.missing = 0

    async def __call__(self, **columns: Any) -> list[float | None]:
        """Return the rewards of a batch."""
        began = time.perf_counter()
        found: list[float | None] = await self._reward(**columns)
        self.seconds.append(time.perf_counter() - began)
        known = [value for value in found if value is not None]
        self.missing += len(found) - len(known)
        self.means.append(fmean(known))
        self.texts.append(columns["completions"][0][0]["content"])
        print(f"step {len(self.means)}: {self.means[-1]:.3f}  {self.texts[-1]!r}", flush=True)
        return found


class TimeLimit(TrainerCallback):
    """Ends the training with the first step after some minutes."""

    def __init__(self, minutes: float) -> None:
        self._until = time.monotonic() + 60 * minutes

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Stop if the time is over."""
        control.should_training_stop = time.monotonic() > self._until


def load_policy(folder: str, trained_layers: int) -> tuple[Any, Any]:
    """Return the policy in float32 with all but its last layers frozen, and its tokenizer."""
    policy = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    policy.requires_grad_(False)
    for layer in policy.model.layers[-trained_layers:]:
        layer.requires_grad_(True)
    return policy, AutoTokenizer.from_pretrained(folder)


def train(given: argparse.Namespace, reward: TimedReward) -> float:
    """Train the policy; return the seconds."""
    policy, tokenizer = load_policy(given.policy, given.layers)
    config = GRPOConfig(
        output_dir=str(given.scratch),
        per_device_train_batch_size=GENERATIONS,
        num_generations=GENERATIONS,
        max_completion_length=10,
        max_steps=given.steps,
        learning_rate=given.learning_rate,
        lr_scheduler_type="constant",
        temperature=1.0,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        use_cpu=True,
        bf16=False,
        gradient_checkpointing=False,
        disable_tqdm=True,
        seed=0,
    )
    rows = [
        {"prompt": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": query}]}
        for query in QUERIES
    ]
    trainer = GRPOTrainer(
        model=policy,
        processing_class=tokenizer,
        reward_funcs=[reward],
        args=config,
        train_dataset=Dataset.from_list(rows),
        callbacks=[TimeLimit(given.minutes)],
    )
    began = time.perf_counter()
    trainer.train()
    return time.perf_counter() - began


def plot(means: list[float], path: Path) -> None:
    """Draw the reward per step and its running mean."""
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.2), layout="constrained")
    axes.plot(means, color="0.75", label="mean of 8 completions")
    window = max(1, len(means) // 10)
    running = [fmean(means[max(0, at - window + 1) : at + 1]) for at in range(len(means))]
    axes.plot(running, color="C0", label=f"mean of {window} steps")
    axes.set(xlabel="step", ylabel="reward", ylim=(0, 1))
    axes.legend(loc="lower right")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Train and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("policy", help="folder with the policy in Hugging Face's format")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--minutes", type=float, default=600, help="most minutes of training")
    parser.add_argument("--layers", type=int, default=10, help="layers trained, from the last")
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--judge")
    parser.add_argument("--base-url")
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--scratch", type=Path, default=Path("trl_grpo_scratch"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    monitor = RewardMonitor()
    with ExitStack() as stack:
        base_url = given.base_url or stack.enter_context(serving()).base_url
        reward = TimedReward(
            trl_reward(CHECKLIST, judge=given.judge or MODEL, base_url=base_url, monitor=monitor)
        )
        seconds = train(given, reward)
    tenth = max(1, len(reward.means) // 10)
    first, last = fmean(reward.means[:tenth]), fmean(reward.means[-tenth:])
    print(f"trl {version('trl')}, torch {version('torch')}; judge: {given.judge or MODEL}")
    print(f"reward: first tenth {first:.3f}, last tenth {last:.3f}; {seconds / 60:.1f} minutes")
    ordered = sorted(reward.seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    rate = GENERATIONS * len(ordered) / sum(ordered)
    print(
        f"{len(ordered)} reward calls of {GENERATIONS}: {len(ordered) / sum(ordered):.1f} calls/s, "
        f"{rate:.0f} rewards/s, p99 {p99 * 1000:.0f} ms, "
        f"{100 * sum(ordered) / seconds:.1f}% of the time; rewards missing: {reward.missing}"
    )
    print("monitor:", {name: round(value, 3) for name, value in monitor.figures.items()})
    print("warnings:", monitor.warnings or "none")
    if given.plot:
        plot(reward.means, given.plot)
    if not last > first:
        raise SystemExit("The reward did not rise.")


if __name__ == "__main__":
    main()
