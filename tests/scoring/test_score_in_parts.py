"""Scores computed in parts equal those computed at once, byte by byte."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from rocketeval.audit.stage import audit_run
from rocketeval.config import RunConfig, ScorerConfig
from rocketeval.engines.scripted import exact_answer
from rocketeval.grading.schedule import cells
from rocketeval.ranking.stage import rank_candidates
from rocketeval.records import (
    Answer,
    Basis,
    Checklist,
    Gold,
    JudgeFingerprint,
    Judgment,
    Label,
    Query,
    Response,
    Status,
    Vote,
)
from rocketeval.scoring import read_answers as answers_module
from rocketeval.scoring.artifact import Provenance, save_scorer
from rocketeval.scoring.crossfit import (
    Scored,
    align_answers,
    count_statuses,
    score_answers,
    score_table,
)
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.read_answers import AnswerReader, read_answers
from rocketeval.scoring.split import gold_cells
from rocketeval.scoring.stage import read_grid, score_responses
from rocketeval.store import files
from rocketeval.store.ledger import Ledger
from rocketeval.store.run import RunStore
from support.make import make_config

JUDGE = JudgeFingerprint("scripted", "m", "chat", "1", "exact", "t", "r")
TREES = {"trees": 3}


class MadeRun:
    """A run with all irregularities of a ledger, graded without a judge."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.config = make_config(folder, ranking={"bootstrap": 50})
        self.store = RunStore(self.config.run_path)
        self.chance = random.Random(seed)
        self.store.freeze(self.config)
        self._save_inputs()
        self.store.bind_judge(JUDGE)
        self.ledger = Ledger(
            self.store.ledger_folder, JUDGE.digest, roll_rows=self.chance.randint(5, 40)
        )
        self._grade()

    def _save_inputs(self) -> None:
        """Save queries of any size, some duplicates, some without a checklist or a response."""
        count = self.chance.randint(8, 14)
        queries = [Query(f"q{n}", f"What of {n // 2 if n < 4 else n}?") for n in range(count)]
        names = [f"c{n}" for n in range(self.chance.randint(6, 9))]
        responses = [
            Response(query.id, name, f"answer {self.chance.randint(0, 12)}")
            for query in queries
            for name in names
            if self.chance.random() > 0.1
        ]
        self.chance.shuffle(responses)
        labels = [
            Label(each.query_id, each.candidate, float(self.chance.randint(1, 10)))
            for each in responses
            if self.chance.random() > 0.2
        ]
        votes = [
            Vote(query.id, "c0", "c1", self.chance.choice(["a", "b", "tie"])) for query in queries
        ]
        self.store.inputs.save(queries, responses, labels, votes, [])
        asked = [query for query in queries if self.chance.random() > 0.1]
        self.store.inputs.save_checklists(
            Checklist(query.id, tuple(f"Point {n}?" for n in range(1 + len(query.id) % 3 * 2)))
            for query in asked
        )

    def _grade(self) -> None:
        """Grade in any order: some not at all, some of other runs, one twice."""
        wanted = {cell.key: cell for cell in cells(self.store.inputs, JUDGE.digest) if cell.key}
        asked = self.store.inputs.checklists()
        keys = list(wanted)
        self.chance.shuffle(keys)
        for number, key in enumerate(keys):
            if self.chance.random() < 0.1:
                continue
            cell = wanted[key]
            own = tuple(self._answer() for _ in asked[cell.query_id].items)
            self.ledger.append(Judgment(key, cell.query_id, cell.candidate, own))
            if number % 20 == 7:
                foreign = self.chance.randbytes(16)
                self.ledger.append(Judgment(foreign, "elsewhere", "c0", (exact_answer(0.5),)))
            if number == 25:
                self.ledger.roll()
                twice = next(iter(self.store.judgments())).slice(0, 2)
                self.ledger.adopt(twice)

    def _answer(self) -> Answer:
        if self.chance.random() < 0.1:
            return Answer(self.chance.choice([Status.HIDDEN, Status.LOW_MASS]))
        return exact_answer(self.chance.random())

    def with_scorer(self, **scorer: Any) -> RunConfig:
        """Return the run's config with another scorer."""
        return self.config.model_copy(update={"scorer": ScorerConfig(**scorer)})


