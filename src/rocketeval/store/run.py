"""A run directory: the only module that knows the layout of its files.

run.yaml         the frozen config
manifest.json    provenance: hashes, fingerprint, versions, counts, timings
plan.json        the estimate of `rocketeval plan`, to compare with the bill
inputs/          snapshot of queries, responses, checklists, labels, votes
ledger/          judgments: journal and Parquet parts
failures.jsonl   tasks that failed, to be retried
scores.parquet   one row per response (and scores.jsonl when it is not too long)
preferences.jsonl, evaluated.jsonl   an evaluator's decision on each pair, or each response
evaluator.json   the evaluator in figures; evaluator/ holds a run of each of its question sets
scorer.npz       the fitted scorer as data, if there was something to learn; item_weights.json
ranking.json, ranking.csv, audit.json, explain.json, report.html
.made_from.json  hashes of what the stages after grading were made from
methods.json     a comparison of grading methods; methods/ holds a run of each
reliability.json, item_gold.json   comparisons with other judges, and with reference answers
evaluator.npz    the evaluator fitted by `rocketeval evolve`; evolve/ holds its pool (pool.yaml),
                 rounds, bill, figures (evolution.json) and a run of each of its question sets
"""

from __future__ import annotations

import platform
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from filelock import FileLock, Timeout

from rocketeval._version import __version__
from rocketeval.config import RunConfig, dump_config
from rocketeval.errors import RunLocked, RunMismatch, StageMissing
from rocketeval.records import Answer, Failure, JudgeFingerprint, Judgment, Usage
from rocketeval.store.checksums import heads_of, keep_checksums, reading
from rocketeval.store.codec import Finding, FindingT, decode_finding, encode_finding
from rocketeval.store.failures import FAILURES, answered, read_failures, save_failures
from rocketeval.store.files import (
    cannot_write,
    make_private,
    read_json,
    remove,
    remove_temporaries,
    write_bytes,
    write_json,
    write_jsonl,
    write_parquet_parts,
)
from rocketeval.store.finished_keys import FinishedKeys
from rocketeval.store.inputs import Inputs
from rocketeval.store.journal import AuthoredJournal
from rocketeval.store.ledger import (
    Ledger,
    Mirror,
    count_rows,
    finished_keys,
    measured_judges,
    read_tables,
    recover_ledger,
    replace_ledger,
    sound_tables,
    tables_with,
)
from rocketeval.store.manifest import Manifest, Plan, StageFacts
from rocketeval.store.schema import (
    JUDGMENTS,
    complete_rows,
    judgment_to_row,
    row_to_judgment,
    with_basis,
)

JSONL_ROWS = 200_000
"""Scores are also written as JSON lines up to this many rows."""
SCORE_AGAIN = "Run `rocketeval run --only score` again."
SCORE_ROWS = 1 << 18
"""Scores read at a time."""


CHECKED = ("inputs", "inputs/responses", "ledger")
"""Folders whose checksums the manifest confirms."""
COMPARISONS = ("methods.json", "reliability.json", "item_gold.json")
"""Files of other commands that depend on the scores."""
MADE = {
    "attack": ("attack.json", "race.json"),
    "score": (
        "scores.parquet",
        "scores.jsonl",
        "scorer.npz",
        "item_weights.json",
        "preferences.jsonl",
        "evaluated.jsonl",
        "evaluator.json",
        *COMPARISONS,
    ),
    "rank": ("ranking.json", "ranking.csv"),
    "audit": ("audit.json",),
    "explain": ("explain.json",),
    "report": ("report.html",),
}
"""Files of each stage, which depend on earlier stages; a finished stage has its first file."""

RESULTS = tuple(name for made in MADE.values() for name in made)
"""Every file that the stages after grading can write."""

DERIVED = "evaluator "
"""Start of the template of a judge whose judgments are derived from runs inside the run."""

_NAMES = {"template": "prompt or grading method"}
"""Clearer names for parts of a fingerprint."""


@dataclass(frozen=True, slots=True)
class JudgePace:
    """The time that judgments took."""

    judgments: int
    items: int
    seconds: float
    """Sum over all judgments, although several were in flight at once."""


