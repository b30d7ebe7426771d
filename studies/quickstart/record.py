"""Judge the quickstart with a real judge and record its answers, for `rocketeval init --recorded`.

    pip install "rocketeval[llamacpp]"
    gguf=$(python studies/judges/fetch_weights.py qwen2.5-coder-1.5b)
    python studies/quickstart/record.py "$gguf"

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
from rocketeval.engines.base import Engine, EngineAnswers, create_engine
from rocketeval.engines.recorded import PACKAGED, RecordedAnswer, RecordedJudge, write_record
from rocketeval.pipeline import Run
from rocketeval.records import Answer, GradingTask

PACKAGE = Path(__file__).parents[2] / "src" / "rocketeval" / "examples"
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


async def record(gguf: Path, output: Path, threads: int | None) -> None:
    """Run the quickstart with the judge in `gguf` and write its record."""
    options = {} if threads is None else {"threads": threads}
    with TemporaryDirectory() as folder:
        config = parse_config(
            {
                "benchmark": {"path": str(PACKAGE / "quickstart")},
                "judge": {"engine": "llamacpp", "model": str(gguf), "options": options},
                "output": folder,
            }
        )
        recording = Recording(create_engine(config.judge))
        observer = make_observer(config, quiet=False)
        started = time.monotonic()
        try:
            identity = await recording.identify()
            await Run(config, judge=recording, observer=observer).all()
        finally:
            observer.closed()
            await recording.aclose()
    judge = RecordedJudge(**{**asdict(identity), "model": PACKAGED}, weights=WEIGHTS)
    rows = sorted(recording.answers, key=lambda row: (row.query, row.candidate, row.item))
    write_record(output, judge, rows)
    print(f"{len(rows)} answers in {time.monotonic() - started:.0f} s: {output}")


def main() -> None:
    """Record the judge in the GGUF file that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("gguf", type=Path)
    parser.add_argument("--output", type=Path, default=PACKAGE / "recorded" / f"{PACKAGED}.jsonl")
    parser.add_argument("--threads", type=int, help="processor threads (default: llama.cpp's own)")
    given = parser.parse_args()
    asyncio.run(record(given.gguf, given.output, given.threads))


if __name__ == "__main__":
    main()