def score_at_once(made: MadeRun, config: ScorerConfig, path: Path) -> tuple[dict[str, Any], Scored]:
    """Score all answers together and write them; return facts and scores."""
    store = made.store
    found = list(cells(store.inputs, JUDGE.digest))
    keys = [None if cell.key is None else cell.key.hex() for cell in found]
    names = [cell.query_id for cell in found], [cell.candidate for cell in found]
    answers = align_answers(*names, keys, store.judgments(["key", "p_yes"]))
    gold = Gold(store.inputs.labels(), store.inputs.votes())
    scored = score_answers(answers, gold, config)
    pq.write_table(
        score_table(answers, scored, keys),
        path,
        compression="zstd",
        row_group_size=files.ROW_GROUP,
        write_page_checksum=True,
    )
    statuses = count_statuses(keys, store.judgments(["key"]), store.judgments(["status"]))
    return {
        "scores": int(np.isfinite(scored.scores).sum()),
        "without_score": int(np.isnan(scored.scores).sum()),
        "answers": int(answers.items.sum()),
        "missing_answers": int((answers.items - answers.answered).sum()),
        "statuses": statuses,
        "basis": scored.counts(),
    }, scored


def apply_at_once(made: MadeRun, scored: Scored, path: Path) -> Scored:
    """Score all answers with the fit of `scored`, mark its training data, and write them."""
    assert scored.split is not None
    answers, keys = read_answers(made.store)
    cells = gold_cells(scored.split.learned)
    names = list(zip(answers.query_ids, answers.candidates, strict=True))
    learned = {key for name, key in zip(names, keys, strict=True) if name in cells and key}
    basis = tuple(Basis.FITTED if key in learned else Basis.UNSEEN for key in keys)
    scores = scored.scorer.predict(answers)
    applied = Scored(scores, basis, scored.kind, scored.scorer, None)
    table = score_table(answers, applied, keys)
    pq.write_table(
        table,
        path,
        compression="zstd",
        row_group_size=files.ROW_GROUP,
        write_page_checksum=True,
    )
    return applied


@pytest.fixture
def made(tmp_path: Path, request: pytest.FixtureRequest) -> MadeRun:
    """Return a run of the requested seed."""
    return MadeRun(tmp_path, getattr(request, "param", 0))


