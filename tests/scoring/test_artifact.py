"""Saved scorers: the same scores to the last bit, or an error with the reason."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.errors import ArtifactError
from rocketeval.hashing import content_hash
from rocketeval.records import Gold, JudgeFingerprint, Label, Vote
from rocketeval.scoring import npz
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.artifact import Provenance, load_scorer, save_scorer
from rocketeval.scoring.base import SCORERS, Saveable, Scorer, State, create_scorer
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.npz import digest

JUDGE = JudgeFingerprint("openai", "judge-1b", "chat", "1.0", "top20", "aa", "bb")
KEYS = [content_hash("cell", number).hex() for number in range(5)]
MADE = Provenance.from_keys(JUDGE, KEYS, {"q1": "ab"}, "2026-11-15T08:00:00Z")
KINDS = SCORERS.names()


def example(queries: int = 4, candidates: int = 9) -> tuple[AnswerTable, Gold]:
    """Return answers with gaps, and labels and votes that follow them with noise."""
    random = np.random.default_rng(5)
    ids, names, parts, labels, votes = [], [], [], [], []
    for query in range(queries):
        values = []
        for number in range(candidates):
            p_yes = random.uniform(size=3 + query)
            values.append(float(np.clip(np.round(1 + 9 * p_yes.mean() + random.normal()), 1, 10)))
            p_yes[0] = np.nan if number == 1 else p_yes[0]
            ids.append(f"q{query}")
            names.append(f"c{number}")
            parts.append(p_yes)
            labels.append(Label(ids[-1], names[-1], values[-1]))
            if number:
                winner = "a" if values[-1] > values[-2] else "b"
                votes.append(Vote(ids[-1], names[-1], names[-2], winner))
    offsets = np.cumsum([0, *map(len, parts)]).astype(np.int64)
    return AnswerTable(ids, names, np.concatenate(parts), offsets), Gold(labels, votes)


ANSWERS, GOLD = example()


@cache
def fitted(kind: str) -> tuple[Scorer, ScorerConfig]:
    """Return a fitted scorer of `kind` with its settings."""
    if not issubclass(SCORERS.get(kind), Saveable):
        pytest.skip(f"a scorer of kind {kind} cannot be saved")
    learn_from = "votes" if kind == "pooled_logistic" else "labels"
    small = {"trees": 7} if kind in ("extra_trees", "random_forest") else {}
    config = ScorerConfig(kind=kind, learn_from=learn_from, options=small)
    return create_scorer(config).fit(ANSWERS, GOLD), config


def saved(path: Path, kind: str = "extra_trees") -> Path:
    """Return a file with a fitted scorer."""
    scorer, config = fitted(kind)
    save_scorer(scorer, config, path, provenance=MADE)
    return path


def rewritten(path: Path, changes: Mapping[str, NDArray[Any] | None]) -> Path:
    """Return the file with other arrays (None removes one) and a matching digest."""
    arrays = {**npz.unpack(path.read_bytes()), **changes}
    kept = {name: array for name, array in arrays.items() if array is not None}
    kept.pop("digest", None)
    path.write_bytes(npz.pack({**kept, "digest": digest(kept)}))
    return path


def reheaded(path: Path, **changes: Any) -> Path:
    """Return the file with another header and a matching digest."""
    header = orjson.loads(npz.unpack(path.read_bytes())["header"].tobytes())
    text = orjson.dumps({**header, **changes})
    return rewritten(path, {"header": np.frombuffer(text, np.uint8)})


@pytest.mark.parametrize("kind", KINDS)
def test_saved_scorer_gives_the_same_scores(kind: str, tmp_path: Path) -> None:
    """Every saveable kind restores its scores to the last bit."""
    scorer, config = fitted(kind)
    path = saved(tmp_path / "scorer.npz", kind)
    loaded = load_scorer(path)
    assert type(loaded.scorer) is type(scorer)
    assert loaded.config == config
    assert loaded.scorer.predict(ANSWERS).tobytes() == scorer.predict(ANSWERS).tobytes()


@pytest.mark.parametrize("kind", KINDS)
def test_incomplete_state_is_refused(kind: str, tmp_path: Path) -> None:
    """No part of the state can be removed, added or emptied unnoticed."""
    path = saved(tmp_path / "scorer.npz", kind)
    whole = path.read_bytes()
    header = orjson.loads(npz.unpack(whole)["header"].tobytes())
    for name in header["arrays"]:
        path.write_bytes(whole)
        reheaded(path, arrays=[other for other in header["arrays"] if other != name])
        rewritten(path, {f"state.{name}": None})
        with pytest.raises(ArtifactError):
            load_scorer(path)
    for name in header["state"]:
        path.write_bytes(whole)
        reheaded(path, state={key: v for key, v in header["state"].items() if key != name})
        with pytest.raises(ArtifactError):
            load_scorer(path)


ODD = (None, [], {}, "x", -1, 1e308, [[]], {"x": None}, [None, "x"])


@pytest.mark.parametrize("kind", KINDS)
def test_invalid_header_is_refused(kind: str, tmp_path: Path) -> None:
    """Any header with a valid digest loads or raises ArtifactError."""
    path = saved(tmp_path / "scorer.npz", kind)
    whole = path.read_bytes()
    header = orjson.loads(npz.unpack(whole)["header"].tobytes())
    changes = [{name: odd} for name in header for odd in ODD]
    changes += [
        {"state": {**header["state"], name: odd}} for name in header["state"] for odd in ODD
    ]
    refused = 0
    for change in changes:
        path.write_bytes(whole)
        try:
            load_scorer(reheaded(path, **change))
        except ArtifactError:
            refused += 1
    assert refused >= len(changes) // 2


def test_mean_refuses_a_learned_state() -> None:
    """A state with content is not the mean's."""
    with pytest.raises(ArtifactError, match="not from a mean scorer"):
        MeanScorer.restore(ScorerConfig(), State({"weights": [1]}, {}))


