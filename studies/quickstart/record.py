"""Judge the quickstart with a real judge and record its answers, for `rocketeval init --recorded`.

    gguf=$(python studies/judges/fetch_weights.py qwen2.5-coder-1.5b)
    python studies/quickstart/record.py "$gguf"                        # with llama.cpp, or:
    python studies/quickstart/record.py http://127.0.0.1:8000/v1       # with serve_vllm.sh

Writes src/rocketeval/examples/recorded/qwen2.5-coder-1.5b-instruct.jsonl: the judge as it
identified itself, then a line per item of every response. Make it again whenever the grading
prompt or the quickstart's texts change: the recorded judge refuses prompts it does not know.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rocketeval.cli.progress import make_observer
from rocketeval.config import parse_config
from rocketeval.engines.base import PACKAGED, Engine, EngineAnswers, create_engine
from rocketeval.engines.recorded import RecordedAnswer, RecordedJudge, write_record
from rocketeval.pipeline import Run
from rocketeval.records import Answer, GradingTask

PACKAGE = Path(__file__).parents[2] / "src" / "rocketeval" / "examples"
PATIENT = 900.0
"""Seconds to wait for one item: a busy machine is slow, and asking again costs more."""
WEIGHTS = (
    "Qwen2.5-Coder-1.5B-Instruct, GGUF Q4_K_M, Apache-2.0 (Qwen); fetched by "
    "studies/judges/fetch_weights.py, which names their source and pins their sha256"
)


class Recording:
    """An engine that passes everything on to another and keeps the answers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.answers: list[RecordedAnswer] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Let the other engine answer, and keep what it says."""
        graded = await self._engine.grade(task, known)
        if graded.failure:
            raise SystemExit(f"{task.candidate} on {task.query_id}: {graded.failure}")
        rows = enumerate(graded.answers)
        self.answers += [RecordedAnswer.of(task, item, answer) for item, answer in rows]
        return graded


def judge_of(place: str, threads: int | None) -> dict[str, object]:
    """Return the config's judge for the path of a GGUF file or the address of a server."""
    if "://" in place:
        return {"model": PACKAGED, "base_url": place, "timeout": PATIENT}
    options = {} if threads is None else {"threads": threads}
    return {"engine": "llamacpp", "model": place, "options": options, "timeout": PATIENT}


async def record(judge: dict[str, object], output: Path) -> None:
    """Run the quickstart with this judge and write its record."""
    with TemporaryDirectory() as folder:
        benchmark = {"path": str(PACKAGE / "quickstart")}
        config = parse_config({"benchmark": benchmark, "judge": judge, "output": folder})
        recording = Recording(create_engine(config.judge))
        observer = make_observer(config, quiet=False)
        started = time.monotonic()
        try:
            identity = await recording.identify()
            await Run(config, judge=recording, observer=observer).all()
        finally:
            observer.closed()
            await recording.aclose()
    told = {**asdict(identity), "model": PACKAGED, "weights": WEIGHTS}
    recorded = RecordedJudge(**{name: told[name] for name in RecordedJudge.model_fields})
    rows = sorted(recording.answers, key=lambda row: (row.query, row.candidate, row.item))
    write_record(output, recorded, rows)
    print(f"{len(rows)} answers in {time.monotonic() - started:.0f} s: {output}")


def main() -> None:
    """Record the judge that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("judge", help="a GGUF file, or the address of a server")
    parser.add_argument("--output", type=Path, default=PACKAGE / "recorded" / f"{PACKAGED}.jsonl")
    parser.add_argument("--threads", type=int, help="processor threads (default: llama.cpp's own)")
    given = parser.parse_args()
    asyncio.run(record(judge_of(given.judge, given.threads), given.output))


if __name__ == "__main__":
    main()