@pytest.mark.parametrize("made", range(12), indirect=True)
@pytest.mark.parametrize("kind", ["mean", "hard"])
def test_parts_of_any_size_give_the_bytes_of_the_whole(
    made: MadeRun, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a ledger in parts, a journal, duplicates or missing judgments."""
    missing = made.chance.choice(["skip", "drop"])
    config = made.with_scorer(kind=kind, missing=missing)
    monkeypatch.setattr(answers_module, "PART_RESPONSES", made.chance.randint(1, 60))
    monkeypatch.setattr(files, "ROW_GROUP", made.chance.choice([7, 10, 64, 1 << 20]))
    expected = made.store.path / "expected.parquet"
    facts, _ = score_at_once(made, config.scorer, expected)
    given = score_responses(made.store, config)
    assert (made.store.path / "scores.parquet").read_bytes() == expected.read_bytes()
    assert {name: getattr(given, name) for name in facts} == facts
    lines = (made.store.path / "scores.jsonl").read_text().splitlines()
    assert len(lines) == pq.read_metadata(expected).num_rows


@pytest.mark.parametrize("made", range(4), indirect=True)
@pytest.mark.parametrize(
    "scorer",
    [
        {"kind": "extra_trees", "options": TREES},
        {"kind": "random_forest", "options": TREES},
        {"kind": "pooled_ridge"},
        {"kind": "isotonic"},
        {"kind": "pooled_logistic", "learn_from": "votes"},
        {
            "kind": "select",
            "options": {"among": ["extra_trees"], "settings": {"extra_trees": TREES}},
        },
        {"kind": "select", "options": {"among": ["mean", "isotonic"]}},
    ],
    ids=lambda scorer: "-".join([scorer["kind"], *scorer.get("options", {}).get("among", ())]),
)
def test_learning_scorers_get_all_answers(
    made: MadeRun, scorer: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers are read in parts and concatenated, also for a saved scorer."""
    config = made.with_scorer(**scorer)
    monkeypatch.setattr(answers_module, "PART_RESPONSES", 11)
    expected = made.store.path / "expected.parquet"
    facts, scored = score_at_once(made, config.scorer, expected)
    given = score_responses(made.store, config)
    assert (made.store.path / "scores.parquet").read_bytes() == expected.read_bytes()
    assert {name: getattr(given, name) for name in facts} == facts
    kept = made.store.scorer_path.rename(made.store.path / "kept.npz")
    again = score_responses(made.store, made.with_scorer(**scorer, fitted=kept))
    saved = apply_at_once(made, scored, expected)
    assert (made.store.path / "scores.parquet").read_bytes() == expected.read_bytes()
    assert again.basis == saved.counts()
    assert set(saved.basis) == {Basis.FITTED, Basis.UNSEEN}


@pytest.mark.parametrize(
    "scorer",
    [{"kind": "mean"}, {"kind": "hard"}, {"kind": "mean", "fitted": "mean.npz"}],
    ids=["mean", "hard", "a saved one"],
)
def test_run_without_responses_has_an_empty_score_file(
    made: MadeRun, scorer: dict[str, Any]
) -> None:
    """Loading refuses such a benchmark, but a folder of inputs may be one."""
    if "fitted" in scorer:
        scorer["fitted"] = made.store.path / scorer["fitted"]
        provenance = Provenance.from_keys(JUDGE, [], {}, "2026-01-01T00:00:00Z")
        save_scorer(MeanScorer(), ScorerConfig(), scorer["fitted"], provenance=provenance)
    made.store.inputs.save(list(made.store.inputs.queries.values()), [], (), (), ())
    given = score_responses(made.store, made.with_scorer(**scorer))
    counts = ("scores", "without_score", "answers", "missing_answers")
    assert [getattr(given, name) for name in counts] == [0, 0, 0, 0]
    assert given.basis == given.statuses == {}
    assert made.store.scores().num_rows == 0
    assert (made.store.path / "scores.jsonl").read_text() == ""
    assert read_grid(made.store).scores.shape == (0, 0)


@pytest.mark.parametrize("made", range(4), indirect=True)
def test_audit_reads_only_queries_with_reference_data(
    made: MadeRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simpler scores of other queries would not change its figures."""
    labels = [label for label in made.store.inputs.labels() if label.query_id in ("q1", "q5")]
    inputs = made.store.inputs
    inputs.save(list(inputs.queries.values()), list(inputs.responses()), labels, (), ())
    score_responses(made.store, made.config)
    rank_candidates(made.store, made.config)
    few = audit_run(made.store, made.config)
    parts = AnswerReader.parts
    asked: list[set[str]] = []

    def all_parts(self: AnswerReader, query_ids: set[str]) -> Any:
        asked.append(query_ids)
        return parts(self)

    monkeypatch.setattr(AnswerReader, "parts", all_parts)
    assert repr(audit_run(made.store, made.config)) == repr(few)
    assert asked == [{label.query_id for label in labels}]


def test_the_journal_may_grow_and_roll_while_answers_are_read(made: MadeRun) -> None:
    """A reader sees the state at its start, even if the file is replaced."""
    expected, keys = read_answers(made.store)
    reader = AnswerReader(made.store)
    made.ledger.append(Judgment(bytes(16), "q", "c0", (exact_answer(0.5),)))
    made.ledger.close()
    part = reader.whole()
    np.testing.assert_array_equal(part.answers.p_yes, expected.p_yes)
    assert part.keys.to_pylist() == keys


def test_grid_is_read_in_parts(made: MadeRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches of scores give the same grid as whole columns."""
    score_responses(made.store, made.config)
    whole = read_grid(made.store)
    monkeypatch.setattr("rocketeval.store.run.SCORE_ROWS", 7)
    again = read_grid(made.store)
    assert (again.query_ids, again.candidates) == (whole.query_ids, whole.candidates)
    np.testing.assert_array_equal(again.scores, whole.scores)
    assert list(whole.candidates) == sorted(whole.candidates)
