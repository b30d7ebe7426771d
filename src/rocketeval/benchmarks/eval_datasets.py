"""Files of evaluation libraries: lm-evaluation-harness samples, DeepEval and ragas datasets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property, partial
from pathlib import Path

from rocketeval.benchmarks.cells import as_text, cell_value
from rocketeval.benchmarks.columns import holds, unread_columns
from rocketeval.benchmarks.data import (
    DataBenchmark,
    Example,
    Kept,
    Skipped,
    content_id,
    read_scores,
)
from rocketeval.benchmarks.messages import (
    RowError,
    from_json,
    is_messages,
    mapped,
    read_turns,
    split_turns,
)
from rocketeval.benchmarks.reading import Row, shown_value
from rocketeval.benchmarks.row_files import (
    BadRow,
    Rows,
    Sample,
    data_files,
    read_document,
    row_format,
    stem_of,
)
from rocketeval.records import Query, Response, Turn
from rocketeval.text import count_of, join_words

SAMPLES = re.compile(r"samples_(?P<task>.+)_\d{4}-\d\d-\d\dT[\d.:-]+$")
"""Name of a samples file of lm-evaluation-harness."""
NO_TEXT = "a log-likelihood task: the model wrote no text"
DEEPEVAL_FIELDS = ("input", "actual_output", "actualOutput", "expected_output", "expectedOutput",
                   "retrieval_context", "retrievalContext", "context", "metricsData")  # fmt: skip
RAGAS_FIELDS = ("user_input", "question", "response", "answer", "reference", "ground_truth",
                "retrieved_contexts", "contexts")  # fmt: skip
NO_FILTER = "none"
"""Name of the filter of lm-evaluation-harness that changes nothing."""


class LmEvalSamples(DataBenchmark):
    """Samples that lm-evaluation-harness writes with --log_samples; one folder per model."""

    kind = "lm_eval"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for doc_id, resps and filtered_resps."""
        first = [each for each in sample.files if each.name.startswith("samples_")]
        if first and sample.path.is_dir():
            return f"lm-eval samples ({count_of(len(first), 'file', 'files')})"
        return "lm-eval samples" if sample.has("doc_id", "resps", "filtered_resps") else None

    @cached_property
    def files(self) -> list[Path]:
        """The samples files."""
        found = data_files(self.path)
        named = [each for each in found if each.name.startswith("samples_")]
        return named or found

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        tasks = join_words(sorted({_task(path) for path in self.files}), most=5)
        filters = join_words(sorted(set(map(self._filter, self.files))), most=5)
        said = {
            "query": f"the prompt in arguments (tasks: {tasks})",
            "response": f"filtered_resps, first (filter: {filters})",
            "candidate": "model of the folder: " + join_words(self.summary.candidates, most=8),
            "id": "task and doc_id",
            "reference": "target",
        }
        if self.summary.labels:
            names = sorted({label.labeler for label in self.summary.labels})
            said["label"] = f"metrics {', '.join(names)}, as reference data"
        return said

    def examples(self) -> Iterator[Kept]:
        """Yield an example per document; rows of other filters are skipped."""
        for path in self.files:
            candidate, task, used = _model(path), _task(path), self._filter(path)
            for row in self.rows(path):
                if isinstance(row, BadRow):
                    yield row
                elif _filter_name(row) != used:
                    yield Skipped(row.where, f"another filter than {used!r}, which is read")
                else:
                    yield mapped(row, partial(_lm_eval, candidate=candidate, task=task))

    def _filter(self, path: Path) -> str:
        """Return the filter to read: `none`, which keeps the whole response, or the first."""
        if path not in self._filters:
            first = None
            for row in self.rows(path):
                name = _filter_name(row) if isinstance(row, Row) else None
                first = name if first is None else first
                if name == NO_FILTER:
                    first = name
                    break
            self._filters[path] = first or NO_FILTER
        return self._filters[path]

    @cached_property
    def _filters(self) -> dict[Path, str]:
        return {}


def _filter_name(row: Row) -> str:
    return str(row.values.get("filter") or NO_FILTER)


def _task(path: Path) -> str:
    found = SAMPLES.match(stem_of(path))
    return found["task"] if found else stem_of(path).removeprefix("samples_")


