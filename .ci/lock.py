"""Write the lock file of the development environment and the SBOM of the installed package.

    python .ci/lock.py

pip resolves `.[dev,release]` without installing it. `requirements-dev.lock` has every package with
its version and hash; `sbom.json` lists what a plain installation contains, in the CycloneDX format.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

ROOT = Path(__file__).parents[1]
VERSION = run_path(str(ROOT / "src" / "rocketeval" / "_version.py"))["__version__"]


def resolve(*wanted: str) -> list[dict[str, Any]]:
    """Return what pip would install, without this package."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run", "--ignore-installed"]
    done = subprocess.run(
        [*command, "--report", "-", *wanted], capture_output=True, text=True, check=True, cwd=ROOT
    )
    rows: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    own = [row for row in rows if row["metadata"]["name"].lower() != "rocketeval"]
    return sorted(own, key=lambda row: row["metadata"]["name"].lower())


def lock(rows: list[dict[str, Any]]) -> str:
    """Return the rows as a requirements file with hashes."""
    lines = ["# Written by .ci/lock.py: pip install --require-hashes -r requirements-dev.lock"]
    for row in rows:
        name, version = row["metadata"]["name"].lower(), row["metadata"]["version"]
        digest = row["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name}=={version} --hash=sha256:{digest}")
    return "\n".join(lines) + "\n"


def sbom(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the rows as a CycloneDX document."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": "rocketeval",
                "version": VERSION,
                "purl": f"pkg:pypi/rocketeval@{VERSION}",
            }
        },
        "components": [
            {
                "type": "library",
                "name": row["metadata"]["name"],
                "version": row["metadata"]["version"],
                "purl": f"pkg:pypi/{row['metadata']['name'].lower()}@{row['metadata']['version']}",
                "hashes": [
                    {
                        "alg": "SHA-256",
                        "content": row["download_info"]["archive_info"]["hashes"]["sha256"],
                    }
                ],
            }
            for row in rows
        ],
    }


def main() -> None:
    """Write both files."""
    (ROOT / "requirements-dev.lock").write_text(lock(resolve(".[dev,release]")))
    (ROOT / "sbom.json").write_text(json.dumps(sbom(resolve(".")), indent=2) + "\n")


if __name__ == "__main__":
    main()