def test_provenance_round_trips(tmp_path: Path) -> None:
    """Judge, time and training judgments are restored."""
    found = load_scorer(saved(tmp_path / "scorer.npz")).provenance
    assert (found.judge, found.created) == (JUDGE, MADE.created)
    assert found.learned_from([KEYS[3], None, "00" * 16, KEYS[0]]).tolist() == [
        True,
        *[False] * 2,
        True,
    ]
    assert [row.tobytes().hex() for row in found.fitted_on] == sorted(KEYS)


def test_scorer_without_training_has_no_judgments(tmp_path: Path) -> None:
    """An empty list of keys can be saved, loaded and queried."""
    config = ScorerConfig()
    empty = Provenance.from_keys(JUDGE, [], {}, "now")
    save_scorer(MeanScorer(), config, tmp_path / "mean.npz", provenance=empty)
    found = load_scorer(tmp_path / "mean.npz").provenance
    assert found.learned_from(KEYS).tolist() == [False] * len(KEYS)
    assert found.learned_from([]).tolist() == []


def test_answers_of_another_judge_are_refused() -> None:
    """The error names what differs; the same judge passes."""
    MADE.check_judge(replace(JUDGE))
    with pytest.raises(ArtifactError, match=r"another judge's .*model 'judge-1b' -> 'judge-7b'"):
        MADE.check_judge(replace(JUDGE, model="judge-7b"))


def test_same_fit_gives_the_same_bytes(tmp_path: Path) -> None:
    """The file has only the fit and its provenance: no clock, no order of keys."""
    again = Provenance.from_keys(JUDGE, [*reversed(KEYS), KEYS[0]], {"q1": "ab"}, MADE.created)
    scorer, config = fitted("extra_trees")
    save_scorer(scorer, config, tmp_path / "again.npz", provenance=again)
    assert saved(tmp_path / "once.npz").read_bytes() == (tmp_path / "again.npz").read_bytes()


