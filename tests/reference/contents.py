"""The content of files as plain JSON: Parquet rows, .npz arrays, the blocks of a report."""

from __future__ import annotations

import base64
import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

_HEAD = re.compile(r'<script type="application/json" id="head">(.*?)</script>', re.DOTALL)
_BLOCK = re.compile(r'<script type="application/octet-stream" id="block-([^"]+)">([^<]*)</script>')
_FALLBACK = re.compile(r'<main id="app"><noscript>(.*?)</noscript></main>', re.DOTALL)
_TITLE = re.compile(r"<title>(.*?)</title>", re.DOTALL)
_LINES = (".csv", ".yaml", ".md", ".tex", ".txt")
_IGNORED = (".lock", ".checksums.jsonl", ".made_from.json")
_NUMBERS = {"scores": "<f4", "answers": "<u2"}
"""Blocks of a report that are plain numbers; all others are JSON."""


def folder_content(folder: Path) -> dict[str, Any]:
    """Return the content of every file below a folder by its path; judgments as one table."""
    found: dict[str, Any] = {}
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_dir() or path.suffix in _IGNORED or path.name in _IGNORED:
            continue
        if path.parent.name == "ledger":
            # Judgments are written as they arrive, so their order and files are irrelevant.
            place = f"{name.rpartition('/')[0]}/*"
            found.setdefault(place, []).extend(_judgments(path))
        else:
            found[name] = file_content(path)
    for name, rows in found.items():
        if name.endswith("ledger/*"):
            rows.sort(key=lambda row: row["key"])
    return found


def file_content(path: Path) -> Any:
    """Return the content of a file; raise ValueError for an unknown kind of file."""
    if path.suffix == ".json":
        content = json.loads(path.read_bytes())
        if path.name == "manifest.json" and content.get("checksums"):
            # The hashes cover the order in which concurrent work was written.
            content["checksums"] = sorted(content["checksums"])
        return content
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]
    if path.suffix == ".parquet":
        return _parquet(path)
    if path.suffix == ".npz":
        return _arrays(path)
    if path.suffix == ".html":
        return report_content(path.read_text(encoding="utf-8"))
    if path.suffix in _LINES:
        return path.read_text(encoding="utf-8").splitlines()
    raise ValueError(f"{path}: what is this?")


def report_content(page: str) -> dict[str, Any]:
    """Return the title, the table without scripts, the head and all blocks of a report."""
    (head,), (fallback,), (title,) = (find.findall(page) for find in (_HEAD, _FALLBACK, _TITLE))
    blocks = {name: _block(name, block) for name, block in _BLOCK.findall(page)}
    return {
        "title": title,
        "fallback": fallback.splitlines(),
        "head": json.loads(head),
        "blocks": blocks,
    }


def _block(name: str, block: str) -> Any:
    content = gzip.decompress(base64.b64decode(block))
    if name not in _NUMBERS:
        return json.loads(content)
    numbers = np.frombuffer(content, _NUMBERS[name])
    return [None if number != number else number for number in numbers.tolist()]


def _parquet(path: Path) -> dict[str, Any]:
    table = pq.read_table(path)
    columns = {field.name: str(field.type) for field in table.schema}
    return {"columns": columns, "rows": table.to_pylist()}


def _judgments(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return rows
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def _arrays(path: Path) -> dict[str, Any]:
    """Return the header and the arrays, without the digest, which also covers the time."""
    with np.load(path, allow_pickle=False) as arrays:
        found = {name: arrays[name] for name in arrays.files if name != "digest"}
    header = json.loads(bytes(found.pop("header")))
    numbers = {
        name: {"type": array.dtype.str, "shape": list(array.shape), "values": array.tolist()}
        for name, array in found.items()
    }
    return {"header": header, **numbers}
