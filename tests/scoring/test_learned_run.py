"""A run with a learning scorer: split, saved, reused, and refused on its training data."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rocketeval.config import RunConfig
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.pipeline import Run
from support.make import make_config, write_jsonl

CANDIDATES = [f"c{number}" for number in range(9)]
QUERIES = [f"q{number}" for number in range(8)]
LABELLED = CANDIDATES[:7]
TREES = {"trees": 5}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Return a benchmark of nine candidates, seven of them labeled, with votes on two."""
    folder, chance = tmp_path / "benchmark", random.Random(0)
    write_jsonl(folder / "queries.jsonl", [{"id": q, "text": f"Why {q}?"} for q in QUERIES])
    for name in CANDIDATES:
        rows = [{"query_id": q, "text": f"{name} on {q}"} for q in QUERIES]
        write_jsonl(folder / "responses" / f"{name}.jsonl", rows)
    items = ["Is it right?", "Is it clear?", "Is it short?"]
    write_jsonl(folder / "checklists.jsonl", [{"query_id": q, "items": items} for q in QUERIES])
    labels = [
        {"query_id": q, "candidate": name, "value": chance.randint(1, 10)}
        for q in QUERIES
        for name in LABELLED
    ]
    write_jsonl(folder / "labels.jsonl", labels)
    votes = [
        {"query_id": q, "candidate_a": "c0", "candidate_b": "c8", "winner": chance.choice("ab")}
        for q in QUERIES
    ]
    write_jsonl(folder / "votes.jsonl", votes)
    return tmp_path


def config(home: Path, name: str = "run", **scorer: Any) -> RunConfig:
    """Return a run with the given scorer."""
    return make_config(home, name, scorer={"kind": "extra_trees", "options": TREES, **scorer})


async def finished(settings: RunConfig) -> Path:
    """Return the folder of a finished run."""
    return (await Run(settings).all()).path


def basis_of(run: Path) -> dict[str, set[str]]:
    """Return the basis of each candidate's scores."""
    found: dict[str, set[str]] = {}
    for row in pq.read_table(run / "scores.parquet").to_pylist():
        found.setdefault(row["candidate"], set()).add(row["basis"])
    return found


async def test_run_holds_out_candidates_and_names_them(home: Path) -> None:
    """Two of seven are held out; the others are scored out-of-fold."""
    outcome = await Run(config(home)).all()
    learned = outcome.stages.score.learned
    assert len(learned.held_out) == 2
    assert learned.labels == 8 * 5
    seen = {name: {"out_of_fold"} for name in learned.fitted}
    assert basis_of(outcome.path) == {name: {"unseen"} for name in CANDIDATES} | seen
    assert outcome.audit.labels["held-out labels"]["judge"].responses == 16
    assert outcome.audit.labels["labels out of fold"]["judge"].responses == 40
    assert "mean of answers" in outcome.audit.agreement
    assert (outcome.audit.refused.labels, outcome.audit.refused.votes) == (0, 0)


async def test_scoring_again_writes_the_same_bytes(home: Path) -> None:
    """Scores, scorer and ranking depend only on seeds."""
    settings = config(home)
    run = await finished(settings)
    names = ("scores.parquet", "scorer.npz", "item_weights.json", "ranking.json", "audit.json")
    first = {name: (run / name).read_bytes() for name in names}
    again = Run(settings)
    again.score()
    again.rank()
    again.audit()
    assert {name: (run / name).read_bytes() for name in names} == first


async def test_item_weights_are_kept(home: Path) -> None:
    """One weight per item for every query with a forest."""
    run = await finished(config(home))
    weights = json.loads((run / "item_weights.json").read_text())
    assert weights
    assert all(len(found) == 3 and abs(sum(found) - 1) < 1e-9 for found in weights.values())


async def test_saved_scorer_gives_unseen_candidates_the_same_scores(home: Path) -> None:
    """In another run, scores of unseen candidates are equal to the last bit."""
    run = await finished(config(home))
    again = await finished(config(home, "again", fitted=str(run / "scorer.npz")))
    first, second = (pq.read_table(path / "scores.parquet").to_pylist() for path in (run, again))
    pairs = [(a, b) for a, b in zip(first, second, strict=True) if a["basis"] == "unseen"]
    assert pairs
    assert all(a["score"] == b["score"] and b["basis"] == "unseen" for a, b in pairs)


