"""Export to a folder with one file per candidate, without overwriting other files."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import getpid
from pathlib import Path

import orjson

from rocketeval._version import __version__
from rocketeval.arrays import Floats
from rocketeval.config import RunConfig
from rocketeval.errors import ExportError, StoreError
from rocketeval.exports.formats import ExportRequest, file_stems
from rocketeval.exports.official import (
    AnsweredItem,
    Row,
    checklist_row,
    judgment_row,
    query_row,
    response_row,
    score_entry,
    score_row,
)
from rocketeval.records import Checklist, Response
from rocketeval.scoring.read_answers import answers_yes_or_no, read_answers
from rocketeval.store.files import read_json, refuse_inside_run, write_json, write_jsonl
from rocketeval.store.run import RunStore
from rocketeval.text import count_of

ABOUT = "export.json"
"""File that describes and identifies an export folder."""


@dataclass(frozen=True, slots=True)
class Exported:
    """The result of an export: what was written and what was left out."""

    rows: int
    left_out: Mapping[str, int] = field(default_factory=dict)
    """Counts of data left out, by description."""
    notes: tuple[str, ...] = ()
    """Notes for readers of the files."""
    files: Mapping[str, str] = field(default_factory=dict)
    """File names by candidate, where they differ from the candidate's name."""
    path: Path | None = None
    """Output path; None for a stream."""


def refuse_to_overwrite(
    store: RunStore, request: ExportRequest, path: Path, *, force: bool
) -> None:
    """Raise ExportError if the export would overwrite something it must not."""
    refuse_inside_run(path, store.path)
    if path.is_dir() != request.form.is_folder and path.exists():
        kind, wanted = ("folder", "a file") if path.is_dir() else ("file", "a folder")
        raise ExportError(f"{path} is a {kind}, but {request.form.name} needs {wanted}.")
    if path.exists() and not force and not (path.is_dir() and not any(path.iterdir())):
        raise ExportError(
            f"{path} already exists.", hint="Choose another path, or use --force to replace it."
        )
    if request.form.is_folder and path.exists() and any(path.iterdir()):
        _written_before(path)


