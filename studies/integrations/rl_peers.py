"""verl's and OpenRLHF's own code calling the reward functions, without a GPU.

    pip download --no-deps --dest WHEELS verl==0.9.1 openrlhf==0.11.2
    python studies/integrations/rl_peers.py WHEELS > studies/integrations/recorded/rl_peers.txt

Neither package installs without a GPU stack, so the modules that load and call a reward function
are taken out of the wheels; what they import besides and do not use here is an empty module.
The judge is the program of rules in word_judge.py, so the rewards are known. Needs torch.
"""

from __future__ import annotations

import asyncio
import importlib.util
import logging
import os
import sys
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from aiohttp import web
from word_judge import MODEL, serving

from rocketeval import Grader, Judge
from rocketeval.rewards.server import RewardServer

QUERY = "Can I get a refund?"
ITEMS = ["Does the response mention 30 days?", "Is the response polite?"]
EXPECTED = {"Within 30 days. Thanks.": (0.95 + 0.9) / 2, "No.": (0.04 + 0.3) / 2}


def empty_module(name: str, **content: Any) -> ModuleType:
    """Put a module with the given content in place of one that is not installed."""
    module = ModuleType(name)
    module.__dict__.update(content)
    module.__path__ = []
    sys.modules[name] = module
    return module


def load(wheels: Path, package: str, inside: str, name: str, folder: Path) -> Any:
    """Return a module of a wheel, loaded from its file alone."""
    (wheel,) = wheels.glob(f"{package}-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (member,) = [each for each in archive.namelist() if each.endswith(inside)]
        path = archive.extract(member, folder)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    print(f"## {wheel.name.split('-cp')[0].removesuffix('.whl')}: {inside}")
    return module


def report(text: str, score: float) -> None:
    """Print a reward next to the known one; end if they differ."""
    print(f"{score:.4f} (known {EXPECTED[text]:.4f}): {text}")
    if abs(score - EXPECTED[text]) > 0.02:
        raise SystemExit("The reward is another one.")


async def run_verl(wheels: Path, folder: Path, function: Path) -> None:
    """Load the function with verl's loader, and call it as its reward managers do."""
    empty_module("verl", DataProto=object)
    empty_module("verl.utils")
    empty_module("verl.utils.reward_score", get_default_compute_score=None)
    load(wheels, "verl", "verl/utils/import_utils.py", "verl.utils.import_utils", folder)
    module = load(wheels, "verl", "verl/trainer/ppo/reward.py", "verl.trainer.ppo.reward", folder)
    chosen = {"path": str(function), "name": "compute_score", "reward_kwargs": {}}
    config = SimpleNamespace(reward={"custom_reward_function": chosen})
    score = module.get_custom_reward_fn(config)
    for text in EXPECTED:
        found = await score(
            data_source="support",
            solution_str=text,
            ground_truth=None,
            extra_info={"question": QUERY, "checklist": ITEMS, "num_turns": None},
        )
        report(text, found["score"])
        print(f"  the reward manager keeps {found}")


class Characters:
    """A tokenizer with one token per character."""

    def __call__(self, text: str, **_: Any) -> dict[str, torch.Tensor]:
        """Return the tokens of a text."""
        return {"input_ids": torch.tensor([[ord(letter) for letter in text]])}

    def decode(self, tokens: list[int], **_: Any) -> str:
        """Return the text of tokens."""
        return "".join(map(chr, tokens))


class Written:
    """A policy that writes one text, with the special token at its end."""

    def __init__(self, text: str) -> None:
        self._tokens = [ord(letter) for letter in f"{text}<|im_end|>"]

    async def generate(self, *_: Any, **__: Any) -> Any:
        """Return the text in vLLM's form."""
        output = SimpleNamespace(token_ids=self._tokens, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[output])


async def run_openrlhf(wheels: Path, folder: Path, endpoint: str) -> None:
    """Run OpenRLHF's executor of one turn, which fetches the reward from a file or a server."""
    empty_module("openrlhf")
    empty_module("openrlhf.utils")
    empty_module("openrlhf.utils.logging_utils", init_logger=logging.getLogger)
    module = load(wheels, "openrlhf", "openrlhf/utils/agent.py", "openrlhf.utils.agent", folder)
    executor = module.SingleTurnAgentExecutor(endpoint)
    sampling = SimpleNamespace(max_tokens=100, logprobs=None)
    for text in EXPECTED:
        found = await executor.execute(QUERY, ITEMS, sampling, 1000, Characters(), Written(text))
        report(text, float(found["reward"][0]))
        print(f"  in the experience: {found['reward']}, {found['extra_logs']}")


async def main(wheels: Path) -> None:
    """Run both, OpenRLHF with a file and with the server."""
    with TemporaryDirectory() as home, serving() as judge:
        os.environ |= {"ROCKETEVAL_JUDGE": MODEL, "ROCKETEVAL_BASE_URL": judge.base_url}
        folder, function = Path(home), Path(home) / "rewards.py"
        names = "compute_score, reward_func"
        function.write_text(f"from rocketeval.rewards.functions import {names}\n")
        await run_verl(wheels, folder, function)
        await run_openrlhf(wheels, folder, str(function))
        with Grader(Judge(MODEL, judge.base_url)) as grader:
            runner = web.AppRunner(RewardServer(grader).application())
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1/rewards"
            await run_openrlhf(wheels, folder, url)
            await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
