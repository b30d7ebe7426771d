"""Inspect logs: `.eval` archives and `.json` logs of inspect-ai, one candidate per log.

An `.eval` file is a ZIP archive whose members are compressed with DEFLATE or, in newer versions,
Zstandard, which pyarrow decompresses; no further package is needed.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Literal
from zipfile import BadZipFile, ZipFile, ZipInfo

import orjson

from rocketeval.benchmarks.cells import as_text
from rocketeval.benchmarks.data import (
    DataBenchmark,
    DataOptions,
    Example,
    Kept,
    Skipped,
    read_scores,
)
from rocketeval.benchmarks.messages import (
    STEPS,
    RowError,
    is_messages,
    mapped,
    read_turns,
    split_turns,
)
from rocketeval.benchmarks.reading import Row, is_inspect_log, nan_as_null, shown_value
from rocketeval.benchmarks.request_logs import NO_TEXT_OUTPUT, LoggedOutput, read_output
from rocketeval.benchmarks.row_files import (
    BadRow,
    Rows,
    Sample,
    data_files,
    read_document,
    row_format,
)
from rocketeval.errors import BenchmarkError
from rocketeval.records import Query, Response, Turn
from rocketeval.text import count_of, join_words

ZSTANDARD = 93
"""Compression method of ZIP members."""
MOST_BYTES = 1 << 30
"""Maximum size of one sample; more is taken for a damaged or hostile archive."""
_DAMAGED = (OSError, ValueError, EOFError, RuntimeError, BadZipFile, struct.error, zlib.error)
DONE = "success"
"""Status of a log whose evaluation ended without an error."""
ATTACHMENT = "attachment://"
GRADES = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Values of Inspect's scorers: correct, incorrect, partial, no answer."""
WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
"""Words that Inspect counts as numbers."""
FULL_NUMBER = re.compile(r"[+-]?[0-9]{1,9}(\.[0-9]{1,18})?")
"""A number written as text."""
LATER = "a repetition (epoch 2 or later); set `epochs: all` to judge it as another candidate"


class InspectOptions(DataOptions):
    """Settings of Inspect logs."""

    epochs: Literal["first", "all"] = "first"
    """first: judge only the first epoch of each sample; all: each epoch is a candidate."""


@dataclass(frozen=True, slots=True)
class LogHeader:
    """The head of a log."""

    file: str
    """Path in the folder of logs."""
    model: str
    task: str
    status: str
    """`success`, or how the evaluation ended otherwise."""


