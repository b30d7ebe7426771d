"""Build a release, check it, and print its figures.

    python .ci/release.py [--commit HEAD] [--out dist]

The commit is exported twice, into folders with different names and permissions, and built in each
with the time of the commit: all files must have the same SHA-256. `twine check` reads the metadata;
the lists below say what the files must contain and must not contain. The SBOM names, in the
CycloneDX format, what pip installs with the wheel. Then `.ci/wheel.py WHEEL` tries it, and
`perf/startup.py --against COMMIT` compares the startup time.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

from lock import ROOT, resolve, sbom

INSIDE = (
    "rocketeval/py.typed",
    "rocketeval/report/page/app.js",
    "rocketeval/report/page/THIRD_PARTY.txt",
    "rocketeval/examples/quickstart/queries.jsonl",
    "rocketeval/examples/recorded/qwen2.5-coder-1.5b-instruct.jsonl",
    "rocketeval/prompts/templates/checklist.txt",
)
"""Files without which an installation is incomplete."""
TOP_OF_SDIST = {"src", "CHANGELOG.md", "LICENSE", "README.md", "PKG-INFO", "pyproject.toml"}
TOP_OF_SDIST |= {".gitignore", "hatch_build.py"}
"""All that a source distribution contains: no tests, studies or data."""


def build(commit: str, folder: Path, mask: int) -> dict[str, Path]:
    """Build a wheel and a source distribution of a commit; return them by name."""
    folder.mkdir()
    archive = subprocess.run(["git", "archive", commit], check=True, capture_output=True, cwd=ROOT)
    before = os.umask(mask)
    try:
        subprocess.run(["tar", "x", "-C", str(folder)], input=archive.stdout, check=True)
        subprocess.run(
            [sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", "."],
            check=True,
            stdout=subprocess.DEVNULL,
            cwd=folder,
            env=os.environ | {"SOURCE_DATE_EPOCH": committed(commit)},
        )
    finally:
        os.umask(before)
    return {path.name: path for path in sorted((folder / "dist").iterdir())}


def committed(commit: str) -> str:
    """Return the time of a commit, in seconds since 1970."""
    command = ["git", "log", "-1", "--format=%ct", commit]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout


def digest(path: Path) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def contents(path: Path) -> dict[str, bytes]:
    """Return the members of a wheel or a source distribution, with what they contain."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return {name: wheel.read(name) for name in wheel.namelist()}
    with tarfile.open(path) as sdist:
        files = [member for member in sdist.getmembers() if member.isfile()]
        return {file.name.partition("/")[2]: sdist.extractfile(file).read() for file in files}  # type: ignore[union-attr]


def check_contents(path: Path) -> None:
    """Exit if a file lacks a member that it needs, or has one that does not belong in it."""
    names = set(contents(path))
    prefix = "" if path.suffix == ".whl" else "src/"
    if missing := [name for name in INSIDE if prefix + name not in names]:
        sys.exit(f"{path.name} lacks {missing}")
    tops = {name.partition("/")[0] for name in names}
    allowed = {"rocketeval"} | {top for top in tops if top.endswith(".dist-info")}
    if extra := tops - (TOP_OF_SDIST if prefix else allowed):
        sys.exit(f"{path.name} contains what does not belong in it: {sorted(extra)}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--commit", default="HEAD")
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    args = parser.parse_args()
    shutil.rmtree(args.out, ignore_errors=True)
    args.out.mkdir(parents=True)
    with tempfile.TemporaryDirectory() as scratch:
        first = build(args.commit, Path(scratch) / "first", 0o022)
        again = build(args.commit, Path(scratch) / "another folder", 0o077)
        for name, path in first.items():
            if digest(path) != digest(again[name]):
                one, two = contents(path), contents(again[name])
                changed = sorted(n for n in one.keys() | two.keys() if one.get(n) != two.get(n))
                sys.exit(f"{name} differs between two builds: {changed or 'order, times or modes'}")
            check_contents(path)
            shutil.copy(path, args.out)
            print(f"{path.stat().st_size:>10,} bytes  {digest(path)}  {name}")
    built = [str(args.out / name) for name in first]
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *built], check=True)
    (wheel,) = (name for name in built if name.endswith(".whl"))
    rows = resolve(wheel)
    target = Path(wheel).with_suffix(".cdx.json")
    target.write_text(json.dumps(sbom(rows), indent=2) + "\n")
    print(f"{target.name}: RocketEval and the {len(rows)} packages that it requires")


if __name__ == "__main__":
    main()