async def test_saved_scorer_is_not_audited_on_its_training_labels(home: Path) -> None:
    """They are refused and counted; held-out labels remain."""
    run = await finished(config(home))
    outcome = await Run(config(home, "again", fitted=str(run / "scorer.npz"))).all()
    assert outcome.audit.refused.labels == 40
    assert list(outcome.audit.labels) == ["held-out labels"]
    assert outcome.stages.score.basis == {"fitted": 40, "unseen": 32}
    assert "labels refused because the scorer was fitted" in outcome.report.read_text()


async def test_saved_scorer_of_another_judge_is_refused(home: Path) -> None:
    """Answers of two judges are not comparable."""
    run = await finished(config(home))
    other = config(home, "other", fitted=str(run / "scorer.npz"))
    judge = other.judge.model_copy(update={"model": "another"})
    with pytest.raises(ArtifactError, match="another judge"):
        await Run(other.model_copy(update={"judge": judge})).all()


async def test_saved_scorer_is_refused_for_a_changed_checklist(home: Path) -> None:
    """Same length, other items: its weights would not apply."""
    run = await finished(config(home))
    other = ["Is it kind?", "Is it clear?", "Is it short?"]
    rows = [{"query_id": q, "items": other} for q in QUERIES]
    write_jsonl(home / "benchmark" / "checklists.jsonl", rows)
    with pytest.raises(ArtifactError, match="checklists of 8 queries have changed"):
        await Run(config(home, "other", fitted=str(run / "scorer.npz"))).all()


async def test_saved_scorer_of_another_scale_is_refused(home: Path) -> None:
    """Its scores would be read on the wrong scale."""
    run = await finished(config(home))
    with pytest.raises(ArtifactError, match=r"scale: \[1, 10\]`, but the run has `scale: \[0, 1\]"):
        await Run(config(home, "other", scale=[0, 1], fitted=str(run / "scorer.npz"))).all()


async def test_run_without_labels_has_a_hint(home: Path) -> None:
    """The error names the scorer that needs none, before any request is sent."""
    (home / "benchmark" / "labels.jsonl").unlink()
    run = Run(config(home))
    with pytest.raises(ConfigError, match="use the scorer `mean`"):
        await run.all()
    assert not run.store.finished()


async def test_damaged_saved_scorer_is_found_before_any_request(home: Path) -> None:
    """A run that cannot be scored costs nothing."""
    (home / "scorer.npz").write_bytes(b"not a scorer")
    run = Run(config(home, fitted=str(home / "scorer.npz")))
    with pytest.raises(ArtifactError, match=r"scorer\.npz"):
        await run.all()
    assert not run.store.finished()


async def test_labels_off_the_scale_are_found_before_any_request(home: Path) -> None:
    """A wrong scale is found before it costs anything."""
    run = Run(config(home, scale=[0, 1]))
    with pytest.raises(ConfigError, match="is not on the scale 0 to 1"):
        await run.all()
    assert not run.store.finished()


async def test_saved_scorer_brings_its_item_weights_and_is_compared_with_the_mean(
    home: Path,
) -> None:
    """Even if the config names no kind."""
    run = await finished(config(home))
    again = Run(make_config(home, "again", scorer={"fitted": str(run / "scorer.npz")}))
    outcome = await again.all()
    kept = json.loads((outcome.path / "item_weights.json").read_text())
    assert kept
    assert kept == json.loads((run / "item_weights.json").read_text())
    (methods,) = outcome.audit.labels.values()
    assert list(methods) == ["judge", "mean of answers", "hard yes/no", "longer response"]


async def test_another_scorer_leaves_no_old_files(home: Path) -> None:
    """With the mean, no scorer and no weights of an earlier one remain."""
    run = await finished(config(home))
    await finished(make_config(home))
    assert not (run / "scorer.npz").exists()
    assert not (run / "item_weights.json").exists()