class InspectLogs(DataBenchmark):
    """One log of Inspect, or a folder of logs of the same task."""

    kind = "inspect"
    options_type = InspectOptions
    options: InspectOptions

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for .eval files, or a JSON log."""
        archives = [path for path in sample.files if row_format(path) == "eval"]
        if archives:
            return f"Inspect logs ({count_of(len(archives), '.eval file', '.eval files')})"
        known = is_inspect_log(sample.document) and "samples" in sample.document
        return "Inspect logs (JSON)" if known else None

    @cached_property
    def files(self) -> list[Path]:
        """The logs."""
        found = [path for path in data_files(self.path) if row_format(path) in ("eval", "json")]
        archives = [path for path in found if row_format(path) == "eval"]
        return archives or found

    @cached_property
    def headers(self) -> list[LogHeader]:
        """The head of every log."""
        return [_header(path, self._shown(path)) for path in self.files]

    def _shown(self, path: Path) -> str:
        """Return a log's path in the folder; its name if it is the only one."""
        return str(path.relative_to(self.path)) if self.path.is_dir() else path.name

    def other_files(self) -> Iterator[str]:
        """Return the files that are not read: JSON next to archives, and what is not data."""
        for path in data_files(self.path):
            if path not in self.files:
                archived = row_format(path) == "json"
                yield f"{self._shown(path)} ({'next to .eval logs' if archived else 'not a log'})"
        yield from super().other_files()

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        tasks = ", ".join(sorted({head.task for head in self.headers}))
        said = {
            "query": f"input (task {tasks})",
            "response": "output.completion",
            "candidate": "eval.model: " + ", ".join(self.summary.candidates),
            "id": "the sample's id" + (", with its task" if self._many_tasks else ""),
            "reference": "target",
        }
        ended = [f"{head.file} ({head.status})" for head in self.headers if head.status != DONE]
        if ended:
            said["incomplete"] = join_words(ended, most=8)
        labelers = sorted({label.labeler for label in self.summary.labels})
        if labelers:
            said["label"] = f"scores ({', '.join(labelers)}), as reference data"
        return said

    def settings(self) -> Mapping[str, object]:
        """Return the chosen epochs."""
        return {"epochs": self.options.epochs}

    @property
    def _many_tasks(self) -> bool:
        return len({head.task for head in self.headers}) > 1

    def examples(self) -> Iterator[Kept]:
        """Yield an example per sample."""
        for path, head in zip(self.files, self.headers, strict=True):
            names = self._names[head.file]
            for row in _samples(path, head.file):
                if isinstance(row, BadRow):
                    yield row
                else:
                    yield mapped(row, partial(self._example, head=head, candidate=names))

    @cached_property
    def _names(self) -> dict[str, str]:
        """The candidate of each log: its model, with the file's name if that is not unique."""
        models = Counter((head.task, head.model) for head in self.headers)
        short = Counter((head.task, head.model, Path(head.file).name) for head in self.headers)
        names = {}
        for head in self.headers:
            names[head.file] = head.model
            if models[head.task, head.model] > 1:
                name = Path(head.file).name
                shown = name if short[head.task, head.model, name] == 1 else head.file
                names[head.file] = f"{head.model} ({shown})"
        return names

    def _example(self, row: Row, head: LogHeader, candidate: str) -> Kept:
        epoch = row.values.get("epoch", 1)
        if epoch != 1:
            if self.options.epochs == "first":
                return Skipped(row.where, LATER)
            candidate = f"{candidate}@{epoch}"
        sample = _attached(row)
        output = _completion(sample)
        if output.text is None:
            why = "the sample ended with an error" if sample.get("error") else "no output"
            why = NO_TEXT_OUTPUT if output.notes and not sample.get("error") else why
            return Skipped(row.where, why)
        turns, notes = _input(sample)
        split = split_turns(turns, notes)
        name = str(row.values["id"]) if row.values.get("id") is not None else ""
        if not name.strip():
            raise RowError("the sample has no id")
        if self._many_tasks:
            name = f"{head.task}/{name}"
        about = sample.get("metadata")
        category = about.get("category") if isinstance(about, Mapping) else None
        query = Query(
            name,
            split.query,
            split.history,
            reference=target_text(sample.get("target")),
            category=str(category) if category is not None else None,
        )
        labels, unread = read_scores(_scores(sample.get("scores")), name, candidate)
        return Example(
            row.where,
            query,
            (Response(name, candidate, output.text),),
            labels=labels,
            notes=tuple(dict.fromkeys((*split.notes, *output.notes, *unread))),
        )


def _header(path: Path, file: str) -> LogHeader:
    document: object
    if row_format(path) == "eval":
        with _archive(path) as archive:
            names = archive.namelist()
            member = next(
                (each for each in ("header.json", "_journal/start.json") if each in names), None
            )
            if member is None:
                raise BenchmarkError(
                    f"{path} is a ZIP archive, but not an Inspect log: it has no header.json."
                )
            document = _member(path, archive.getinfo(member))
    else:
        document = read_document(path)
    about = document.get("eval") if isinstance(document, Mapping) else None
    if not isinstance(about, Mapping) or not isinstance(about.get("model"), str):
        raise BenchmarkError(f"{path} is not an Inspect log: it has no `eval.model`.")
    status = document.get("status", "started") if isinstance(document, Mapping) else ""
    return LogHeader(file, about["model"], str(about.get("task", "")), str(status))


def _archive(path: Path) -> ZipFile:
    try:
        return ZipFile(path)
    except (BadZipFile, RuntimeError, ValueError, struct.error):
        raise BenchmarkError(
            f"{path} is not a complete Inspect log: it is not a readable ZIP archive.",
            hint="Copy it again, or recover it: inspect log recover",
        ) from None


def read_member(path: Path, member: ZipInfo) -> bytes:
    """Return the content of an archive's member, whichever way it is compressed."""
    if member.compress_type != ZSTANDARD:
        with ZipFile(path) as archive:
            return archive.read(member)
    import pyarrow as pa

    with path.open("rb") as stream:
        stream.seek(member.header_offset)
        head = stream.read(30)
        name_length, extra_length = struct.unpack("<HH", head[26:30])
        stream.seek(name_length + extra_length, 1)
        content = stream.read(member.compress_size)
    if not member.file_size:
        return b""
    return bytes(pa.decompress(content, member.file_size, codec="zstd", asbytes=True))


def _member(path: Path, member: ZipInfo) -> object:
    """Return the JSON content of an archive's member; raise BenchmarkError if it is damaged."""
    try:
        if member.file_size > MOST_BYTES:
            raise ValueError(f"{member.file_size:,} bytes")
        content = read_member(path, member)
        try:
            return orjson.loads(content)
        except orjson.JSONDecodeError:
            # Inspect writes scores and metrics that are no number as NaN.
            return nan_as_null(content)
    except _DAMAGED as error:
        raise BenchmarkError(
            f"{path}: {member.filename} cannot be read: {error}.",
            hint="The log is damaged: copy it again.",
        ) from None


