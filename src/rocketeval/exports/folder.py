"""Export to one file per candidate; nothing is overwritten unasked."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import getpid
from pathlib import Path

import orjson

from rocketeval._version import __version__
from rocketeval.config import RunConfig
from rocketeval.errors import ExportError, StoreError
from rocketeval.exports.formats import ExportRequest, file_stems
from rocketeval.exports.official import (
    Row,
    checklist_row,
    judgment_row,
    query_row,
    response_row,
    score_entry,
    score_row,
)
from rocketeval.records import Response
from rocketeval.scoring.read_answers import answers_yes_or_no, read_answers
from rocketeval.store.files import read_json, refuse_inside_run, write_json, write_jsonl
from rocketeval.store.run import RunStore
from rocketeval.text import count_of

ABOUT = "export.json"
"""What a folder of exported files says about itself, and by which it is known to be one."""


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written, and what was not."""

    rows: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How much is not in it, by what it is."""
    notes: tuple[str, ...] = ()
    """What a reader of the files should know."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Names of files by candidate, where each has its own and it is not its name."""
    path: Path | None = None
    """Where it is; None when it went to a stream."""


def refuse_to_overwrite(
    store: RunStore, request: ExportRequest, path: Path, *, force: bool
) -> None:
    """Raise ExportError if the export would replace something it may not replace."""
    refuse_inside_run(path, store.path)
    if path.is_dir() != request.form.is_folder and path.exists():
        kind, wanted = ("folder", "a file") if path.is_dir() else ("file", "a folder")
        raise ExportError(f"{path} is a {kind}, and {request.form.name} is {wanted}.")
    if path.exists() and not force and not (path.is_dir() and not any(path.iterdir())):
        raise ExportError(
            f"{path} exists already.", hint="Give another path, or --force to replace it."
        )
    if request.form.is_folder and path.exists() and any(path.iterdir()):
        _written_before(path)