def test_local_paths_are_not_saved(tmp_path: Path) -> None:
    """`fitted` is a local path and is not kept."""
    config = ScorerConfig(fitted=tmp_path / "secret-folder")
    save_scorer(MeanScorer(), config, tmp_path / "mean.npz", provenance=MADE)
    assert b"secret-folder" not in (tmp_path / "mean.npz").read_bytes()
    assert load_scorer(tmp_path / "mean.npz").config.fitted is None


def test_numpy_reads_the_file(tmp_path: Path) -> None:
    """It is an ordinary .npz without pickled objects."""
    with np.load(saved(tmp_path / "scorer.npz"), allow_pickle=False) as found:
        header = orjson.loads(found["header"].tobytes())
        assert found["fitted_on"].shape == (len(KEYS), 16)
        assert sorted(found.files) == sorted(
            ["digest", "fitted_on", "header", *(f"state.{name}" for name in header["arrays"])]
        )
    assert header["config"]["kind"] == "extra_trees"
    assert header["versions"].keys() == {"rocketeval", "numpy", "scikit-learn"}


def test_changed_byte_is_detected_or_harmless(tmp_path: Path) -> None:
    """A flipped byte raises ArtifactError or (in zip metadata) changes no score."""
    path = saved(tmp_path / "scorer.npz")
    whole = path.read_bytes()
    scores = load_scorer(path).scorer.predict(ANSWERS).tobytes()
    random = np.random.default_rng(7)
    directory = whole.index(b"PK\x01\x02")
    places = [*random.integers(len(whole), size=300), *range(directory, len(whole), 3)]
    refused = []
    for place in places:
        damaged = bytearray(whole)
        damaged[place] ^= int(random.integers(1, 256))
        path.write_bytes(damaged)
        try:
            assert load_scorer(path).scorer.predict(ANSWERS).tobytes() == scores
        except ArtifactError as error:
            refused.append(error)
    assert len(refused) > 300
    assert all(str(path) in error.message and error.hint for error in refused)


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.7, 0.99, 0.9999])
def test_truncated_file_is_refused(share: float, tmp_path: Path) -> None:
    """The error names the file and has a hint."""
    path = saved(tmp_path / "scorer.npz")
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(
        ArtifactError, match=r"scorer\.npz .*truncated, damaged or not an \.npz"
    ) as caught:
        load_scorer(path)
    assert "Fit and save the scorer again" in caught.value.hint


def test_missing_file_is_named(tmp_path: Path) -> None:
    """The hint names the setting to check."""
    with pytest.raises(ArtifactError, match=r"Cannot read .*none\.npz: No such file") as caught:
        load_scorer(tmp_path / "none.npz")
    assert "scorer.fitted" in caught.value.hint


def test_changed_value_does_not_match_the_digest(tmp_path: Path) -> None:
    """A changed number in an otherwise valid file is detected."""
    path = saved(tmp_path / "scorer.npz")
    arrays = npz.unpack(path.read_bytes())
    arrays["state.number"][0] += 1e-9
    path.write_bytes(npz.pack(arrays))
    with pytest.raises(ArtifactError, match=r"scorer\.npz is damaged: its digest does not match"):
        load_scorer(path)


