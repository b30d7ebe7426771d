"""The engine `systemone` against vLLM's own code for questions and answers, without a model.

    python studies/integrations/systemone_vllm.py SITE_PACKAGES_OF_VLLM

vLLM serves `/v1/systemone` only for some models, none of which is small. So a server here reads
each request with vLLM's own question types, gives every label a known probability, and sends the
answers that vLLM's code makes of them. The engine must get those probabilities back.
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from pathlib import Path
from typing import Any

from aiohttp import web

from rocketeval.config import JudgeConfig
from rocketeval.engines.base import create_engine
from rocketeval.items import AnswerLabels
from rocketeval.records import GradingTask

MOST_OPTIONS = 26
MODULE = "vllm/entrypoints/generate/structured_decisions/question_types.py"


def load_question_types(folder: Path) -> Any:
    """Return vLLM's module, which imports nothing else of vLLM."""
    spec = importlib.util.spec_from_file_location("vllm_question_types", folder / MODULE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def main(folder: Path) -> None:
    """Send a checklist and print what came back."""
    types = load_question_types(folder)

    async def answer(request: web.Request) -> web.Response:
        body = await request.json()
        answers, diagnostics = {}, {}
        for name, given in body["questions"].items():
            question = types.build_question(
                name, given["type"], given["instructions"], given.get("criteria"), MOST_OPTIONS
            )
            count = len(question.options)
            shares = [2 * (count - at) / (count * (count + 1)) for at in range(count)]
            answers[name] = question.type.answer(question, shares, 0.9)
            diagnostics[name] = {"label_mass": 0.9, "argmax_is_label": True}
        usage = {"input_tokens": 100, "output_tokens": len(answers)}
        reply = {"answers": answers, "diagnostics": diagnostics, "usage": usage, "model": "m"}
        return web.json_response(reply)

    app = web.Application()
    app.router.add_post("/v1/systemone", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
    engine = create_engine(JudgeConfig(engine="systemone", model="m", base_url=url))
    labels = (None, AnswerLabels(("3", "2", "1")), AnswerLabels(("Yes", "No"), "NA"))
    items = ("Is it short?", "How clear is it, from 1 to 3?", "Is it polite?")
    graded = await engine.grade(GradingTask(b"k", "q", "c", "A text.", items, labels=labels), {})
    await engine.aclose()
    await runner.cleanup()
    # Shares fall linearly: 2/3, 1/3 of two labels and 3/6, 2/6, 1/6 of three.
    expected = (2 / 3, 0.5 + 0.5 * 2 / 6, (3 / 6) / (5 / 6))
    (version,) = folder.glob("vllm*.dist-info")
    print(f"{version.name.removesuffix('.dist-info')}, {graded.usage.requests} request")
    for item, one, known in zip(items, graded.answers, expected, strict=True):
        print(f"{item:30s} p_yes {one.p_yes:.4f} (known {known:.4f}), mass {one.mass}")
        if one.p_yes is None or abs(one.p_yes - known) > 1e-9:
            raise SystemExit("The engine read another probability.")


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