@contextmanager
def filling(path: Path) -> Iterator[Path]:
    """Yield an empty folder; on success, move its files to `path`.

    Only files that an earlier export wrote are removed from `path`.
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
    """Return the files that an earlier export wrote; raise ExportError without one."""
    about = path / ABOUT
    found = read_json(about) if about.is_file() else None
    names = found.get("written") if isinstance(found, dict) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ExportError(
            f"{path} contains files that no export wrote.", hint="Choose an empty or new folder."
        )
    files = [path / name for name in names]
    inside = path.resolve()
    return [file for file in files if file.parent.resolve().is_relative_to(inside)]


SCALE = (1.0, 10.0)
"""Score scale of both folder formats."""
MOST_BYTES = 64 << 20
"""Bytes of rows to buffer before they are appended to their files."""


@dataclass(frozen=True, slots=True)
class GradedResponse:
    """A response with its answers and score."""

    response: Response
    p_yes: list[float | None]
    turned: list[float | None]
    """The answers, those of penalties turned around, so that 1 is always better."""
    applies: list[bool]
    """Whether each item more likely applies than not."""
    judged: bool
    score: float | None

    def answered(self, titles: Sequence[str]) -> Iterator[AnsweredItem]:
        """Yield the items, with these titles, and their answers."""
        columns = zip(titles, self.p_yes, self.turned, self.applies, strict=False)
        return (AnsweredItem(*each) for each in columns)


def export_folder(
    store: RunStore, config: RunConfig, request: ExportRequest, path: Path
) -> Exported:
    """Write a folder format."""
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
            f"The {name} format needs scores from 1 to 10; this run uses {low:g} to {high:g}.",
            hint="Set `scorer.scale: [1, 10]`, then run `rocketeval run --only score` and export "
            "again.",
        )


def _write_official(
    store: RunStore, config: RunConfig, stems: dict[str, str], judge: str, folder: Path
) -> Exported:
    if not answers_yes_or_no(config):
        raise ExportError(
            f"The rocketeval format holds yes/no answers only; the method {config.method.kind} "
            "gives grades.",
            hint="Use --to wildbench, or --to parquet --what judgments.",
        )
    queries, files = store.inputs.queries, _Files(folder)
    write_jsonl(folder / "query.jsonl", map(query_row, queries.values()))
    checklists = list(store.inputs.checklists().values())
    write_jsonl(folder / "checklist" / "checklist.jsonl", map(checklist_row, checklists))
    rows = unjudged = unscored = unanswered = own_history = 0
    for found in graded_responses(store):
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
        "judgments of responses that were not judged": unjudged,
        "scores of responses without a score": unscored,
        "labels (the format holds the judge's scores only)": len(store.inputs.labels()),
        "votes (the format has no votes)": len(store.inputs.votes()),
    }
    notes = (*_lost_details(checklists), *_official_notes(unanswered, own_history))
    return Exported(rows, left_out, notes)


def _lost_details(checklists: Sequence[Checklist]) -> Iterator[str]:
    """Yield a note on what the files do not hold of items that are no plain yes/no questions."""
    details = [each for made in checklists for each in made.every_detail]
    counts = {
        "weights": sum(each.weight >= 0 and each.weight != 1.0 for each in details),
        "penalties": sum(each.weight < 0 for each in details),
        "levels": sum(bool(each.levels) for each in details),
        "code checks": sum(each.check is not None for each in details),
        "the answer 'not applicable'": sum(each.na for each in details),
        "material": sum(bool(each.uses) and each.check is None for each in details),
    }
    lost = [f"{what} ({count_of(n, 'item', 'items')})" for what, n in counts.items() if n]
    if lost:
        yield (
            f"The files hold only the texts of items, without {', '.join(lost)}. The paper's "
            "scripts read every item as a yes/no question of weight 1: scores that they compute "
            "differ from the exported ones."
        )
    if counts["penalties"]:
        yield "In scores that the paper's scripts compute, a yes to a penalty counts as good."


def _official_notes(unanswered: int, own_history: int) -> Iterator[str]:
    if unanswered:
        some = count_of(unanswered, "unanswered item is", "unanswered items are")
        yield f"{some} null, which the paper's scripts read as 0.5."
    if own_history:
        some = count_of(own_history, "response follows", "responses follow")
        yield f"{some} a conversation other than the query's; the paper's scripts use the query's."


def _write_wildbench(
    store: RunStore, config: RunConfig, stems: dict[str, str], judge: str, folder: Path
) -> Exported:
    checklists, files = store.inputs.checklists(), _Files(folder)
    yes_no = answers_yes_or_no(config)
    rows = unscored = 0
    for found in graded_responses(store):
        response = found.response
        if found.score is None:
            unscored += 1
            continue
        titles = checklists[response.query_id].titles if yes_no else ()
        entry = score_entry(response, found.score, list(found.answered(titles)))
        files.add(f"score.v2/eval={judge}/{stems[response.candidate]}.json", entry)
        rows += 1
    files.close()
    return Exported(rows, {"responses without a score": unscored})


def graded_responses(store: RunStore) -> Iterator[GradedResponse]:
    """Yield every response with its answers and its score, in query order."""
    answers, keys = read_answers(store)
    turned, applies = answers.turned, answers.applies
    scores: list[float | None] = store.scores(["score"])["score"].to_pylist()
    names = (store.score_names("query_id"), store.score_names("candidate"))
    rows = zip(store.inputs.responses(), *names, scores, keys, strict=True)
    for row, (response, query_id, candidate, score, _) in enumerate(rows):
        if (response.query_id, response.candidate) != (query_id, candidate):
            raise StoreError(
                f"The scores of {store.path} do not match its responses.",
                hint="Run `rocketeval run --only score` again.",
            )
        own = slice(answers.offsets[row], answers.offsets[row + 1])
        p_yes, better = (_or_none(column[own]) for column in (answers.shown, turned))
        applied = applies[own].tolist()
        yield GradedResponse(response, p_yes, better, applied, bool(p_yes), score)


def _or_none(values: Floats) -> list[float | None]:
    return [None if math.isnan(p) else p for p in values.tolist()]


class _Files:
    """Buffered writer that appends rows to many files.

    `.jsonl` files have one row per line; `.json` files are arrays with one entry per line.
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
        """Flush the buffer and close the arrays."""
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