def _samples(path: Path, file: str) -> Rows:
    if row_format(path) != "eval":
        document = read_document(path)
        found = document.get("samples") if isinstance(document, Mapping) else None
        if not isinstance(found, list):
            raise BenchmarkError(
                f"{path} has no samples.", hint="Inspect writes them unless it ran with no samples."
            )
        for place, sample in enumerate(found, 1):
            where = f"{file} sample {place}"
            yield (
                Row(sample, where)
                if isinstance(sample, dict)
                else BadRow(where, "the sample is not an object", shown_value(sample))
            )
        return
    with _archive(path) as archive:
        members = [each for each in archive.infolist() if each.filename.startswith("samples/")]
    if not members:
        raise BenchmarkError(
            f"{path} has no samples yet.", hint="Wait until Inspect has finished the evaluation."
        )
    for member in members:
        where = f"{file}/{member.filename}"
        try:
            sample = _member(path, member)
        except BenchmarkError as error:
            yield BadRow(where, "the sample cannot be read", "", error.hint)
            continue
        yield (
            Row(sample, where)
            if isinstance(sample, dict)
            else BadRow(where, "the sample is not an object", shown_value(sample))
        )


def _attached(row: Row) -> dict[str, Any]:
    """Return the sample with every `attachment://` replaced by its text."""
    texts = row.values.get("attachments")
    known = texts if isinstance(texts, Mapping) else {}

    def resolve(value: Any) -> Any:
        if isinstance(value, str) and value.startswith(ATTACHMENT):
            key = value.removeprefix(ATTACHMENT)
            if key not in known:
                raise RowError("an attachment is missing from the log", key)
            return known[key]
        if isinstance(value, list):
            return [resolve(each) for each in value]
        if isinstance(value, dict):
            return {name: resolve(each) for name, each in value.items()}
        return value

    wanted = ("input", "output", "messages", "target", "scores", "metadata", "error", "choices")
    return {name: resolve(row.values[name]) for name in wanted if name in row.values}


def _input(sample: Mapping[str, Any]) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    given = sample.get("input")
    choices = sample.get("choices")
    if is_messages(given):
        return read_turns(given, "input")
    if not isinstance(given, str) or not given.strip():
        raise RowError("the sample has no input", shown_value(given))
    text = with_choices(given, choices) if isinstance(choices, list) else given
    return (Turn("user", text),), ()


def with_choices(text: str, choices: Sequence[object]) -> str:
    """Return a question with the answers to choose from, if there are any.

    >>> with_choices("What is 1 + 1?", [2, 3])
    'What is 1 + 1?\\n\\nA) 2\\nB) 3'
    """
    listed = "\n".join(f"{chr(65 + n)}) {each}" for n, each in enumerate(choices))
    return f"{text}\n\n{listed}" if listed else text


def _completion(sample: Mapping[str, Any]) -> LoggedOutput:
    given, messages = sample.get("output"), sample.get("messages")
    turns, spoken = read_turns(messages, "messages") if is_messages(messages) else ((), ())
    # The text of the completion is that of the first choice.
    found = read_output(given)
    text = given.get("completion") if isinstance(given, Mapping) else None
    text = text if isinstance(text, str) and text else found.text
    notes = found.notes
    if text is None and turns and turns[-1].role == "assistant":
        text, notes = turns[-1].content or None, (*notes, *spoken)
    steps = (STEPS,) if any(turn.role == "tool" for turn in turns) else ()
    return LoggedOutput(text, (*notes, *steps))


def target_text(value: object) -> str | None:
    """Return a target as text, several ones in lines; None without any."""
    if isinstance(value, list):
        value = "\n".join(map(as_text, value))
    return str(value) if value else None


def _scores(scores: object) -> Iterator[tuple[str, object]]:
    """Yield each scorer's value, and each part of a value with several parts."""
    for name, score in scores.items() if isinstance(scores, Mapping) else ():
        value = score.get("value") if isinstance(score, Mapping) else None
        if isinstance(value, Mapping):
            yield from ((f"{name}/{part}", _as_number(each)) for part, each in value.items())
        else:
            yield name, _as_number(value)


def _as_number(value: object) -> object:
    """Return a text as the number that Inspect takes it for; other values as they are."""
    if not isinstance(value, str):
        return value
    if value in GRADES:
        return GRADES[value]
    if value.lower() in WORDS:
        return WORDS[value.lower()]
    return float(value) if FULL_NUMBER.fullmatch(value) else value
