"""Grade SummEval and Topical-Chat by dimension checklists, with one judge (CheckEval, section 3).

    python studies/papers/prepare.py
    python studies/papers/checkeval_grade.py qwen2.5-coder-1.5b-instruct --base-url http://127.0.0.1:8000/v1
    python studies/papers/checkeval_grade.py JUDGE --base-url URL --only topical_chat --sets ours
    python studies/papers/checkeval_grade.py JUDGE --engine scripted --limit 2    # fake answers

Question sets: `ours`, the seeds of the packaged dimension files; `grown`, the same after an author
LLM has diversified, elaborated and filtered them (by default the judge itself is the author);
`official`, the questions published with CheckEval, read from the data folder and written as a
dimension file. Each set is asked item by item, and with all questions of a dimension in one prompt
(the paper's way). Graded responses are not asked again, and a longer run only adds to a shorter
one.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from grade import RUNS, SUMMEVAL, TOPICAL_CHAT, judgments

from rocketeval.config import RunConfig, parse_config

DIMENSIONS = {"summeval": SUMMEVAL, "topical_chat": TOPICAL_CHAT}
PACKAGED = {"summeval": "summarization", "topical_chat": "dialogue"}
ALONE, TOGETHER = "checklist", "multi_item"

WORK: dict[tuple[str, str, str], int] = {
    ("summeval", "ours", ALONE): 12,
    ("topical_chat", "ours", ALONE): 24,
    ("topical_chat", "ours", TOGETHER): 12,
    ("summeval", "ours", TOGETHER): 6,
    ("topical_chat", "official", TOGETHER): 6,
    ("summeval", "official", TOGETHER): 3,
    ("topical_chat", "grown", ALONE): 6,
    ("summeval", "grown", ALONE): 6,
}
"""Number of queries by study, question set and method, in the order that prepare.py draws."""


def main() -> None:
    """Grade what the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("judge")
    parser.add_argument("--base-url")
    parser.add_argument("--engine", default="openai")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--only", choices=list(DIMENSIONS), action="append")
    parser.add_argument("--sets", help="ours, grown, official; several separated by commas")
    parser.add_argument("--methods", help=f"{ALONE}, {TOGETHER}; several separated by commas")
    parser.add_argument("--author-model", help="author of the set `grown` (default: the judge)")
    parser.add_argument("--author-url")
    parser.add_argument("--limit", type=int, help="only the first N queries of each")
    given = parser.parse_args()
    engine = {"engine": given.engine, "base_url": given.base_url}
    author = {"model": given.author_model or given.judge, **engine}
    if given.author_url:
        author["base_url"] = given.author_url
    for (study, questions, method), queries in WORK.items():
        if given.only and study not in given.only:
            continue
        if given.sets and questions not in given.sets.split(","):
            continue
        if given.methods and method not in given.methods.split(","):
            continue
        if questions == "official":
            write_official(given.data, study)
        for names in asked_together(study, method):
            config = checkeval_config(
                study, questions, method, names, given.judge, given.limit or queries, given.limit
            )
            asyncio.run(judgments.grade(with_engines(config, engine, author)))


def asked_together(study: str, method: str) -> list[tuple[str, ...]]:
    """Return the dimensions of each run: one per run if the judge sees all questions, else all."""
    names = DIMENSIONS[study]
    return [names] if method == ALONE else [(name,) for name in names]


def checkeval_config(
    study: str,
    questions: str,
    method: str,
    names: tuple[str, ...],
    judge: str,
    queries: int | None = None,
    limit: int | None = None,
) -> RunConfig:
    """Return the config of one run; a limited one has a separate name."""
    which = "" if method == ALONE else f"-{names[0]}"
    small = "" if limit is None else f"-first-{limit}"
    file = official_file(study) if questions == "official" else PACKAGED[study]
    steps = ["diversify", "elaborate", "filter"] if questions == "grown" else []
    options = {"file": str(file), "dimensions": names, "steps": steps, "on_failure": "skip"}
    return parse_config(
        {
            "name": f"checkeval-{study}-{questions}-{method}{which}-{judge}{small}",
            "benchmark": {"path": RUNS / "data" / study, "limit": queries},
            "judge": {
                "model": judge,
                "concurrency": 8 if method == ALONE else 16,
                "timeout": 900,
            },
            "author": {"kind": "dimension", "min_items": 1, "max_items": 10, "options": options},
            "method": {"kind": method},
            "output": RUNS,
            "cache": RUNS / ".cache",
        }
    )


def with_engines(
    config: RunConfig, engine: Mapping[str, Any], author: Mapping[str, Any]
) -> RunConfig:
    """Return the config with the judge's server and, if there is an author, its server."""
    raw = config.model_dump(mode="json", exclude_unset=True)
    raw["judge"] |= engine
    if raw["author"]["options"]["steps"]:
        raw["author"]["engine"] = dict(author)
    return parse_config(raw)


def official_file(study: str) -> Path:
    """Return the path of CheckEval's own questions as a dimension file."""
    return RUNS / "data" / study / "checkeval.yaml"


def write_official(data: Path, study: str) -> None:
    """Write CheckEval's questions, seeds and added ones, under its own sub-dimensions."""
    known = json.loads((data / "checkeval/questions.json").read_text(encoding="utf-8"))
    dimensions: dict[str, Any] = {}
    for name in DIMENSIONS[study]:
        parts: dict[str, dict[str, None]] = {}
        for kind in ("seed", "diversification", "elaboration"):
            result = known[f"{study}_questions/{name}_{kind}"]
            (definition,) = result["definition"].values()
            for part, text in result["sub_aspect"].items():
                found = re.findall(r"[^?]+\?", text)
                parts.setdefault(part, {}).update(dict.fromkeys(map(str.strip, found)))
        dimensions[name] = {"definition": definition, "sub_dimensions": distinct(parts)}
    official_file(study).write_text(
        yaml.safe_dump({"task": study, "dimensions": dimensions}, sort_keys=False, width=1000),
        encoding="utf-8",
    )


def distinct(parts: Mapping[str, Mapping[str, None]]) -> dict[str, Any]:
    """Return the sub-dimensions with their questions; a repeated question keeps its first place."""
    seen: set[str] = set()
    made = {}
    for part, questions in parts.items():
        new = []
        for text in questions:
            if text.casefold() not in seen:
                seen.add(text.casefold())
                new.append(text)
        if new:
            made[part] = {"definition": part, "seeds": new}
    return made


if __name__ == "__main__":
    main()
