"""The reward path next to a plain loop over the openai SDK, on a server that answers at once.

    python studies/integrations/reward_rate.py > studies/integrations/recorded/reward_rate.txt

Needs `openai`. The server is the stub of perf/harness in vLLM's format, in a process of its own, so
only the client's cost differs. Each round grades new completions, once by each path in turn; the
ratios are those of the sums over all rounds. CPU seconds say more than wall seconds on a busy
machine.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path

from rocketeval.rewards.functions import trl_reward

PERF = Path(__file__).parents[2] / "perf"
ITEMS = [
    "Does the response answer the question?",
    "Is the response correct?",
    "Is the response clear?",
    "Is the response short?",
]
GROUPS, GENERATIONS = 8, 8
YES, NO = {"Yes", " Yes", "yes", "YES"}, {"No", " No", "no", "NO"}
Batch = list[tuple[str, str]]


def batch(number: int) -> Batch:
    """Return the prompts and completions of one round, which no other round has."""
    return [
        (f"Question {group}?", f"Completion {row} of round {number}. " + "It explains. " * 20)
        for group in range(GROUPS)
        for row in range(GENERATIONS)
    ]


def ask_sdk(base_url: str, pool: ThreadPoolExecutor | None) -> Callable[[Batch], list[float]]:
    """Return a judge with one chat request per item, in a loop or a pool of threads."""
    from openai import OpenAI

    client = OpenAI(base_url=base_url, api_key="none")

    def one(prompt: str) -> float:
        reply = client.chat.completions.create(
            model="stub",
            messages=[{"role": "user", "content": prompt}],
            max_tokens=1,
            temperature=0,
            logprobs=True,
            top_logprobs=20,
        )
        logprobs = reply.choices[0].logprobs
        assert logprobs is not None
        assert logprobs.content is not None
        listed = logprobs.content[0].top_logprobs
        yes = sum(math.exp(row.logprob) for row in listed if row.token in YES)
        no = sum(math.exp(row.logprob) for row in listed if row.token in NO)
        return yes / (yes + no)

    def rewards(given: Batch) -> list[float]:
        prompts = [
            f"# Question\n{prompt}\n# Response\n{text}\n# Criterion\n{item}\nAnswer Yes or No."
            for prompt, text in given
            for item in ITEMS
        ]
        answers = list(map(one, prompts) if pool is None else pool.map(one, prompts))
        size = len(ITEMS)
        return [sum(answers[at : at + size]) / size for at in range(0, len(answers), size)]

    return rewards


def ask_ours(base_url: str) -> Callable[[Batch], list[float]]:
    """Return the reward function, called as TRL does."""
    reward = trl_reward(ITEMS, judge="stub", base_url=base_url)

    def rewards(given: Batch) -> list[float]:
        prompts, completions = zip(*given, strict=True)
        found = asyncio.run(reward(prompts=prompts, completions=completions))
        return [value for value in found if value is not None]

    return rewards


def main() -> None:
    """Run the rounds and print the sums."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    command = [sys.executable, "-m", "harness.stub_server"]
    with ExitStack() as stack:
        server = subprocess.Popen(command, stdout=subprocess.PIPE, cwd=PERF, text=True)
        stack.callback(server.wait)
        stack.callback(server.terminate)
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        pool = stack.enter_context(ThreadPoolExecutor(16))
        paths = {
            "rocketeval": ask_ours(url),
            "openai SDK, loop": ask_sdk(url, None),
            "openai SDK, 16 threads": ask_sdk(url, pool),
        }
        wall, cpu = dict.fromkeys(paths, 0.0), dict.fromkeys(paths, 0.0)
        for number in range(given.rounds + 1):
            for name, rewards in paths.items():
                began, spent = time.perf_counter(), time.process_time()
                found = rewards(batch(number))
                if len(found) != GROUPS * GENERATIONS:
                    raise SystemExit(f"{name}: {len(found)} rewards.")
                # The first round identifies the judge and opens connections.
                if number:
                    wall[name] += time.perf_counter() - began
                    cpu[name] += time.process_time() - spent
    count = given.rounds * GROUPS * GENERATIONS
    print(
        f"{given.rounds} rounds of {GROUPS * GENERATIONS} completions with {len(ITEMS)} items; "
        f"openai {version('openai')}"
    )
    for name in paths:
        longer, dearer = (each[name] / each["rocketeval"] for each in (wall, cpu))
        print(
            f"{name:24s} {count / wall[name]:7.0f} rewards/s  {longer:5.1f} x time  "
            f"{1000 * cpu[name] / count:6.2f} ms CPU per reward  {dearer:5.1f} x CPU"
        )


if __name__ == "__main__":
    main()
