"""Keep the judge's answers of a finished evolution, without texts and votes, and read them again.

    rocketeval evolve studies/mad_eval/pandalm.yaml
    python studies/mad_eval/stored_cases.py studies/mad_eval/pandalm.yaml     # no judge is needed

writes recorded/judgments/pandalm.parquet: one row per question set and shown text (a response, or
the query alone), seen and held-out ones, with the `p_yes` of every perspective that study.py needs:
those that evolution kept, those about queries, and the overall question. The file's metadata, also
in pandalm.json next to it, have these perspectives, the judge's fingerprints, and the facts of the
evolution. No text of the benchmark and no vote is written, so the file may be published.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.arrays import Floats
from rocketeval.benchmarks.load import load_inputs
from rocketeval.config import EvolveConfig, RunConfig, load_config
from rocketeval.errors import RocketEvalError
from rocketeval.evolve.ask import AnswersTable, QuestionSetAnswers, by_question_set, shown_names
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.history import CaseSplit, OutOfFoldFigure, split_cases
from rocketeval.evolve.perspective import (
    Asking,
    Perspective,
    PerspectiveKind,
    Pool,
    QuestionSet,
    question_set_of,
)
from rocketeval.evolve.pool import read_pool
from rocketeval.evolve.result import EvaluatorCost, Evolution
from rocketeval.evolve.rounds import SEEN
from rocketeval.evolve.stage import HELD_OUT
from rocketeval.pipeline import Run
from rocketeval.scoring.read_answers import read_answers
from rocketeval.store.codec import decode, encode
from rocketeval.store.run import RunStore

HERE = Path(__file__).parent
STORED = HERE / "recorded" / "judgments"
METADATA = b"study"
_Rows = dict[tuple[str, str], Floats]


@dataclass(frozen=True)
class StoredJudge:
    """The judge of one question set on one side of the split."""

    folder: str
    question_set: str
    judge: Mapping[str, str]
    """The parts of its fingerprint, with their digest."""
    measured: str


@dataclass(frozen=True)
class RoundFacts:
    """One round of an evolution, without the optimizer's texts."""

    round: int
    mistakes: int
    proposed: Mapping[str, int]
    dropped: Mapping[str, int]
    before: OutOfFoldFigure
    after: OutOfFoldFigure


@dataclass(frozen=True)
class EvolutionFacts:
    """What the study prints about an evolution."""

    beginning: OutOfFoldFigure
    rounds: tuple[RoundFacts, ...]
    best_round: int
    kept: tuple[str, ...]
    """Ids of the evaluator's perspectives, in column order."""
    worth: str
    cost: EvaluatorCost


@dataclass(frozen=True)
class StoredStudy:
    """Everything that is stored but the answers."""

    run: str
    split: str
    """Identity of the split; see `CaseSplit.digest`."""
    model: str
    """The judge model."""
    judges: tuple[StoredJudge, ...]
    perspectives: tuple[Perspective, ...]
    """All that have answers, without learned weights."""
    overall: str
    """Id of the perspective that asks for an overall judgment."""
    evolution: EvolutionFacts

    @property
    def pool(self) -> Pool:
        """Return the perspectives of the study: those that evolution kept, and all about queries.

        They stay in evolution's order, because forests draw their columns by position.
        """
        kept = set(self.evolution.kept)
        return Pool(
            each
            for each in self.perspectives
            if each.id in kept or each.kind is PerspectiveKind.QUERY
        )


@dataclass(frozen=True, eq=False)
class StudiedCases:
    """A stored study with its answers, and the reference data of the benchmark."""

    stored: StoredStudy
    settings: EvolveConfig
    seen: CaseTable
    held_out: CaseTable


def stored_path(config: Path) -> Path:
    """Return the file for a config's answers."""
    return STORED / f"{config.stem}.parquet"


def keep(config: RunConfig, out: Path) -> tuple[StoredStudy, pa.Table]:
    """Write the answers of a config's finished evolution; return what was written."""
    store = RunStore(config.run_path)
    study = facts_of(store, config)
    sets = by_question_set(study.perspectives, config.evolve.asking)
    rows = [
        row
        for question_set, perspectives in sets.items()
        for folder in (SEEN, HELD_OUT)
        for row in _rows_of(store.inside(folder, question_set.name), question_set, perspectives)
    ]
    table = pa.Table.from_pylist(rows, pa.schema(_COLUMNS))
    content = json.dumps(encode(study), ensure_ascii=False)
    out.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table.replace_schema_metadata({METADATA: content}), out, compression="zstd")
    shown = json.dumps(encode(study), ensure_ascii=False, indent=1)
    out.with_suffix(".json").write_text(shown + "\n", encoding="utf-8")
    return study, table


_COLUMNS = {
    "question_set": pa.string(),
    "query_id": pa.string(),
    "candidate": pa.string(),
    "p_yes": pa.list_(pa.float64()),
}