@pytest.mark.parametrize("name", ["header", "fitted_on", "digest"])
def test_missing_part_is_named(name: str, tmp_path: Path) -> None:
    """Any missing part of the file is named."""
    path = saved(tmp_path / "scorer.npz")
    arrays = npz.unpack(path.read_bytes())
    del arrays[name]
    path.write_bytes(npz.pack(arrays))
    with pytest.raises(ArtifactError, match=f"it has no {name}"):
        load_scorer(path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"schema": "somebody.else"}, r"does not name the schema 'rocketeval\.scorer'"),
        ({"version": 2}, r"format version 2, written by RocketEval .*reads version 1"),
        ({"version": None}, "format version None"),
        ({"config": {"kind": "sorcery"}}, r"kind 'sorcery', which is not installed"),
        ({"config": {"kind": "os:system"}}, r"kind 'os:system', which is not installed"),
        ({"config": {"kind": "mean", "folds": 1}}, "its config has a mistake"),
        ({"config": {"kind": "mean", "spell": 1}}, "its config has a mistake"),
        ({"config": {"kind": "mean"}}, "not from a mean scorer"),
        ({"config": {"kind": "mean", "options": {"x": 1}}}, "not from a mean scorer"),
        ({"arrays": ["nothing"]}, "its arrays do not match"),
        ({"judge": {"model": "m"}}, "is not a saved scorer"),
    ],
)
def test_foreign_header_is_refused(changes: dict[str, Any], words: str, tmp_path: Path) -> None:
    """Another schema, version, kind or config is named, even with a valid digest."""
    path = reheaded(saved(tmp_path / "scorer.npz"), **changes)
    with pytest.raises(ArtifactError, match=words):
        load_scorer(path)


def test_no_module_named_by_the_file_is_imported(tmp_path: Path) -> None:
    """A kind that looks like a module name is not imported."""
    path = reheaded(saved(tmp_path / "scorer.npz"), config={"kind": "this:s"})
    with pytest.raises(ArtifactError):
        load_scorer(path)
    assert "this" not in sys.modules


def test_unlisted_array_is_refused(tmp_path: Path) -> None:
    """The file may not have extra arrays."""
    path = rewritten(saved(tmp_path / "scorer.npz"), {"luggage": np.zeros(3)})
    with pytest.raises(ArtifactError, match=r"do not match its list: \['luggage'\]"):
        load_scorer(path)


def test_keys_of_another_shape_are_refused(tmp_path: Path) -> None:
    """Training keys must be readable, or the scorer could be tested on its training data."""
    path = rewritten(saved(tmp_path / "scorer.npz"), {"fitted_on": np.zeros((2, 15), np.uint8)})
    with pytest.raises(ArtifactError, match="judgment keys cannot be read"):
        load_scorer(path)


def test_pickled_objects_are_never_read(tmp_path: Path) -> None:
    """A file with an object array is refused before unpickling."""
    path = tmp_path / "scorer.npz"
    with path.open("wb") as stream:
        np.savez(stream, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ArtifactError, match="'header' does not contain plain numbers"):
        load_scorer(path)


class Holds(MeanScorer):
    """A scorer whose state cannot be plain data."""

    held: State = State({}, {})

    def state(self) -> State:
        return self.held


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State({}, {"a": np.array([{}])}), "holds object, not plain numbers"),
        (State({}, {"a": np.zeros(1, [("x", "f8")])}), "not plain numbers"),
        (State({}, {"a": np.zeros(1, complex)}), "holds complex128"),
        (State({}, {"q/1": np.zeros(1)}), r"'state\.q/1' is not a plain name"),
        (State({"w": float("nan")}, {}), "cannot be saved"),
        (State({"w": {1, 2}}, {}), "cannot be saved"),
    ],
)
def test_only_plain_data_is_saved(state: State, words: str, tmp_path: Path) -> None:
    """Objects, records, odd names and non-JSON numbers are refused; no file is left."""
    scorer = Holds()
    scorer.held = state
    with pytest.raises(ArtifactError, match=words):
        save_scorer(scorer, ScorerConfig(), tmp_path / "scorer.npz", provenance=MADE)
    assert not list(tmp_path.iterdir())


def test_scorer_is_saved_with_its_own_config(tmp_path: Path) -> None:
    """A forest under the kind mean would be restored as a mean."""
    scorer, _ = fitted("extra_trees")
    with pytest.raises(ArtifactError, match=r"ExtraTreesScorer cannot be saved as .* 'mean'"):
        save_scorer(scorer, ScorerConfig(), tmp_path / "scorer.npz", provenance=MADE)
