"""Versions of the documentation site side by side, as static files with relative links.

A folder has one subfolder per version, `versions.json` for the selector in the header, and pages
that redirect: `index.html` and everything below `latest/` lead to the newest version. There are no
symbolic links and no absolute addresses, so any static host and any sub-path works.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path

LATEST = "latest"
REDIRECT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>RocketEval documentation</title>
<link rel="canonical" href="{target}">
<noscript><meta http-equiv="refresh" content="0; url={target}"></noscript>
<script>location.replace("{target}" + location.search + location.hash)</script>
</head>
<body><a href="{target}">RocketEval documentation</a></body>
</html>
"""


@dataclass(frozen=True)
class Version:
    """One version in the selector, with the fields that Zensical's page reads."""

    version: str
    title: str
    aliases: tuple[str, ...]


def list_versions(names: list[str]) -> list[Version]:
    """Return the versions, newest first; the newest is also `latest`.

    >>> [version.version for version in list_versions(["0.2", "0.10", "0.9"])]
    ['0.10', '0.9', '0.2']
    """
    ordered = sorted(names, key=_numbers, reverse=True)
    return [
        Version(name, name, (LATEST,) if position == 0 else ())
        for position, name in enumerate(ordered)
    ]


def publish(built: Path, folder: Path, name: str) -> list[Version]:
    """Put a built site into the folder as one version; leave the other versions as they are."""
    _numbers(name)
    target = folder / name
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(built, target)
    versions = list_versions([path.name for path in folder.iterdir() if _is_version(path)])
    listed = json.dumps([asdict(version) for version in versions], indent=2) + "\n"
    (folder / "versions.json").write_text(listed, encoding="utf-8")
    _redirect(folder, versions[0].version)
    return versions


def _redirect(folder: Path, newest: str) -> None:
    """Write the start page and `latest/`, with one page per page of the newest version."""
    shutil.rmtree(folder / LATEST, ignore_errors=True)
    (folder / "index.html").write_text(REDIRECT.format(target=f"{newest}/"), encoding="utf-8")
    for page in sorted((folder / newest).rglob("*.html")):
        below = page.relative_to(folder / newest)
        up = "../" * len(below.parts)
        # A page in a folder is linked without its file name, as Zensical does.
        linked = below.as_posix().removesuffix("index.html")
        target = folder / LATEST / below
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(REDIRECT.format(target=f"{up}{newest}/{linked}"), encoding="utf-8")


def _is_version(path: Path) -> bool:
    return path.is_dir() and re.fullmatch(r"\d+(\.\d+)*", path.name) is not None


def _numbers(name: str) -> tuple[int, ...]:
    """Return a version as numbers to sort by; raise ValueError if it is not one."""
    if not re.fullmatch(r"\d+(\.\d+)*", name):
        raise ValueError(
            f"{name!r} is not a version of the site. Use numbers and dots, such as 0.2."
        )
    return tuple(int(part) for part in name.split("."))
