"""Compare a model inside Ray's workers with the same model in one process, answer by answer.

    PYTHON studies/distributed/vllm_on_ray.py [--model FOLDER] [--items 4] [--dtypes NAME ...]
        [--record]

PYTHON is that of an environment with vLLM, Ray and rocketeval: create one with
`studies/judges/serve_vllm.sh --install`, then install 'ray[data]' and rocketeval into it. The model
is a folder that `studies/judges/convert_to_hf.py` wrote; the default is smollm2-135m-instruct-bf16
in $ROCKETEVAL_WEIGHTS (~/.cache/rocketeval/weights).

300 responses with up to four items each are judged five times with `engine: vllm`, always by new
processes with an empty prefix cache: three times in one process, by one worker on Ray, and by two
workers on a local cluster of two nodes. Every pair of runs is compared; the three single-process
runs show how well the engine repeats itself. Every engine has one thread, so that the arithmetic is
the same. Seconds cover the whole command, including the start of Python, the workers and vLLM.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import yaml
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))
from distributed.short_answers import ITEMS, write_short_answers
from robustness.ray_cluster import LocalCluster, local_cluster

from rocketeval.scoring.read_answers import read_answers
from rocketeval.store.run import RunStore

RECORDED = Path(__file__).parent / "recorded" / "vllm_on_ray.txt"
WEIGHTS = Path(os.environ.get("ROCKETEVAL_WEIGHTS", "~/.cache/rocketeval/weights")).expanduser()
BATCH = 20
LOOK_SECONDS = 1.0


@dataclass(frozen=True)
class Graded:
    """A finished run."""

    p_yes: NDArray[np.float64]
    responses: int
    seconds: float
    workers: int = 0
    nodes: int = 0
    """Number of nodes with workers."""


class Workers:
    """A counter of the judging processes on a cluster's own nodes while a command runs."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._nodes = [cluster._cluster.head_node, *cluster.nodes]
        self._ended = threading.Event()
        self._seen: list[list[int]] = [[0] * len(self._nodes)]

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Poll until the end of the block."""
        looking = threading.Thread(target=self._look)
        looking.start()
        try:
            yield
        finally:
            self._ended.set()
            looking.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_SECONDS):
            self._seen.append([len(self._cluster.judges(node)) for node in self._nodes])

    @property
    def most(self) -> int:
        """Return the largest number of workers at once."""
        return max(map(sum, self._seen))

    @property
    def nodes(self) -> int:
        """Return the largest number of nodes with workers at once."""
        return max(sum(map(bool, seen)) for seen in self._seen)


def judge_settings(model: Path, dtype: str) -> dict[str, object]:
    return {
        "engine": "vllm",
        "model": str(model),
        "min_mass": 0.0,
        "options": {
            "dtype": dtype,
            "max_model_len": 2048,
            # Compiling would take longer than this little judging.
            "engine_args": {"enforce_eager": True, "kv_cache_memory_bytes": 1 << 29},
        },
    }


def grade(folder: Path, name: str, judge: Mapping[str, object], actors: int) -> Graded:
    """Judge in a separate process; without actors, in that process itself."""
    place = {"cluster": "ray", "actors": actors, "batch": BATCH} if actors else {}
    config = {
        "name": name,
        "benchmark": {"path": "benchmark"},
        "judge": judge,
        "cache": None,
        "distributed": place,
    }
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))
    command = [sys.executable, "-m", "rocketeval.cli.main", "run", f"{name}.yaml"]
    command += ["--only", "grade", "--quiet"]
    started = time.monotonic()
    ended = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    seconds = time.monotonic() - started
    if ended.returncode:
        sys.exit(f"{name}: exit code {ended.returncode}\n" + ended.stdout.decode())
    answers, _ = read_answers(RunStore(folder / "runs" / name))
    return Graded(answers.p_yes, len(answers.query_ids), seconds)


def grade_on_cluster(
    folder: Path, name: str, judge: Mapping[str, object], actors: int, nodes: int
) -> Graded:
    """Judge with workers of a cluster that exists only for this run."""
    with local_cluster(nodes=nodes - 1) as cluster:
        os.environ["RAY_ADDRESS"] = cluster.address
        workers = Workers(cluster)
        try:
            with workers.counted():
                found = grade(folder, name, judge, actors)
        finally:
            del os.environ["RAY_ADDRESS"]
    return Graded(found.p_yes, found.responses, found.seconds, workers.most, workers.nodes)


def compare(title: str, one: Graded, other: Graded) -> str:
    """Return one line on how far two runs agree."""
    apart = np.abs(one.p_yes - other.p_yes)
    flips = int(np.sum((one.p_yes > 0.5) != (other.p_yes > 0.5)))
    return (
        f"{title:<42}{np.mean(apart == 0):>9.2%}{np.max(apart):>20.2g}{np.mean(apart):>17.2g}"
        f"{flips:>7}"
    )


HEADING = f"{'':<42}{'equal':>9}{'largest difference':>20}{'mean difference':>17}{'flips':>7}"
LOCAL = ("process 1", "process 2", "process 3")


def examine(folder: Path, model: Path, dtype: str) -> list[str]:
    """Judge five times in one precision and return the comparison."""
    judge = judge_settings(model, dtype)
    runs: dict[str, Graded] = {}

    def report(title: str, graded: Graded) -> None:
        runs[title] = graded
        print(f"{dtype}, {title}: {graded.seconds:.0f} s", file=sys.stderr, flush=True)

    for number, title in enumerate(LOCAL):
        report(title, grade(folder, f"{dtype}-local-{number}", judge, 0))
    report("Ray, 1 worker", grade_on_cluster(folder, f"{dtype}-one", judge, 1, 1))
    report("Ray, 2 workers", grade_on_cluster(folder, f"{dtype}-two", judge, 2, 2))
    first = runs[LOCAL[0]]
    return [
        "",
        f"{dtype}: {first.responses} responses, {first.p_yes.size} answers, of which "
        f"{np.unique(first.p_yes).size} differ and {np.mean(first.p_yes > 0.5):.0%} are yes",
        *(describe(title, graded) for title, graded in runs.items()),
        HEADING,
        *(
            compare(f"{one} and {other}", runs[one], runs[other])
            for one, other in combinations(runs, 2)
        ),
    ]


def describe(title: str, graded: Graded) -> str:
    """Return one line on a run."""
    seen = f", {graded.workers} seen on {graded.nodes} nodes" if graded.workers else ""
    speed = graded.responses / graded.seconds
    return f"{title}: {graded.seconds:.0f} s, {speed:.1f} responses/s{seen}"


def prepare_environment() -> None:
    """Make vLLM's CPU build quiet and single-threaded, here and in every worker."""
    os.environ |= {
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": "1",
        "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    }
    openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
    if openmp.exists():
        os.environ["LD_PRELOAD"] = str(openmp)


def main() -> None:
    args = parse_arguments()
    if not (args.model / "config.json").exists():
        sys.exit(f"{args.model} is not a converted judge; run studies/judges/convert_to_hf.py")
    prepare_environment()
    lines = [f"{args.model.name}, vLLM on the CPU, one thread per engine, batches of {BATCH}"]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        write_short_answers(folder / "benchmark", args.items)
        for dtype in args.dtypes:
            lines += examine(folder, args.model.resolve(), dtype)
            if args.record:
                RECORDED.parent.mkdir(exist_ok=True)
                RECORDED.write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, default=WEIGHTS / "smollm2-135m-instruct-bf16")
    parser.add_argument("--items", type=int, default=len(ITEMS), choices=range(1, len(ITEMS) + 1))
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--record", action="store_true", help="store the table in recorded/")
    return parser.parse_args()


if __name__ == "__main__":
    main()