def facts_of(store: RunStore, config: RunConfig) -> StoredStudy:
    """Return everything but the answers; StageMissing before the evolution has finished."""
    evolution = store.read(Evolution)
    kept = tuple(each.id for each in evolution.evaluator.perspectives)
    there = [each for each in read_pool(store.pool_path) if each.round <= evolution.best_round]
    known = {each.id: each for each in there}
    overall = next(each for each in there if each.text == evolution.figures.overall)
    asking = config.evolve.asking
    # Above `most_about_queries`, the others were not asked about held-out cases.
    others = [each for each in there if each.kind is PerspectiveKind.QUERY and each.id not in kept]
    asked = [each for each in others if each.text in _items(_inside(store, HELD_OUT, each, asking))]
    pool = Pool([*(known[name] for name in kept), *asked]).add([overall])[0]
    judges = [
        _judge_of(store, folder, question_set)
        for question_set in by_question_set(pool, asking)
        for folder in (SEEN, HELD_OUT)
    ]
    return StoredStudy(
        run=config.name,
        split=split_cases(store.inputs, config.evolve).digest,
        model=judges[0].judge["model"],
        judges=tuple(judges),
        perspectives=tuple(replace(each, importance=None, stability=None) for each in pool),
        overall=overall.id,
        evolution=EvolutionFacts(
            evolution.beginning,
            tuple(
                RoundFacts(
                    one.round, one.mistakes, one.proposed, one.dropped, one.before, one.after
                )
                for one in evolution.rounds
            ),
            evolution.best_round,
            kept,
            evolution.worth.words,
            evolution.cost,
        ),
    )


def read(config: RunConfig, path: Path) -> StudiedCases:
    """Return stored answers with the votes of the config's benchmark, without asking a judge."""
    table = pq.read_table(path)
    study = decode(StoredStudy, json.loads(table.schema.metadata[METADATA]))
    split = load_split(config)
    if split.digest != study.split:
        sys.exit(f"{path} is of another benchmark, or other settings of `evolve` or `limit`.")
    rows: dict[str, _Rows] = {}
    for row in table.to_pylist():
        name = row["query_id"], row["candidate"]
        rows.setdefault(row["question_set"], {})[name] = np.array(row["p_yes"], dtype=np.float64)
    answers = [
        QuestionSetAnswers(question_set, perspectives, rows[question_set.name])
        for question_set, perspectives in by_question_set(
            study.perspectives, config.evolve.asking
        ).items()
        if _matches(path, question_set, split.cases, rows[question_set.name])
    ]
    found = AnswersTable(study.perspectives, answers)
    return StudiedCases(study, config.evolve, found.table(split.seen), found.table(split.held_out))


def load_split(config: RunConfig) -> CaseSplit:
    """Return the cases of a config's benchmark, loaded into a temporary run."""
    with tempfile.TemporaryDirectory() as folder:
        run = Run(config.model_copy(update={"output": Path(folder)}))
        # Not `load`, which also creates the judge's engine to check its config.
        with run.store.locked():
            load_inputs(run.store, run.config)
        return split_cases(run.store.inputs, config.evolve)


def _matches(path: Path, question_set: QuestionSet, cases: Sequence[Case], rows: _Rows) -> bool:
    """Return True; exit if the stored texts are not those of the cases."""
    wanted = {(case.query_id, name) for case in cases for name in shown_names(question_set, case)}
    if wanted != rows.keys():
        absent, strange = sorted(wanted - rows.keys()), sorted(rows.keys() - wanted)
        first = " of ".join((absent or strange)[0][::-1])
        sys.exit(
            f"{path} lacks {len(absent)} responses or queries of the benchmark and has "
            f"{len(strange)} others, first {first}."
        )
    return True


def _inside(store: RunStore, folder: str, each: Perspective, asking: Asking) -> RunStore:
    return store.inside(folder, question_set_of(each, asking).name)


def _items(inside: RunStore) -> tuple[str, ...]:
    """Return the texts that every query of a question set was asked; empty if none was."""
    if not inside.inputs.exist:
        return ()
    return tuple(next(iter(inside.inputs.checklists().values())).items)


def _judge_of(store: RunStore, folder: str, question_set: QuestionSet) -> StoredJudge:
    judge = store.inside(folder, question_set.name).judge()
    return StoredJudge(folder, question_set.name, judge.parts, judge.measured)


def _rows_of(
    inside: RunStore, question_set: QuestionSet, perspectives: Sequence[Perspective]
) -> list[dict[str, Any]]:
    """Return the answers to some perspectives of a question set; NaN for a missing one."""
    items = _items(inside)
    places = [items.index(each.text) for each in perspectives]
    answers, _ = read_answers(inside)
    names = zip(answers.query_ids, answers.candidates, strict=True)
    rows = []
    for (query_id, candidate), start, stop in zip(
        names, answers.offsets[:-1].tolist(), answers.offsets[1:].tolist(), strict=True
    ):
        given = answers.p_yes[start:stop] if stop > start else np.full(len(items), np.nan)
        names_of_row = {"query_id": query_id, "candidate": candidate}
        rows.append({"question_set": question_set.name, **names_of_row, "p_yes": given[places]})
    return rows


def main() -> None:
    """Write the answers of a finished evolution."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("--run", help="name of the run; default: the config's")
    parser.add_argument("--out", type=Path, help="default: recorded/judgments/CONFIG.parquet")
    given = parser.parse_args()
    config = load_config(given.config)
    if given.run:
        config = config.model_copy(update={"name": given.run})
    out = given.out or stored_path(given.config)
    try:
        study, table = keep(config, out)
    except RocketEvalError as error:
        sys.exit(str(error))
    answers = np.concatenate([np.asarray(row.values) for row in table["p_yes"]])
    missing = int(np.isnan(answers).sum())
    print(
        f"{table.num_rows} responses and queries, {len(study.perspectives)} perspectives, "
        f"{len(answers)} answers, {missing} missing: {out}"
    )


if __name__ == "__main__":
    main()
