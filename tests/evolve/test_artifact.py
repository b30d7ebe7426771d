"""Saved evaluators: identical predictions after loading, or a clear error."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

from evolve.planted import Planted, planted_labels, planted_pairs
from rocketeval.config import EvolveConfig, ScorerConfig
from rocketeval.errors import ArtifactError
from rocketeval.evolve.artifact import load_evaluator, save_evaluator
from rocketeval.evolve.evaluator import Evaluator, fit_evaluator
from rocketeval.records import Gold, JudgeFingerprint
from rocketeval.scoring import npz
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.artifact import Provenance, save_scorer
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.npz import digest

JUDGE = JudgeFingerprint("openai", "judge-1b", "chat", "1.0", "top20", "aa", "bb")
PLANTED: dict[str, Callable[..., Planted]] = {"pairs": planted_pairs, "scores": planted_labels}


@cache
def fitted(task: str = "pairs") -> Evaluator:
    """A small evaluator with two experts."""
    found = fit_evaluator(PLANTED[task](30).table, EvolveConfig(folds=3), experts=2)
    return found.documented({"each-graded": JUDGE}, {"created": "2026-11-15T08:00:00Z"})


def saved(path: Path) -> Path:
    """A file with the evaluator."""
    save_evaluator(fitted(), path)
    return path


def rewritten(path: Path, change: Callable[[dict[str, Any], dict[str, Any]], None]) -> Path:
    """The file with a changed header or arrays, and a matching digest."""
    arrays = npz.unpack(path.read_bytes())
    header = orjson.loads(arrays["header"].tobytes())
    change(header, arrays)
    arrays["header"] = np.frombuffer(orjson.dumps(header), np.uint8)
    arrays.pop("digest")
    path.write_bytes(npz.pack({**arrays, "digest": digest(arrays)}))
    return path


@pytest.mark.parametrize("task", ["pairs", "scores"])
def test_loaded_evaluator_predicts_the_same(task: str, tmp_path: Path) -> None:
    """Bit for bit, also with missing answers."""
    path, evaluator = tmp_path / "evaluator.npz", fitted(task)
    save_evaluator(evaluator, path)
    again, table = load_evaluator(path), PLANTED[task](20, seed=5).table
    table.answers[0, 0] = np.nan
    before, after = evaluator.predict_table(table), again.predict_table(table)
    for name in ("outcome", "confidence", "expert"):
        assert getattr(before, name).tobytes() == getattr(after, name).tobytes()
    assert len(again.experts) == 2


def test_all_fields_are_restored(tmp_path: Path) -> None:
    """Perspectives, judges, provenance, router and attention."""
    evaluator, again = fitted(), load_evaluator(saved(tmp_path / "evaluator.npz"))
    assert again.about_responses == evaluator.about_responses
    assert again.about_queries == evaluator.about_queries
    assert again.judges == {"each-graded": JUDGE}
    assert again.provenance == evaluator.provenance
    assert (again.asking, again.task, again.scale) == ("each", "pairs", (-1.0, 1.0))
    assert again.router.perspectives == evaluator.router.perspectives
    assert again.router.reach == evaluator.router.reach
    for one, two in zip(again.experts, evaluator.experts, strict=True):
        assert one.attention.tolist() == two.attention.tolist()
        assert one.settings == two.settings


def test_same_fit_gives_same_bytes(tmp_path: Path) -> None:
    """The file depends only on the reference data, the answers and the settings."""
    paths = tmp_path / "one.npz", tmp_path / "two.npz"
    for path in paths:
        evaluator = fit_evaluator(planted_pairs(20).table, EvolveConfig(folds=3), experts=2)
        save_evaluator(evaluator, path)
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_missing_file_is_named(tmp_path: Path) -> None:
    """With a hint."""
    with pytest.raises(ArtifactError, match="Cannot read the saved evaluator") as caught:
        load_evaluator(tmp_path / "none.npz")
    assert caught.value.hint


@pytest.mark.parametrize("place", [0.2, 0.5, 0.9])
def test_a_damaged_file_is_refused(place: float, tmp_path: Path) -> None:
    """A flipped bit anywhere, or a truncated file."""
    path = saved(tmp_path / "evaluator.npz")
    content = bytearray(path.read_bytes())
    content[int(place * len(content))] ^= 0x10
    path.write_bytes(bytes(content))
    with pytest.raises(ArtifactError):
        load_evaluator(path)
    path.write_bytes(bytes(content[: int(place * len(content))]))
    with pytest.raises(ArtifactError):
        load_evaluator(path)


def test_scorer_file_is_refused(tmp_path: Path) -> None:
    """The header names the type of the file."""
    answers = AnswerTable(["q"], ["c"], np.array([0.5]), np.array([0, 1]))
    scorer = MeanScorer().fit(answers, Gold())
    made = Provenance.from_keys(JUDGE, [], {}, "now")
    save_scorer(scorer, ScorerConfig(kind="mean"), tmp_path / "scorer.npz", provenance=made)
    with pytest.raises(ArtifactError, match="not a saved evaluator"):
        load_evaluator(tmp_path / "scorer.npz")


def test_another_version_is_refused(tmp_path: Path) -> None:
    """The error names the release that wrote the file."""
    path = rewritten(saved(tmp_path / "evaluator.npz"), lambda header, _: header.update(version=99))
    with pytest.raises(ArtifactError, match="version 99"):
        load_evaluator(path)


def _wrong_perspective(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["about_responses"][0]["kind"] = "query"


def _another_task(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["task"] = "poems"


def _mirrored_scores(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["task"] = "scores"


def _one_expert_less(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["settings"].pop()


def _no_judges(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["judges"] = {"each-graded": {"engine": "other"}}


def _heavy_weight(_: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["router.weights"] = arrays["router.weights"] + 1.0


def _not_a_number(_: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["experts.values"] = np.full_like(arrays["experts.values"], np.nan)


def _circle(_: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["experts.forest.right"] = np.zeros_like(arrays["experts.forest.right"])


def _more_arrays(_: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["extra"] = np.zeros(3)


def _short_fill(_: dict[str, Any], arrays: dict[str, Any]) -> None:
    arrays["fill"] = arrays["fill"][:-1]


def _no_scale(header: dict[str, Any], _: dict[str, Any]) -> None:
    header["scale"] = [2.0, 1.0]


@pytest.mark.parametrize(
    "change",
    [
        _wrong_perspective,
        _another_task,
        _mirrored_scores,
        _one_expert_less,
        _no_judges,
        _heavy_weight,
        _not_a_number,
        _circle,
        _more_arrays,
        _short_fill,
        _no_scale,
    ],
)
def test_invalid_content_is_refused(
    change: Callable[[dict[str, Any], dict[str, Any]], None], tmp_path: Path
) -> None:
    """Even with a matching digest, which is not a signature."""
    path = rewritten(saved(tmp_path / "evaluator.npz"), change)
    with pytest.raises(ArtifactError):
        load_evaluator(path)


@pytest.mark.parametrize(
    "notes",
    [
        {"threshold": "0.9"},
        {"threshold": True},
        {"threshold": 1.5},
        {"threshold": [0.5]},
        {"learned_from": 5},
        {"learned_from": None},
        {"learned_from": "abcd"},
        {"learned_from": [5]},
        {"learned_from": ["query 7"]},
    ],
)
def test_used_notes_are_checked(notes: dict[str, Any], tmp_path: Path) -> None:
    """The threshold must be from 0 to 1, and the training queries a list of hashes."""
    path = tmp_path / "evaluator.npz"
    save_evaluator(fitted().documented({}, notes), path)
    with pytest.raises(ArtifactError, match=r"its threshold is|what it learned from is not"):
        load_evaluator(path)


@pytest.mark.parametrize(
    "notes",
    [{"threshold": None}, {"threshold": 0}, {"threshold": 0.9, "learned_from": ["00ff"]}, {}],
)
def test_valid_notes_are_restored(notes: dict[str, Any], tmp_path: Path) -> None:
    """They are optional."""
    path = tmp_path / "evaluator.npz"
    save_evaluator(fitted().documented({}, notes), path)
    assert load_evaluator(path).provenance.items() >= notes.items()


@pytest.mark.parametrize(
    "text",
    ["", "Is it\nkind?", "Is it\u2028kind?", "Is it \u202ekind?", "Is\u200b it?", "x" * 501, 5],
)
def test_perspective_must_be_one_plain_line(text: object, tmp_path: Path) -> None:
    """As in a pool file: it appears in prompts, reports and terminals."""

    def change(header: dict[str, Any], _: dict[str, Any]) -> None:
        header["about_responses"][0]["text"] = text

    path = rewritten(saved(tmp_path / "evaluator.npz"), change)
    with pytest.raises(ArtifactError, match="perspective"):
        load_evaluator(path)


def test_non_json_notes_are_not_written(tmp_path: Path) -> None:
    """No file is left behind."""
    path = tmp_path / "evaluator.npz"
    with pytest.raises(ArtifactError, match="cannot be saved"):
        save_evaluator(fitted().documented({}, {"figures": float("nan")}), path)
    assert not path.exists()
