"""Absurd values in configs and input files end with a sentence, before anything is paid."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from rocketeval.config import RunConfig, parse_config
from rocketeval.errors import ConfigError
from support.command import cli
from support.make import write_benchmark, write_jsonl

BASE: dict[str, Any] = {
    "benchmark": {"path": "benchmark"},
    "judge": {"engine": "scripted", "model": "scripted"},
    "ranking": {"bootstrap": 50},
}
LONGEST = 120
"""Seconds within which a refusal ends, on a slow and busy machine; a hang would not end."""
LAUGHS = """\
benchmark: {path: benchmark}
judge:
  engine: openai
  model: m
  extra_body:
    a: &a [x, x, x, x, x, x, x, x, x, x]
    b: &b [*a, *a, *a, *a, *a, *a, *a, *a, *a, *a]
    c: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]
    d: &d [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c]
    e: &e [*d, *d, *d, *d, *d, *d, *d, *d, *d, *d]
    f: &f [*e, *e, *e, *e, *e, *e, *e, *e, *e, *e]
    g: [*f, *f, *f, *f, *f, *f, *f, *f, *f, *f]
"""
ITSELF = "benchmark: &b\n  path: benchmark\n  options: {again: *b}\njudge: {model: m}\n"


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the config with one setting changed."""
    raw: dict[str, Any] = json.loads(json.dumps(BASE))
    *sections, name = path.split(".")
    place = raw
    for section in sections:
        place = place.setdefault(section, {})
    place[name] = value
    return raw


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("ranking.seed", -1),
        ("ranking.seed", 2**70),
        ("scorer.seed", 2**33),
        ("evolve.seed", -5),
        ("ranking.tie_margin", 1e308),
        ("ranking.bootstrap", 10**9),
        ("ranking.anchor_rating", 1e300),
        ("judge.concurrency", 10**9),
        ("judge.timeout", 1e300),
        ("judge.patience", float("inf")),
        ("judge.top_logprobs", 10**12),
        ("judge.canaries", 2),
        ("scorer.scale", [0, 1e308]),
        ("scorer.folds", 10**9),
        ("author.attempts", 10**9),
        ("author.max_items", 10**9),
        ("distributed.batch", 10**12),
        ("distributed.actors", 10**9),
        ("evolve.rounds", 10**9),
        ("evolve.experts", [10**9]),
        ("max_cost", 1e300),
        ("benchmark.limit", 10**15),
        ("judge.extra_body", {"n": 2**70}),
        ("judge.options", {"n": 2**70}),
    ],
)
def test_every_number_is_bounded(tmp_path: Path, path: str, value: object) -> None:
    """A number out of bounds is named by its path, within seconds."""
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(changed(path, value)))
    started = time.monotonic()
    done = cli(tmp_path, "run", code=2)
    assert time.monotonic() - started < LONGEST
    assert path.rpartition(".")[2] in done.stderr or "too large" in done.stderr
    assert not (tmp_path / "runs").exists()


def test_every_number_of_the_config_has_an_upper_bound() -> None:
    """No number in any section accepts 1e300 or ten to the power of thirty."""

    def fields(section: Any, path: tuple[str, ...]) -> None:
        for name, field in section.model_fields.items():
            kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
            inner = [kind for kind in kinds if hasattr(kind, "model_fields")]
            if inner:
                fields(inner[0], (*path, name))
            elif int in kinds or float in kinds:
                for absurd in (10**30, -(10**30)) if int in kinds else (1e300, -1e300):
                    with pytest.raises(ConfigError):
                        parse_config(changed(".".join((*path, name)), absurd))

    fields(RunConfig, ())


@pytest.mark.parametrize("text", [LAUGHS, ITSELF], ids=["laughs", "itself"])
def test_aliases_that_explode_are_refused(tmp_path: Path, text: str) -> None:
    """Aliases that repeat each other, or themselves, end with a sentence."""
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(text)
    started = time.monotonic()
    done = cli(tmp_path, "run", code=2)
    assert "contains itself" in done.stderr or "values" in done.stderr
    assert time.monotonic() - started < LONGEST


@pytest.mark.parametrize("value", [1e308, -1e308, 1e7, "1e400"])
@pytest.mark.parametrize("file", ["labels", "ratings"])
def test_absurd_labels_are_refused(tmp_path: Path, value: object, file: str) -> None:
    """A label or rating that no scale has is named with its line."""
    write_benchmark(tmp_path / "benchmark")
    row = {"query_id": "sky", "candidate": "left", "value": value, "score": value, "rating": value}
    write_jsonl(tmp_path / "benchmark" / f"{file}.jsonl", [row])
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(BASE))
    done = cli(tmp_path, "run", code=2)
    assert f"{file}.jsonl:1" in done.stderr


def test_a_file_name_that_is_no_text_is_refused(tmp_path: Path) -> None:
    """A response file, or a folder, whose name is not UTF-8 ends with a sentence."""
    write_benchmark(tmp_path / "benchmark")
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(BASE))
    strange = os.fsencode(tmp_path / "benchmark" / "responses") + b"/br\xff.jsonl"
    Path(os.fsdecode(strange)).write_text('{"query_id": "sky", "text": "x"}\n')
    assert "Unicode" in cli(tmp_path, "run", code=2).stderr
    Path(os.fsdecode(strange)).unlink()
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/in\xff"))
    folder.mkdir()
    write_benchmark(folder / "benchmark")
    (folder / "rocketeval.yaml").write_text(yaml.safe_dump(BASE))
    assert "Unicode" in cli(folder, "run", code=2).stderr


def test_a_key_with_a_control_character_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The variable is named, the key is not shown."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-12\x01345678")
    write_benchmark(tmp_path / "benchmark")
    raw = changed("judge", {"model": "m", "base_url": "http://127.0.0.1:9/v1"})
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(raw))
    done = cli(tmp_path, "run", code=4)
    assert "OPENAI_API_KEY" in done.stderr
    assert "sk-secret" not in done.stderr


def test_secrets_of_requests_are_not_in_the_run(tmp_path: Path) -> None:
    """`run.yaml` keeps the request settings without their secrets."""
    write_benchmark(tmp_path / "benchmark")
    raw = changed("author", {"engine": {"model": "a", "extra_body": {"api_key": "sk-very-secret"}}})
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(raw))
    cli(tmp_path, "run", "-q")
    for path in (tmp_path / "runs").rglob("*"):
        if path.is_file():
            assert b"sk-very-secret" not in path.read_bytes()
