"""Mistakes in the config and in the benchmark's files."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

from support.mistakes import Mistake, Place


def nothing(place: Place) -> None:
    """Change nothing; the mistake is in the command line."""


def no_config(place: Place) -> None:
    place.config.clear()


def config_text(text: str) -> Any:
    """Return a function that writes this text as the config."""
    return lambda place: (place.folder / "rocketeval.yaml").write_text(text)


def setting(section: str, **settings: Any) -> Any:
    """Return a function that changes a section of the config."""
    return lambda place: place.set(section, **settings)


def top(**settings: Any) -> Any:
    """Return a function that sets top-level settings."""
    return lambda place: place.config.update(settings)


def file(name: str, content: str | bytes) -> Any:
    """Return a function that replaces a benchmark file."""
    return lambda place: place.write(name, content)


def rows(name: str, *own: dict[str, Any]) -> Any:
    """Return a function that replaces a benchmark file with JSON lines."""
    return lambda place: place.rows(name, *own)


def added(name: str, *own: dict[str, Any]) -> Any:
    """Return a function that adds lines to a benchmark file."""

    def add(place: Place) -> None:
        import json

        path: Path = place.benchmark / name
        before = path.read_text() if path.exists() else ""
        path.write_text(before + "".join(json.dumps(row) + "\n" for row in own))

    return add


def label(query: str, candidate: str, value: Any) -> dict[str, Any]:
    return {"query_id": query, "candidate": candidate, "value": value}


def vote(query: str, a: str, b: str, winner: str = "a") -> dict[str, Any]:
    return {"query_id": query, "candidate_a": a, "candidate_b": b, "winner": winner}


def own_template(place: Place) -> None:
    (place.folder / "mine.txt").write_text("Is it good?")
    place.set("judge", template="mine.txt")


def cut_off(place: Place) -> None:
    place.write("queries.jsonl.gz", gzip.compress(QUERY.encode())[:-9])
    (place.benchmark / "queries.jsonl").unlink()


def unlabeled(place: Place) -> None:
    (place.benchmark / "votes.jsonl").unlink()
    place.run_once()


QUERY = '{"id": "sky", "text": "Why the sky?"}\n'

CONFIG = (
    Mistake("There is no config", no_config, ("rocketeval.yaml", "rocketeval init")),
    Mistake("The config is a folder", nothing, ("benchmark", "folder"), ("run", "benchmark")),
    Mistake(
        "The config is empty", config_text(""), ("rocketeval.yaml", "empty", "rocketeval init")
    ),
    Mistake(
        "Broken YAML",
        config_text("name: demo\nbenchmark: {path: benchmark\njudge: {model: x}\n"),
        ("rocketeval.yaml", "line 3"),
    ),
    Mistake(
        "A section occurs twice",
        config_text("benchmark: {path: benchmark}\njudge: {model: x}\njudge: {model: y}\n"),
        ("'judge'", "twice", "line 3"),
    ),
    Mistake(
        "A typo in a setting",
        setting("judge", modle="x"),
        ("judge.modle", "Did you mean 'model'"),
    ),
    Mistake(
        "Text where a number belongs",
        setting("ranking", bootstrap="many"),
        ("ranking.bootstrap", "number", "'many'"),
    ),
    Mistake(
        "A negative number",
        setting("judge", concurrency=-1),
        ("judge.concurrency", "greater than 0", "-1"),
    ),
    Mistake("A reversed scale", setting("scorer", scale=[10, 1]), ("scorer.scale", "[1, 10]")),
    Mistake(
        "A setting is missing",
        lambda place: place.config.pop("judge"),
        ("judge", "required"),
    ),
    Mistake(
        "A key in the config",
        setting("judge", api_key="sk-abc"),
        ("judge.api_key", "api_key_env", "environment"),
        never=("sk-abc",),
    ),
    Mistake(
        "A variable in the config",
        setting("judge", engine="openai", base_url="${JUDGE_URL}"),
        ("base_url", "${JUDGE_URL}", "not replaced", "OPENAI_BASE_URL"),
    ),
    Mistake(
        "An address without http://",
        setting("judge", engine="openai", base_url="127.0.0.1:8000/v1"),
        ("base_url", "127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1"),
    ),
    Mistake(
        "An unknown engine",
        setting("judge", engine="opanai"),
        ("engine", "'opanai'", "Did you mean 'openai'"),
    ),
    Mistake("An unknown scorer", setting("scorer", kind="maen"), ("scorer", "'maen'", "'mean'")),
    Mistake(
        "An unknown author",
        setting("author", kind="instanse"),
        ("author", "'instanse'", "'instance'"),
    ),
    Mistake(
        "An unknown benchmark format",
        setting("benchmark", kind="json"),
        ("benchmark", "'json'", "'jsonl'"),
    ),
    Mistake(
        "An author without an LLM",
        setting("author", kind="instance"),
        ("author.engine",),
    ),
    Mistake(
        "A cost limit without a price",
        top(max_cost=5),
        ("max_cost", "judge.price", "price"),
    ),
    Mistake(
        "A negative price",
        setting("judge", price={"prompt": -1, "completion": 1}),
        ("judge.price.prompt", "-1"),
    ),
    Mistake(
        "A missing template",
        setting("judge", template="missing.txt"),
        ("missing.txt", "`template`", "relative to the config"),
    ),
    Mistake(
        "A template without a placeholder",
        own_template,
        ("mine.txt", "{{response}}"),
    ),
    Mistake(
        "An unknown candidate in the config",
        setting("benchmark", candidates=["left", "rigth"]),
        ("'rigth'", "Did you mean 'right'", "benchmark.candidates"),
    ),
    Mistake(
        "An anchor that is not a candidate",
        setting("ranking", anchor="lef"),
        ("ranking.anchor", "'lef'", "'left'"),
    ),
    Mistake("A run name outside the output folder", top(name="../other"), ("name", "../other")),
)

QUERIES = (
    Mistake(
        "A missing benchmark",
        setting("benchmark", path="bench"),
        ("bench", "benchmark.path"),
    ),
    Mistake(
        "A missing queries file",
        lambda place: (place.benchmark / "queries.jsonl").unlink(),
        ("queries.jsonl", "benchmark.path"),
    ),
    Mistake("An empty queries file", file("queries.jsonl", ""), ("queries.jsonl", "empty")),
    Mistake(
        "A byte-order mark is accepted",
        lambda place: place.write(
            "queries.jsonl", b"\xef\xbb\xbf" + (place.benchmark / "queries.jsonl").read_bytes()
        ),
        ("left", "right"),
        code=0,
    ),
    Mistake(
        "A line is broken JSON",
        file("queries.jsonl", QUERY + '{"id": "sea", "text": "Why'),
        ("queries.jsonl:2", "JSON"),
    ),
    Mistake(
        "Not UTF-8 (Latin-1)",
        file("queries.jsonl", QUERY.encode() + '{"id": "sea", "text": "café"}\n'.encode("latin-1")),
        ("queries.jsonl:2", "UTF-8", "byte 27 is 0xe9", "iconv"),
    ),
    Mistake(
        "Not UTF-8 (UTF-16)",
        file("queries.jsonl", QUERY.encode("utf-16")),
        ("queries.jsonl:1", "UTF-16", "UTF-8"),
    ),
    Mistake(
        "A field is missing",
        file("queries.jsonl", QUERY + '{"id": "sea", "prompt": "Why?"}\n'),
        ("queries.jsonl:2", "'text'", "id, prompt"),
    ),
    Mistake(
        "A field of the wrong type",
        file("queries.jsonl", QUERY + '{"id": "sea", "text": ["Why?"]}\n'),
        ("queries.jsonl:2", "'text'", "text", '["Why?"]'),
    ),
    Mistake(
        "A JSON array instead of JSON lines",
        file("queries.jsonl", f"[{QUERY.strip()}]"),
        ("queries.jsonl:1", "one JSON object per line"),
    ),
    Mistake(
        "Two queries with the same id",
        file("queries.jsonl", QUERY + QUERY),
        ("queries.jsonl:2", "'sky'", "Two queries"),
    ),
    Mistake(
        "A query without text",
        rows(
            "queries.jsonl",
            {"id": "sky", "text": " "},
            {"id": "sea", "text": "Why the sea?"},
            {"id": "sun", "text": "Why the sun?"},
        ),
        ("without text", "'sky'"),
        code=0,
    ),
    Mistake(
        "A response to an unknown query",
        added("responses/left.jsonl", {"query_id": "skye", "text": "Blue."}),
        ("left.jsonl:4", "'skye'", "Did you mean 'sky'"),
    ),
    Mistake(
        "Two responses to one query",
        added("responses/left.jsonl", {"query_id": "sky", "text": "Blue."}),
        ("left.jsonl:4", "'left'", "'sky'", "two responses"),
    ),
    Mistake(
        "A response file without responses",
        file("responses/new.jsonl", ""),
        ("new.jsonl", "no response"),
    ),
    Mistake(
        "Responses as CSV",
        file("responses/new.csv", "query_id,text\nsky,Blue\n"),
        ("new.csv", "JSON lines"),
    ),
    Mistake(
        "A response that is null",
        added("responses/new.jsonl", {"query_id": "sky", "text": None}),
        ("new.jsonl:1", "'text'", "null", '""'),
    ),
    Mistake(
        "Empty and blank responses",
        rows(
            "responses/left.jsonl",
            {"query_id": "sky", "text": ""},
            {"query_id": "sea", "text": " \n"},
            {"query_id": "sun", "text": "Bright."},
        ),
        ("2 responses", "empty", "left on sky", "left on sea"),
        code=0,
    ),
    Mistake(
        "A candidate with missing responses",
        rows("responses/left.jsonl", {"query_id": "sky", "text": "Blue."}),
        ("2 responses", "left", "2 of 3"),
        code=0,
    ),
    Mistake(
        "A damaged gzip file",
        cut_off,
        ("queries.jsonl.gz", "Cannot read"),
    ),
)

GOLD = (
    Mistake(
        "Labels outside the scale",
        rows("labels.jsonl", label("sky", "left", 0), label("sea", "left", 87)),
        (
            "2 of 2",
            "`scorer.scale`",
            "outside the scale 1 to 10",
            "labels.jsonl:1",
            "'left' on 'sky'",
        ),
        code=0,
    ),
    Mistake(
        "A label that is not a number",
        rows("labels.jsonl", label("sky", "left", "good")),
        ("labels.jsonl:1", "'value'", "number", '"good"'),
    ),
    Mistake(
        "A label that is NaN",
        file("labels.jsonl", '{"query_id": "sky", "candidate": "left", "value": NaN}\n'),
        ("labels.jsonl:1", "NaN"),
    ),
    Mistake(
        "A label that is true",
        rows("labels.jsonl", label("sky", "left", True)),
        ("labels.jsonl:1", "'value'", "number", "true"),
    ),
    Mistake(
        "A label on an unknown query",
        rows("labels.jsonl", label("skye", "left", 5)),
        ("labels.jsonl:1", "'skye'", "Did you mean 'sky'"),
    ),
    Mistake(
        "Labels of an unknown candidate",
        rows("labels.jsonl", label("sky", "lefft", 5), label("sky", "left", 5)),
        ("1 of 2", "labels.jsonl:1", "do not exist", "'lefft' on 'sky'", "did you mean 'left'"),
        code=0,
    ),
    Mistake(
        "Votes on an unknown candidate",
        rows("votes.jsonl", vote("sky", "left", "rigth"), vote("sky", "left", "right")),
        ("1 of 2", "votes.jsonl:1", "do not exist", "'rigth' on 'sky'", "did you mean 'right'"),
        code=0,
    ),
    Mistake(
        "A vote on an unknown query",
        rows("votes.jsonl", vote("skye", "left", "right")),
        ("votes.jsonl:1", "'skye'", "Did you mean 'sky'"),
    ),
    Mistake(
        "A vote with an unknown winner",
        rows("votes.jsonl", vote("sky", "left", "right", "left")),
        ("votes.jsonl:1", "'left'", "a, b, tie"),
    ),
    Mistake(
        "A vote between a candidate and itself",
        rows("votes.jsonl", vote("sky", "left", "left")),
        ("votes.jsonl:1", "'left'", "itself"),
    ),
    Mistake(
        "No votes and no labels",
        unlabeled,
        ("votes", "labels"),
        command=("audit",),
        code=0,
    ),
)

CHECKLISTS = (
    Mistake(
        "No checklists",
        lambda place: (place.benchmark / "checklists.jsonl").unlink(),
        ("checklists.jsonl", "author.kind: instance"),
    ),
    Mistake(
        "A checklist of an unknown query",
        added("checklists.jsonl", {"query_id": "skye", "items": ["Is it blue?"]}),
        ("'skye'", "1 id", "checklists"),
        code=0,
    ),
    Mistake(
        "An empty checklist",
        rows(
            "checklists.jsonl",
            {"query_id": "sky", "items": []},
            {"query_id": "sea", "items": ["Is it wet?"]},
        ),
        ("2 queries", "sky, sun", "missing checklists"),
        code=3,
    ),
    Mistake(
        "The same item twice",
        rows(
            "checklists.jsonl",
            *(
                {"query_id": q, "items": ["Is it right?", "Is it right?"]}
                for q in ("sky", "sea", "sun")
            ),
        ),
        ("same item", "3", "'sky'", "rocketeval lint"),
        code=0,
    ),
    Mistake(
        "Checklists with one item",
        rows(
            "checklists.jsonl",
            *({"query_id": q, "items": ["Is it right?"]} for q in ("sky", "sea", "sun")),
        ),
        ("one item", "3", "'sky'"),
        code=0,
    ),
    Mistake(
        "Items that are not text",
        rows("checklists.jsonl", {"query_id": "sky", "items": ["Is it right?", 3]}),
        ("checklists.jsonl:1", "'items'", "item 2"),
    ),
    Mistake(
        "A missing checklist file",
        setting("author", kind="file", options={"file": "mine.yaml"}),
        ("mine.yaml", "rocketeval checklist --out"),
    ),
)