def _model(path: Path) -> str:
    """Return the model's name: from the results file next to the samples, else the folder."""
    for results in sorted(path.parent.glob("results_*.json")):
        document = read_document(results)
        name = document.get("model_name") if isinstance(document, Mapping) else None
        if isinstance(name, str) and name:
            return name
    folder = path.parent.name
    # A folder name has double underscores in place of slashes.
    return folder.replace("__", "/") if folder and SAMPLES.match(stem_of(path)) else stem_of(path)


def _lm_eval(row: Row, candidate: str, task: str) -> Kept:
    given = row.get("arguments", (list, dict))
    row.get("resps", list)
    first: object = None
    if isinstance(given, Mapping):
        first = next(iter(given.values()), None)
        parts = [first.get("arg_0"), first.get("arg_1")] if isinstance(first, Mapping) else []
    else:
        first = given[0] if isinstance(given, list) and given else None
        parts = first if isinstance(first, list) else []
    prompt = parts[0] if parts else None
    # A generation has settings after its prompt. A log-likelihood has a continuation, or nothing,
    # and its numbers are written as text.
    if parts and not (len(parts) > 1 and isinstance(parts[1], Mapping)):
        return Skipped(row.where, NO_TEXT)
    text = _text_in(row.values.get("filtered_resps")) or _text_in(row.values.get("resps"))
    if text is None:
        return Skipped(row.where, NO_TEXT)
    if not isinstance(prompt, str) or not prompt.strip():
        raise RowError("the sample has no prompt", f"arguments: {shown_value(given)}")
    messages = from_json(prompt)
    turns: tuple[Turn, ...] = (Turn("user", prompt),)
    about: tuple[str, ...] = ()
    if is_messages(messages):
        turns, about = read_turns(messages, "arguments")
    split = split_turns(turns, about)
    name = f"{task}-{row.name('doc_id')}"
    target = row.values.get("target")
    metrics = row.values.get("metrics")
    named = [str(metric) for metric in metrics] if isinstance(metrics, list) else []
    scores = [(metric, row.values.get(metric)) for metric in named]
    labels, notes = read_scores(scores, name, candidate)
    return Example(
        row.where,
        Query(
            name,
            split.query,
            split.history,
            reference=None if target in (None, "") else as_text(target),
            category=task,
        ),
        (Response(name, candidate, text),),
        labels=labels,
        notes=(*split.notes, *notes),
    )


def _text_in(value: object) -> str | None:
    """Return the first text in nested lists; None if there is a number first."""
    while isinstance(value, list) and value:
        value = value[0]
    return value if isinstance(value, str) else None


def _is_table(sample: Sample) -> bool:
    """Return whether columns hold candidates, labels or checklists, which only a table reads."""
    return any(holds(part, sample.rows) for part in ("candidate", "label", "checklist"))


