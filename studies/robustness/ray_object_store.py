"""Kill a command whose tasks and results are in an object store, and run it again.

    python -m venv store && store/bin/pip install 'moto[server]'
    python studies/robustness/ray_object_store.py --server store/bin/moto_server [--record]

The store is moto's S3 server on loopback, which pyarrow uses as it uses S3. The judge is the
scripted one, slowed down. The script prints what the second command found in the bucket, what it
asked again, and whether its scores equal those of a run on one machine.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml
from pyarrow import fs

sys.path.insert(0, str(Path(__file__).parents[1]))
from loopback import free_port, listens
from robustness.ray_cluster import LocalCluster, local_cluster, wait_until
from robustness.ray_faults import SAME, write_benchmark

from rocketeval.distributed.staging import Staging, open_staging
from rocketeval.store.run import RunStore

RECORDED = Path(__file__).parent / "recorded" / "ray_object_store.txt"
BUCKET = "evaluations"
QUERIES, CANDIDATES, BATCH = 20, 6, 4


def main() -> None:
    args = parse_arguments()
    os.environ |= {"AWS_ACCESS_KEY_ID": "any", "AWS_SECRET_ACCESS_KEY": "any"}
    with tempfile.TemporaryDirectory() as scratch, local_cluster() as cluster:
        folder = Path(scratch)
        write_benchmark(folder / "benchmark", QUERIES, CANDIDATES)
        with object_store(args.server) as place:
            lines = kill_and_resume(folder, cluster, place)
    print("\n".join(lines))
    if args.record:
        RECORDED.write_text("\n".join(lines) + "\n")


@contextmanager
def object_store(command: str) -> Iterator[str]:
    """Yield the URI of a folder in a bucket; the server ends with the block."""
    port = free_port()
    server = subprocess.Popen(
        [command, "-H", "127.0.0.1", "-p", str(port)], stderr=subprocess.DEVNULL
    )
    address = f"127.0.0.1:{port}"
    try:
        wait_until(lambda: listens(port), "the store's server")
        fs.S3FileSystem(
            endpoint_override=address, scheme="http", region="here", allow_bucket_creation=True
        ).create_dir(BUCKET)
        yield f"s3://{BUCKET}/runs?scheme=http&endpoint_override={address}&region=here"
    finally:
        server.kill()
        server.wait(30)


def kill_and_resume(folder: Path, cluster: LocalCluster, place: str) -> list[str]:
    """Kill the command, resume it and return the result, one line per fact."""
    write_config(folder, "whole", None)
    run_command(folder, cluster, "whole").communicate()
    write_config(folder, "stored", place)
    store = RunStore(folder / "runs" / "stored")
    killed = run_command(folder, cluster, "stored")
    wait_until(lambda: durable(store, place) >= 6 * BATCH, "the first batches in the bucket")
    killed.kill()
    killed.communicate()
    wait_until(lambda: not cluster.judges(), "the end of the killed command's workers")
    found = durable(store, place)
    result, _ = run_command(folder, cluster, "stored").communicate()
    facts = json.loads(result)["stages"]["grade"]
    same = [
        (store.path / name).read_bytes() == (folder / "runs" / "whole" / name).read_bytes()
        for name in SAME
    ]
    staged = staging(store, place)
    left = staged.filesystem.get_file_info(fs.FileSelector(staged.root, recursive=True))
    return [
        f"{QUERIES * CANDIDATES} responses, batches of {BATCH}, staging in s3://{BUCKET}/runs",
        f"durable in the bucket after kill -9: {found}",
        f"judged in the end: {facts['judged']}, unfinished {facts['unfinished']}",
        f"asked again: {facts['ray']['asked_again']}, doubled rows {facts['ray']['duplicates']}",
        f"files equal to those of one machine: {sum(same)} of {len(same)}",
        f"files left in the bucket: {sum(info.type == fs.FileType.File for info in left)}",
    ]


def staging(store: RunStore, place: str) -> Staging:
    return open_staging(place, store.path, store.manifest().run_id)


def durable(store: RunStore, place: str) -> int:
    """Return the number of durably finished responses."""
    if not (store.path / "manifest.json").exists():
        return 0
    staged = staging(store, place)
    job = staged.job()
    return 0 if job is None else int(staged.folder(job.id).finished(job.rows).sum())


def write_config(folder: Path, name: str, place: str | None) -> None:
    config: dict[str, Any] = {
        "name": name,
        "benchmark": {"path": "benchmark"},
        "judge": {
            "engine": "scripted",
            "model": "scripted",
            "concurrency": 2,
            "options": {"delay": 0.5},
        },
        "ranking": {"bootstrap": 50},
        "cache": None,
    }
    if place is not None:
        config["distributed"] = {"cluster": "ray", "actors": 2, "batch": BATCH, "staging": place}
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(config))


def run_command(folder: Path, cluster: LocalCluster, name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "rocketeval.cli.main", "run", f"{name}.yaml", "--json"]
    environment = {**os.environ, "RAY_ADDRESS": cluster.address}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--server", default="moto_server", help="moto's command")
    parser.add_argument("--record", action="store_true", help="store the result in recorded/")
    return parser.parse_args()


if __name__ == "__main__":
    main()