@contextmanager
def filling(path: Path) -> Iterator[Path]:
    """Give an empty folder to fill; on success its files take the place of an older export's.

    Of what is in `path`, only files that an export has written are removed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{getpid()}.tmp")
    shutil.rmtree(fresh, ignore_errors=True)
    fresh.mkdir()
    try:
        yield fresh
        if path.exists() and any(path.iterdir()):
            for old in _written_before(path):
                old.unlink(missing_ok=True)
        for new in sorted(fresh.rglob("*")):
            if new.is_file():
                place = path / new.relative_to(fresh)
                place.parent.mkdir(parents=True, exist_ok=True)
                new.replace(place)
    finally:
        shutil.rmtree(fresh, ignore_errors=True)


def _written_before(path: Path) -> list[Path]:
    """Return the files that an earlier export wrote; ExportError if the folder is none."""
    about = path / ABOUT
    found = read_json(about) if about.is_file() else None
    names = found.get("written") if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ExportError(
            f"{path} holds files that no export wrote.", hint="Choose an empty or a new folder."
        )
    files = [path / name for name in names]
    inside = path.resolve()
    return [file for file in files if file.parent.resolve().is_relative_to(inside)]


SCALE = (1.0, 10.0)
"""Of scores in both formats."""
MOST_BYTES = 64 << 20
"""Kept in memory before rows are appended to their files."""


@dataclass(frozen=True, slots=True)
class _GradedResponse:
    """A response with what was found about it."""

    response: Response
    p_yes: list[float | None]
    judged: bool
    score: float | None


def export_folder(
    store: RunStore, config: RunConfig, request: ExportRequest, path: Path
) -> Exported:
    """Write a format that is a folder."""
    _refuse_other_scale(config, request.form.name)
    write = _write_official if request.form.name == "rocketeval" else _write_wildbench
    judge = store.judge().model
    stems = file_stems(set(store.score_names("candidate")))
    with filling(path) as fresh:
        done = write(store, config, stems, file_stems([judge])[judge], fresh)
        files = sorted(path for path in fresh.rglob("*") if path.is_file())
        written = [str(file.relative_to(fresh)) for file in files]
        about = {
            "format": request.form.name,
            "run": store.path.name,
            "judge": judge,
            "rocketeval": __version__,
            "files": stems,
            "left_out": done.left_out,
            "notes": done.notes,
            "written": [ABOUT, *written],
        }
        write_json(fresh / ABOUT, about)
    renamed = {name: stem for name, stem in stems.items() if name != stem}
    return Exported(done.rows, done.left_out, done.notes, renamed, path)


def _refuse_other_scale(config: RunConfig, name: str) -> None:
    low, high = config.scorer.scale
    if (low, high) != SCALE:
        raise ExportError(
            f"Scores of {name} files are from 1 to 10, those of this run from {low:g} to {high:g}.",
            hint="Set `scorer.scale: [1, 10]`, then run `rocketeval run --only score` and export "
            "again.",
        )


def _write_official(
    store: RunStore, config: RunConfig, stems: dict[str, str], judge: str, folder: Path
) -> Exported:
    if not answers_yes_or_no(config):
        raise ExportError(
            f"The judge was asked for {config.method.kind}, not for yes or no: the rocketeval "
            "format has no place for that.",
            hint="Export --to wildbench, or --to parquet --what judgments.",
        )
    queries, files = store.inputs.queries, _Files(folder)
    write_jsonl(folder / "query.jsonl", map(query_row, queries.values()))
    checklists = store.inputs.checklists().values()
    write_jsonl(folder / "checklist" / "checklist.jsonl", map(checklist_row, checklists))
    rows = unjudged = unscored = unanswered = own_history = 0
    for found in _graded(store):
        response, name = found.response, stems[found.response.candidate]
        query = queries[response.query_id]
        files.add(f"response/{name}.jsonl", response_row(response, query, name))
        rows += 1
        own_history += response.history is not None
        unanswered += found.p_yes.count(None)
        if found.judged:
            row = judgment_row(response.query_id, name, judge, found.p_yes)
            files.add(f"judgment/{judge}/{name}.jsonl", row)
        if found.score is not None:
            entry = score_row(response, name, judge, found.score)
            files.add(f"score/{judge}/{name}.json", entry)
        unjudged += not found.judged
        unscored += found.score is None
    files.close()
    left_out = {
        "judgments, which these responses do not have": unjudged,
        "scores, which these responses do not have": unscored,
        "labels, which are not the judge's": len(store.inputs.labels()),
        "votes, for which the format has no place": len(store.inputs.votes()),
    }
    return Exported(rows, left_out, tuple(_official_notes(unanswered, own_history)))


def _official_notes(unanswered: int, own_history: int) -> Iterator[str]:
    if unanswered:
        some = count_of(unanswered, "answer is", "answers are")
        yield f"{some} missing: null, which the paper's scripts read as 0.5."
    if own_history:
        some = count_of(own_history, "response follows", "responses follow")
        yield f"{some} another conversation than the query's, which the paper's scripts take."


def _write_wildbench(
    store: RunStore, config: RunConfig, stems: dict[str, str], judge: str, folder: Path
) -> Exported:
    checklists, files = store.inputs.checklists(), _Files(folder)
    told = answers_yes_or_no(config)
    rows = unscored = 0
    for found in _graded(store):
        response = found.response
        if found.score is None:
            unscored += 1
            continue
        items = checklists[response.query_id].items if told else ()
        entry = score_entry(response, found.score, items, found.p_yes)
        files.add(f"score.v2/eval={judge}/{stems[response.candidate]}.json", entry)
        rows += 1
    files.close()
    return Exported(rows, {"responses without a score": unscored})


def _graded(store: RunStore) -> Iterator[_GradedResponse]:
    """Yield every response with its answers and its score, in query order."""
    answers, keys = read_answers(store)
    scores: list[float | None] = store.scores(["score"])["score"].to_pylist()
    names = (store.score_names("query_id"), store.score_names("candidate"))
    rows = zip(store.inputs.responses(), *names, scores, keys, strict=True)
    for row, (response, query_id, candidate, score, _) in enumerate(rows):
        if (response.query_id, response.candidate) != (query_id, candidate):
            raise StoreError(
                f"The scores of {store.path} are not those of its responses.",
                hint="Run `rocketeval run --only score` again.",
            )
        own = answers.p_yes[answers.offsets[row] : answers.offsets[row + 1]].tolist()
        p_yes = [None if math.isnan(p) else p for p in own]
        yield _GradedResponse(response, p_yes, bool(own), score)


class _Files:
    """Many files that grow row by row, without being open all at once.

    `.jsonl` has a row a line, `.json` is an array with an entry a line.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._rows: dict[str, list[bytes]] = {}
        self._begun: set[str] = set()
        self._bytes = 0

    def add(self, name: str, row: Row) -> None:
        """Append a row to a file of the folder."""
        line = orjson.dumps(row)
        self._rows.setdefault(name, []).append(line)
        self._bytes += len(line)
        if self._bytes > MOST_BYTES:
            self._spill()

    def close(self) -> None:
        """Write what is left, and end the arrays."""
        self._spill()
        for name in self._begun:
            if name.endswith(".json"):
                with (self._folder / name).open("ab") as stream:
                    stream.write(b"\n]\n")

    def _spill(self) -> None:
        for name, rows in self._rows.items():
            path = self._folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("ab") as stream:
                if name.endswith(".json"):
                    stream.write(b",\n" if name in self._begun else b"[\n")
                    stream.write(b",\n".join(rows))
                else:
                    stream.write(b"\n".join(rows) + b"\n")
        self._begun.update(self._rows)
        self._rows.clear()
        self._bytes = 0