class DeepEvalCases(DataBenchmark):
    """Datasets and the latest test run of DeepEval."""

    kind = "deepeval"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for actual_output next to input, or the latest test run."""
        if isinstance(sample.document.get("testCases"), list):
            return "DeepEval test run"
        named = sample.has("input", "actual_output") or sample.has("input", "actualOutput")
        return "DeepEval dataset" if named and not _is_table(sample) else None

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        said = {
            "query": "input",
            "response": "actual_output",
            "candidate": join_words(self.summary.candidates, most=8),
            "id": "a hash of the input",
            "reference": "expected_output",
        }
        if self.summary.labels:
            names = sorted({label.labeler for label in self.summary.labels})
            said["label"] = f"metrics {', '.join(names)}, as reference data"
        return {**said, **unread_columns(Sample(self.path).rows, *DEEPEVAL_FIELDS)}

    def examples(self) -> Iterator[Kept]:
        """Yield an example per test case."""
        for path in data_files(self.path):
            document = read_document(path) if row_format(path) == "json" else None
            run = document if isinstance(document, Mapping) and "testCases" in document else None
            name = _tested(run) if run else stem_of(path)
            mark = passage_mark(path)
            for row in self.rows(path) if run is None else _cases(path.name, run):
                if isinstance(row, BadRow):
                    yield row
                else:
                    yield mapped(row, partial(_deepeval, candidate=name, mark=mark))


def passage_mark(path: Path) -> str | None:
    """Return what DeepEval writes between the passages of a cell; None in files with lists."""
    return "|" if row_format(path) in ("csv", "tsv") else None


def _tested(run: Mapping[str, object]) -> str:
    """Return the model under test of a run, from its hyperparameters."""
    given = run.get("hyperparameters")
    model = given.get("model") if isinstance(given, Mapping) else None
    return str(model or run.get("identifier") or "latest test run")


def _cases(name: str, run: Mapping[str, object]) -> Rows:
    found = run["testCases"]
    for place, case in enumerate(found if isinstance(found, list) else (), 1):
        where = f"{name} test case {place}"
        yield (
            Row(case, where)
            if isinstance(case, dict)
            else BadRow(where, "the test case is not an object", shown_value(case))
        )


def _either(row: Row, *names: str) -> object:
    return next(
        (row.values[name] for name in names if row.values.get(name) not in (None, "")), None
    )


def _deepeval(row: Row, candidate: str, mark: str | None) -> Kept:
    text = _either(row, "input")
    if not isinstance(text, str) or not text.strip():
        raise RowError("the field 'input' holds no text", shown_value(text))
    output = _either(row, "actual_output", "actualOutput")
    if output is None:
        return Skipped(row.where, "no actual_output (a golden that was not run)")
    expected = _either(row, "expected_output", "expectedOutput")
    context = passages(_either(row, "retrieval_context", "retrievalContext", "context"), mark)
    name = content_id(text)
    metrics = row.values.get("metricsData")
    measured = metrics if isinstance(metrics, list) else []
    scores = [
        (str(each.get("name")), each.get("score")) for each in measured if isinstance(each, Mapping)
    ]
    labels, notes = read_scores(scores, name, candidate)
    return Example(
        row.where,
        Query(name, text, reference=None if expected is None else as_text(expected)),
        (Response(name, candidate, as_text(output), context=context),),
        labels=labels,
        notes=notes,
    )


def passages(value: object, mark: str | None = None) -> tuple[str, ...] | None:
    """Return retrieved passages, which a text holds as a list or separated by `mark`.

    >>> passages("['One.', 'Two | 2.']"), passages("One|Two", "|"), passages("One | 1")
    (('One.', 'Two | 2.'), ('One', 'Two'), ('One | 1',))
    """
    found = cell_value(value)
    if isinstance(found, str):
        found = [each for each in found.split(mark) if each.strip()] if mark else [found]
    if not isinstance(found, list) or not found:
        return None
    return tuple(
        as_text(each.get("context", each)) if isinstance(each, Mapping) else as_text(each)
        for each in found
    )


class RagasDataset(DataBenchmark):
    """Evaluation datasets of ragas, single-turn and multi-turn."""

    kind = "ragas"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for user_input with a response or contexts, or the older names."""
        if _is_table(sample):
            return None
        if sample.has("user_input", "response") or sample.has("user_input", "retrieved_contexts"):
            return "ragas dataset"
        if sample.rows and is_messages(sample.rows[0].values.get("user_input")):
            return "ragas dataset (multi-turn)"
        return (
            "ragas dataset (before 0.2)" if sample.has("question", "answer", "contexts") else None
        )

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        return {
            "query": "user_input (or question)",
            "response": "response (or answer), or the last turn of the assistant",
            "candidate": join_words(self.summary.candidates, most=8) + " (the file's name)",
            "id": "a hash of the query",
            "reference": "reference (or ground_truth)",
            "context": "retrieved_contexts, shown to the judge",
            **unread_columns(Sample(self.path).rows, *RAGAS_FIELDS),
        }

    def examples(self) -> Iterator[Kept]:
        """Yield an example per sample."""
        for path in data_files(self.path):
            for row in self.rows(path):
                if isinstance(row, BadRow):
                    yield row
                else:
                    yield mapped(row, partial(_ragas, candidate=stem_of(path)))


def _ragas(row: Row, candidate: str) -> Kept:
    given = from_json(_either(row, "user_input", "question"))
    if is_messages(given):
        split = split_turns(*read_turns(given, "user_input"))
        text, history, notes = split.query, split.history, split.notes
        answer: object = split.response
    else:
        if not isinstance(given, str) or not given.strip():
            raise RowError("the field 'user_input' holds no text or messages", shown_value(given))
        text, history, notes = given, (), ()
        answer = _either(row, "response", "answer")
    if answer is None:
        return Skipped(row.where, "no response")
    reference = _either(row, "reference", "ground_truth")
    context = passages(_either(row, "retrieved_contexts", "contexts"))
    name = content_id(text, history)
    return Example(
        row.where,
        Query(name, text, history, reference=None if reference is None else as_text(reference)),
        (Response(name, candidate, as_text(answer), context=context),),
        notes=notes,
    )
