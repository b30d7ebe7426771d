"""The split into seen and held-out cases."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rocketeval.config import EvolveConfig
from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import CaseTable
from rocketeval.evolve.history import learned_from, split_cases
from rocketeval.records import Label, Query, Response, Vote
from rocketeval.scoring.split import group_folds
from rocketeval.store.inputs import Inputs

SETTINGS = EvolveConfig(folds=3, share=0.4)


def inputs(
    folder: Path, queries: int = 20, votes: int = 2, equal: int = 0, turns: int | None = None
) -> Inputs:
    """Queries with votes on pairs of three candidates; the first `equal` have the same text.

    `turns` is the number of queries per cluster; None gives no clusters.
    """
    names = [f"q{number}" for number in range(queries)]
    made = Inputs(folder / "inputs")
    made.save(
        [
            Query(
                name,
                "Same?" if place < equal else name,
                cluster=None if turns is None else str(place // turns),
            )
            for place, name in enumerate(names)
        ],
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
        joined = {case.unit for case in found.cases if case.query_id in same}
        assert joined == {"q0"}


@pytest.mark.parametrize(
    ("equal", "seed", "digest", "seen"),
    [
        (0, 0, "d451b8405b8938f711d9562c53149451", "0 1 11 12 13 14 2 5"),
        (0, 1, "e79d01b0bb411eb432af217edeab99ca", "14 18 19 3 4 5 7 9"),
        (6, 0, "d430cbb89b08e5f3e8d898d11ed4eb1b", "0 1 11 12 13 14 15 2 3 4 5"),
        (6, 1, "032af6dcd97f157817c7b2857a0dfcf0", "13 14 18 19 7 9"),
    ],
)
def test_split_without_clusters_never_changes(
    tmp_path: Path, equal: int, seed: int, digest: str, seen: str
) -> None:
    """Rounds of earlier versions stay valid: the digest and the seen queries are pinned."""
    found = split_cases(inputs(tmp_path, equal=equal), SETTINGS.model_copy(update={"seed": seed}))
    assert found.digest == digest
    assert {case.query_id for case in found.seen} == {f"q{number}" for number in seen.split()}


def test_turns_of_a_conversation_stay_together(tmp_path: Path) -> None:
    """Split, folds and resampling have one unit per conversation."""
    for seed in range(5):
        settings = SETTINGS.model_copy(update={"seed": seed})
        found = split_cases(inputs(tmp_path, queries=40, turns=2), settings)
        seen, held_out = (
            {int(case.query_id[1:]) // 2 for case in part} for part in (found.seen, found.held_out)
        )
        assert (len(seen), len(held_out)) == (8, 12)
        assert not seen & held_out
        cases = found.held_out
        table = CaseTable(cases, (), np.zeros((len(cases), 0)), (), np.zeros((len(cases), 0)))
        assert table.query_ids == [f"q{int(case.query_id[1:]) // 2 * 2}" for case in cases]
        folds = dict(zip(table.query_ids, group_folds(table.query_ids, 3, seed), strict=True))
        assert len(folds) == 12


def test_same_text_joins_conversations(tmp_path: Path) -> None:
    """The first turns of q0 to q5 have the same text, so all six queries are one group."""
    loaded = inputs(tmp_path, queries=40, equal=5, turns=2)
    found = split_cases(loaded, SETTINGS)
    joined = {case.query_id for case in found.cases if case.unit == "q0"}
    assert joined == {f"q{number}" for number in range(6)}
    seen = {case.query_id for case in found.seen}
    assert len(joined & seen) in (0, 6)


def test_too_few_conversations_are_refused(tmp_path: Path) -> None:
    """Two turns count once."""
    with pytest.raises(BenchmarkError, match=r"24 cases of 6 queries; .* 8 queries"):
        split_cases(inputs(tmp_path, queries=12, turns=2), SETTINGS)


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


def test_learned_from_has_all_turns_of_a_conversation(tmp_path: Path) -> None:
    """A turn without votes is included, because it depends on the turn with votes."""
    loaded = inputs(tmp_path, queries=40, turns=2)
    first = [case for case in split_cases(loaded, SETTINGS).cases if case.query_id == "q0"]
    expected = {loaded.queries[name].content_hash.hex() for name in ("q0", "q1")}
    assert set(learned_from(loaded.queries, first)) == expected