class RunStore:
    """All files of a run."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.command = "rocketeval run"
        """The command that makes what the run lacks, for messages."""
        self.inputs = Inputs(path / "inputs")
        self.ledger_folder = path / "ledger"
        self._lock = FileLock(path / ".lock")

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the run for writing; RunLocked if another process has it. May be nested."""
        first = not self._lock.is_locked
        try:
            self._make()
            self._lock.acquire(timeout=0)
            if first:
                self._tidy()
        except Timeout:
            raise RunLocked(
                f"Another process is writing the run {self.path}.",
                hint="Wait until it ends, stop it, or give this run another `name`.",
            ) from None
        except OSError as error:
            raise cannot_write(self.path, error) from None
        try:
            yield
        finally:
            self._lock.release()

    def _make(self) -> None:
        """Create the run directory; nobody else can read a new one."""
        make_private(self.path)

    def _tidy(self) -> None:
        """Remove or complete what a killed process left."""
        keep_checksums(self.path)
        self.inputs.recover()
        recover_ledger(self.ledger_folder)
        for folder in (self.path, self.inputs.folder):
            remove_temporaries(folder)

    def freeze(self, config: RunConfig) -> None:
        """Write the config into the run directory, and start the manifest."""
        write_bytes(self.path / "run.yaml", dump_config(config).encode())
        manifest = self.manifest()
        versions = {
            "rocketeval": __version__,
            "python": platform.python_version(),
            "pyarrow": pa.__version__,
        }
        self.save(
            replace(
                manifest,
                run_id=manifest.run_id or secrets.token_hex(8),
                created=manifest.created or now("milliseconds"),
                versions=versions,
            )
        )

    def manifest(self) -> Manifest:
        """Return the manifest; empty before the first stage."""
        return self.read_if_made(Manifest) or Manifest()

    def drop_from(self, stage: str) -> None:
        """Remove the files of `stage` and later stages, because what they depend on changes."""
        for later in list(MADE)[list(MADE).index(stage) :]:
            for name in MADE[later]:
                remove(self.path / name)

    def made_after(self, stage: str) -> list[str]:
        """Return the files that the stages after `stage` have made."""
        later = list(MADE)[list(MADE).index(stage) + 1 :]
        return [name for each in later for name in MADE[each] if (self.path / name).exists()]

    def record_stage(self, stage: str, facts: StageFacts) -> None:
        """Record a stage's facts in the manifest."""
        manifest = self.manifest()
        done: dict[str, Any] = {stage: replace(facts, finished=now())}
        stages = replace(manifest.stages, **done)
        self.save(replace(manifest, stages=stages, checksums=heads_of(self.path, CHECKED)))

    def refuse_other_judge(self, model: str, template: str) -> None:
        """Raise RunMismatch early, from the config alone, before anything is overwritten."""
        theirs = self.manifest().judge
        if theirs is not None:
            self._refuse_changes(theirs, replace(theirs, model=model, template=template))

    def check_judge(self, fingerprint: JudgeFingerprint) -> None:
        """Raise RunMismatch if the run contains another judge's judgments."""
        self._refuse_changes(self.manifest().judge or fingerprint, fingerprint)

    def known_judge(self, found: JudgeFingerprint, cache: Path | None) -> JudgeFingerprint:
        """Return the fingerprint this judge has in the run or the cache, else `found`.

        Measured precision varies slightly, so a known fingerprint is used again.
        """
        own = self.manifest().judge
        cached = () if cache is None else measured_judges(cache / "judgments")
        return found.known_as([*([own] if own else []), *cached])

    def bind_judge(self, fingerprint: JudgeFingerprint) -> None:
        """Bind the run to one judge; RunMismatch if it contains another judge's judgments."""
        self.check_judge(fingerprint)
        digest = fingerprint.digest.hex()
        self.save(replace(self.manifest(), judge=fingerprint, judge_digest=digest))

    def _refuse_changes(self, theirs: JudgeFingerprint, ours: JudgeFingerprint) -> None:
        changed = ", ".join(
            f"{_NAMES.get(name, name)} {before!r} -> {now!r}"
            for name, (before, now) in theirs.changes(ours).items()
        )
        if changed and count_rows(self.ledger_folder):
            raise RunMismatch(
                f"The run {self.path} was judged by another judge ({changed}).",
                hint="A run never mixes two judges or two grading methods: give this run another "
                "`name`.",
            )

    def judge(self) -> JudgeFingerprint:
        """Return the judge of this run; StageMissing before grading."""
        found = self.manifest().judge
        if found is None:
            raise StageMissing(
                f"{self.path} has not been graded yet.",
                hint=f"Run `{self.command}` first.",
            )
        return found

    def inside(self, folder: str, name: str) -> RunStore:
        """Return a run inside this one, such as that of a question set."""
        return RunStore(self.path / folder / name)

    def engine_home(self, role: str) -> Path:
        """Return the folder for the own files of the engine of `role` (judge, author)."""
        return self.path / "engines" / role

    def authored(self, cache: Path | None) -> AuthoredJournal:
        """Return the journal of checklists that authors were paid for."""
        folder = self.path if cache is None else cache
        return AuthoredJournal(folder / "authored.jsonl")

    def shared_ledger(self, judge: bytes, cache: Path | None) -> Path | None:
        """Return the cache folder of one judge's judgments; None without a cache."""
        return None if cache is None else cache / "judgments" / judge.hex()

    @contextmanager
    def ledger(self, judge: bytes, cache: Path | None) -> Iterator[Ledger]:
        """Open the ledger for appending, shared through `cache` if there is one.

        Just before the first new judgment is written, the scores and everything derived from them
        are removed, so that they never coexist with judgments they do not cover.
        """
        mirror = Mirror(cache, self.manifest().run_id) if cache else None
        drop = partial(self.drop_from, "attack")
        ledger = Ledger(self.ledger_folder, judge, mirror=mirror, before_change=drop)
        try:
            yield ledger
        finally:
            ledger.close()

    def derive_ledger(self, judge: JudgeFingerprint, judgments: Iterable[Judgment]) -> None:
        """Replace the run's judgments with derived ones; RunMismatch if it has other judgments.

        Derived judgments can be recomputed at any time, so earlier ones are replaced.
        """
        self.check_derivable()
        rows = [judgment_to_row(judgment, judge.digest.hex()) for judgment in judgments]
        fresh = pa.Table.from_pylist(rows, schema=JUDGMENTS)
        if not pa.concat_tables([JUDGMENTS.empty_table(), *self.judgments()]).equals(fresh):
            self.drop_from("attack")
            replace_ledger(self.ledger_folder, fresh)
        self.bind_judge(judge)

    def check_derivable(self) -> None:
        """Raise RunMismatch if the run has judgments not derived from runs inside it."""
        judge = self.manifest().judge
        derived = judge is None or judge.template.startswith(DERIVED)
        if not derived and count_rows(self.ledger_folder):
            raise RunMismatch(
                f"The run {self.path} was judged without an evaluator.",
                hint="A run never mixes two grading methods: give this run another `name`.",
            )

    def judgments(self, columns: list[str] | None = None) -> Iterator[pa.Table]:
        """Yield the ledger part by part."""
        return read_tables(self.ledger_folder, columns)

    def ledger_usage(self) -> Usage:
        """Return the usage of all judgments in the run, including reused ones."""
        columns = ["requests", "prompt_tokens", "cached_tokens", "completion_tokens", "seconds"]
        total = Usage()
        for table in self.judgments(columns):
            total += Usage(*(pc.sum(table[name]).as_py() or 0 for name in columns))
        return total

    def finished(self) -> FinishedKeys:
        """Return the keys of all judgments in the run's ledger."""
        return finished_keys(self.ledger_folder)

    def cached(self, judge: bytes, cache: Path | None) -> FinishedKeys:
        """Return the keys of all judgments by `judge` in the cache that runs share."""
        folder = self.shared_ledger(judge, cache)
        if folder is None:
            return FinishedKeys()
        tables = map(complete_rows, sound_tables(folder, ["key", "status"]))
        keys = (key for table in tables for key in table["key"].to_pylist())
        return FinishedKeys(map(bytes.fromhex, keys))

    def pace(self, judge: bytes, cache: Path | None) -> JudgePace:
        """Return this judge's time for the judgments in the cache, else for those in this run."""
        judgments, items, seconds = 0, 0, 0.0
        for folder in (self.shared_ledger(judge, cache), self.ledger_folder):
            if folder is None or judgments:
                continue
            for table in sound_tables(folder, ["seconds", "status"]):
                judgments += table.num_rows
                items += pc.sum(pc.list_value_length(table["status"])).as_py() or 0
                seconds += pc.sum(table["seconds"]).as_py() or 0.0
        return JudgePace(judgments, items, seconds)

    def save_plan(self, plan: Plan) -> None:
        """Write plan.json."""
        self.save(replace(plan, created=now()))

    def judgments_of(self, keys: Iterable[str]) -> dict[str, Judgment]:
        """Return a few judgments by hex key; whole rows are read only from files that have one."""
        wanted = pa.array(list(keys), pa.string())
        found: dict[str, Judgment] = {}
        for table in tables_with(self.ledger_folder, wanted):
            found.update((row["key"], row_to_judgment(row)) for row in table.to_pylist())
        return found

    def save_failures(self, failures: Iterable[Failure]) -> None:
        """Write the tasks to retry; an empty list removes the file."""
        save_failures(self.path / FAILURES, failures)

    def failures(self) -> list[Failure]:
        """Return the tasks that the last grading could not finish."""
        return read_failures(self.path / FAILURES)

    def half_answered(self) -> dict[bytes, dict[int, Answer]]:
        """Return, by key, the answers that failed tasks received."""
        return {failure.key: answered(failure) for failure in self.failures()}

    def save_scores(self, parts: Iterable[pa.Table]) -> None:
        """Write the scores, at least one table, in order; equal scores give equal bytes."""
        few: list[pa.Table] = []
        rows = 0

        def passing() -> Iterator[pa.Table]:
            nonlocal rows
            for part in parts:
                rows += part.num_rows
                if rows <= JSONL_ROWS:
                    few.append(part)
                yield part

        write_parquet_parts(self.path / "scores.parquet", passing())
        lines = self.path / "scores.jsonl"
        if rows <= JSONL_ROWS:
            write_jsonl(lines, (row for part in few for row in part.to_pylist()))
        else:
            remove(lines)

    def scores(self, columns: list[str] | None = None) -> pa.Table:
        """Return the scores, or some of their columns; StageMissing before the score stage."""
        path = self._stage_file("scores.parquet", "run --only score")
        with reading(path, SCORE_AGAIN):
            found = pq.ParquetFile(path, page_checksum_verification=True).read(columns)
        return with_basis(found, columns)

    def score_batches(self, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """Yield columns of the scores in batches; StageMissing before the score stage."""
        path = self._stage_file("scores.parquet", "run --only score")
        with reading(path, SCORE_AGAIN):
            scores = pq.ParquetFile(path, page_checksum_verification=True)
        with scores:
            batches = scores.iter_batches(SCORE_ROWS, columns=columns)
            while True:
                with reading(path, SCORE_AGAIN):
                    batch = next(batches, None)
                if batch is None:
                    return
                yield with_basis(batch, columns)

    def score_names(self, column: str) -> list[str]:
        """Return a column of names of the scores; equal names share one string in memory."""
        encoded = self.scores([column])[column].combine_chunks().dictionary_encode()
        names = encoded.dictionary.to_pylist()
        return [names[place] for place in encoded.indices.to_pylist()]

    @property
    def scorer_path(self) -> Path:
        """Path of the run's fitted scorer."""
        return self.path / "scorer.npz"

    @property
    def evaluator_path(self) -> Path:
        """Path of the evaluator that evolved in this run."""
        return self.path / "evaluator.npz"

    @property
    def evolve_folder(self) -> Path:
        """Folder of the evolve stage."""
        return self.path / "evolve"

    @property
    def pool_path(self) -> Path:
        """Path of the pool of perspectives, which users may extend."""
        return self.evolve_folder / "pool.yaml"

    def save(self, finding: Finding) -> bool:
        """Write a finding to its file; return whether the file changed."""
        path = self.path / f"{finding.FILE}.json"
        before = path.read_bytes() if path.exists() else None
        write_json(path, encode_finding(finding))
        return path.read_bytes() != before

    def read(self, kind: type[FindingT]) -> FindingT:
        """Return a finding of the run; StageMissing before its stage has run."""
        path = self._stage_file(f"{kind.FILE}.json", kind.COMMAND)
        return decode_finding(kind, read_json(path), path)

    def read_if_made(self, kind: type[FindingT]) -> FindingT | None:
        """Return a finding of the run; None if it does not exist."""
        path = self.path / f"{kind.FILE}.json"
        return decode_finding(kind, read_json(path), path) if path.exists() else None

    def save_json(self, name: str, content: Any) -> None:
        """Write `<name>.json`."""
        write_json(self.path / f"{name}.json", content)

    def save_rows(self, name: str, rows: Iterable[Mapping[str, object]]) -> None:
        """Write `<name>.jsonl`, one row per line."""
        write_jsonl(self.path / f"{name}.jsonl", rows)

    def load_json(self, name: str, command: str) -> Any:
        """Return `<name>.json`; StageMissing, with the `command` that creates it, if absent."""
        return read_json(self._stage_file(f"{name}.json", command))

    def json_if_made(self, name: str) -> Any | None:
        """Return `<name>.json`; None if it does not exist."""
        path = self.path / f"{name}.json"
        return read_json(path) if path.exists() else None

    def save_text(self, name: str, content: str) -> Path:
        """Write a text file and return its path."""
        write_bytes(self.path / name, content.encode())
        return self.path / name

    def _stage_file(self, name: str, command: str) -> Path:
        path = self.path / name
        if not path.exists() and not (self.path / "manifest.json").exists():
            raise StageMissing(
                f"There is no run {self.path} yet.",
                hint="Run `rocketeval run` first, or check `name` and `output` in the config.",
            )
        if not path.exists():
            # One stage alone fails if an earlier one was interrupted.
            of_run = command.startswith("run --only")
            made_by = self.command if of_run else f"rocketeval {command}"
            raise StageMissing(f"{self.path} has no {name} yet.", hint=f"Run `{made_by}` first.")
        return path


def now(timespec: str = "seconds") -> str:
    """Return the current time in the format of run files."""
    return datetime.now(UTC).isoformat(timespec=timespec)
