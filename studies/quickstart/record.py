"""Judge the quickstart with a real judge and record its answers, for `rocketeval init --recorded`.

    gguf=$(python studies/judges/fetch_weights.py qwen2.5-coder-1.5b)
    python studies/quickstart/record.py "$gguf"                        # with llama.cpp, or:
    python studies/quickstart/record.py http://127.0.0.1:8000/v1       # with serve_vllm.sh

Writes src/rocketeval/examples/recorded/qwen2.5-coder-1.5b-instruct.jsonl: the judge's identity,
then one line per item of every response. Record again whenever the grading prompt or the
quickstart's texts change: the recorded judge refuses unknown prompts.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from rocketeval.cli.progress import make_observer
from rocketeval.config import parse_config
from rocketeval.engines.base import PACKAGED
from rocketeval.engines.recorded import RecordedAnswer, RecordedJudge, write_record
from rocketeval.grading.methods import create_method
from rocketeval.grading.work import WorkList
from rocketeval.pipeline import Run

PACKAGE = Path(__file__).parents[2] / "src" / "rocketeval" / "examples"
PATIENT = 900.0
"""Seconds to wait for one item: a busy machine is slow, and a retry costs more."""
WEIGHTS = (
    "Qwen2.5-Coder-1.5B-Instruct (Apache-2.0), the GGUF file Q4_K_M with sha256 "
    "cc324af070c2ecbf..., as studies/judges/fetch_weights.py gets it"
)


def answers_of(run: Run) -> list[RecordedAnswer]:
    """Return every answer of a finished run, with its prompt."""
    store, method = run.store, create_method(run.config)
    work = WorkList(store, store.inputs, method, store.judge(), finished=())
    tasks = list(work.tasks())
    judged = store.judgments_of({task.key.hex() for task in tasks})
    return [
        RecordedAnswer.of(task, item, answer)
        for task in tasks
        for item, answer in enumerate(judged[task.key.hex()].answers)
    ]


def judge_of(place: str, threads: int | None) -> dict[str, object]:
    """Return the config's judge for the path of a GGUF file or the URL of a server."""
    if "://" in place:
        return {"model": PACKAGED, "base_url": place, "timeout": PATIENT}
    options = {} if threads is None else {"threads": threads}
    return {"engine": "llamacpp", "model": place, "options": options, "timeout": PATIENT}


async def record(judge: dict[str, object], output: Path) -> None:
    """Run the quickstart with this judge and write its recording.

    Judgments from before a failure stay in the cache, so the same command resumes.
    """
    with TemporaryDirectory() as folder:
        benchmark = {"path": str(PACKAGE / "quickstart")}
        cache = output.with_suffix(".cache")
        raw = {"benchmark": benchmark, "judge": judge, "output": folder, "cache": str(cache)}
        config = parse_config(raw)
        observer = make_observer(config, quiet=False)
        started = time.monotonic()
        try:
            run = Run(config, observer=observer)
            await run.all()
        finally:
            observer.closed()
        result = {**asdict(run.store.judge()), "model": PACKAGED, "weights": WEIGHTS}
        recorded = RecordedJudge(**{name: result[name] for name in RecordedJudge.model_fields})
        rows = sorted(answers_of(run), key=lambda row: (row.query, row.candidate, row.item))
    write_record(output, recorded, rows)
    shutil.rmtree(cache, ignore_errors=True)
    print(f"{len(rows)} answers in {time.monotonic() - started:.0f} s: {output}")


def main() -> None:
    """Record the named judge."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("judge", help="a GGUF file, or the URL of a server")
    parser.add_argument("--output", type=Path, default=PACKAGE / "recorded" / f"{PACKAGED}.jsonl")
    parser.add_argument("--threads", type=int, help="processor threads (default: llama.cpp's own)")
    given = parser.parse_args()
    asyncio.run(record(judge_of(given.judge, given.threads), given.output))


if __name__ == "__main__":
    main()
