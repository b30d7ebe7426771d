"""The split into seen and held-out cases."""

from __future__ import annotations

from pathlib import Path

import pytest

from rocketeval.config import EvolveConfig
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.history import learned_from, split_cases
from rocketeval.records import Label, Query, Response, Vote
from rocketeval.store.inputs import Inputs

SETTINGS = EvolveConfig(folds=3, share=0.4)


def inputs(folder: Path, queries: int = 20, votes: int = 2, equal: int = 0) -> Inputs:
    """Queries with votes on pairs of three candidates; the first `equal` have the same text."""
    names = [f"q{number}" for number in range(queries)]
    made = Inputs(folder / "inputs")
    made.save(
        [Query(name, "Same?" if place < equal else name) for place, name in enumerate(names)],
        [Response(name, candidate, candidate) for name in names for candidate in "xyz"],
        [Label(names[0], "x", 3.0)],
        [
            Vote(name, first, second, "a")
            for name in names
            for first, second in (("x", "y"), ("x", "z"), ("y", "z"))[:votes]
        ],
        [],
    )
    return made


def test_split_keeps_queries_whole_and_uses_the_seed(tmp_path: Path) -> None:
    """The share is kept, and another seed gives another split."""
    found = split_cases(inputs(tmp_path), SETTINGS)
    seen, held_out = ({case.query_id for case in part} for part in (found.seen, found.held_out))
    assert not seen & held_out
    assert (len(seen), len(held_out)) == (8, 12)
    assert len(found.cases) == 40
    assert split_cases(inputs(tmp_path), SETTINGS) == found
    other = split_cases(inputs(tmp_path), SETTINGS.model_copy(update={"seed": 1}))
    assert other.seen != found.seen
    assert other.digest != found.digest


def test_equal_queries_stay_together(tmp_path: Path) -> None:
    """Otherwise the optimizer would know held-out queries."""
    for seed in range(5):
        settings = SETTINGS.model_copy(update={"seed": seed})
        found = split_cases(inputs(tmp_path, equal=6), settings)
        same = {f"q{number}" for number in range(6)}
        on_side = [same & {case.query_id for case in part} for part in (found.seen, found.held_out)]
        assert sorted(map(len, on_side)) == [0, 6]
        joined = {case.same_as or case.query_id for case in found.cases if case.query_id in same}
        assert joined == {"q0"}


@pytest.mark.parametrize("share", [0.01, 0.99])
def test_each_side_has_a_query_per_fold(tmp_path: Path, share: float) -> None:
    """For any share, both sides can be split into folds."""
    found = split_cases(inputs(tmp_path), SETTINGS.model_copy(update={"share": share}))
    for part in (found.seen, found.held_out):
        assert len({case.query_id for case in part}) >= SETTINGS.folds


def test_too_few_cases_are_refused(tmp_path: Path) -> None:
    """The error names the counts, the minimum, and what to do."""
    with pytest.raises(
        BenchmarkError, match=r"on 12 cases of 6 queries; .* at least 20 cases and 8"
    ):
        split_cases(inputs(tmp_path / "few", queries=6), SETTINGS)
    with pytest.raises(BenchmarkError, match="20 cases and 30 queries") as error:
        split_cases(inputs(tmp_path / "folds"), SETTINGS.model_copy(update={"folds": 15}))
    assert "evolve.folds" in error.value.hint
    with pytest.raises(BenchmarkError, match="1 case of 1 query"):
        split_cases(inputs(tmp_path / "labels"), SETTINGS.model_copy(update={"gold": "labels"}))


def test_missing_reference_data_is_refused(tmp_path: Path) -> None:
    """The error suggests the other kind."""
    with pytest.raises(BenchmarkError, match="no votes to learn from") as error:
        split_cases(inputs(tmp_path, votes=0), SETTINGS)
    assert "evolve.gold: labels" in error.value.hint


def test_learned_from_names_queries_by_content(tmp_path: Path) -> None:
    """Queries with the same words are one."""
    loaded = inputs(tmp_path, equal=6)
    found = split_cases(loaded, SETTINGS)
    hashes = learned_from(loaded.queries, found.cases)
    assert len(hashes) == 15
    assert loaded.queries["q0"].content_hash.hex() in hashes
