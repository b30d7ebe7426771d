"""Scores of a run for the tools that its data came from.

    inspect        a copy of the logs, with a score `rocketeval` in every sample
    promptfoo      a Python assertion that returns the score of an output it knows
    langfuse       one score per observation, for `create_score`
    otel           one `gen_ai.evaluation.result` event per span
    mlflow         one feedback per response, for `log_feedback`
    openai_grader  the checklists as graders of the OpenAI API

Writing again replaces what was written: ids depend on the row and the judge only. Scores are shares
of the run's scale, from 0 to 1.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import orjson

from rocketeval._version import __version__
from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.data import DataBenchmark, Example, SourceIds
from rocketeval.benchmarks.inspect_logs import InspectLogs, read_member
from rocketeval.benchmarks.reading import open_bytes
from rocketeval.benchmarks.row_files import row_format
from rocketeval.checklists.base import is_shared
from rocketeval.config import load_config
from rocketeval.errors import ExportError
from rocketeval.exports.folder import ABOUT, Exported, filling, graded_responses
from rocketeval.exports.openai_grader import NAME, checklist_grader
from rocketeval.hashing import content_hash
from rocketeval.records import Response
from rocketeval.store.files import write_json
from rocketeval.store.run import RunStore

PASSING = 0.5
"""Share of the scale from which an assertion passes."""
NOT_JUDGED = "rows whose response has no score"
NO_IDS = "rows without the ids of a trace"
Cell = tuple[str, str]
"""Query id and candidate."""


@dataclass(frozen=True, slots=True)
class WrittenScore:
    """The score of one response, as other tools show it."""

    response: Response
    share: float
    """Score as a share of the scale."""
    items: tuple[tuple[str, float | None], ...]
    """Each item, and the probability of yes."""
    titles: tuple[str, ...]
    """The items as shown to people, with weight or penalty."""

    @property
    def explanation(self) -> str:
        """One line per item: the probability of yes, and the item with its weight or penalty."""
        return "\n".join(
            f"{'unanswered' if p_yes is None else format(p_yes, '.2f')}  {title}"
            for title, (_, p_yes) in zip(self.titles, self.items, strict=False)
        )


@dataclass
class _Source:
    """A run with the data it was made from."""

    store: RunStore
    reader: DataBenchmark | None
    """None if the data came from a benchmark folder."""
    scores: dict[Cell, WrittenScore] = field(default_factory=dict)

    @property
    def judge(self) -> str:
        return self.store.judge().model

    def examples(self) -> Iterator[Example]:
        """Yield the rows of the data that were used."""
        rows = self.reader.examples() if self.reader is not None else ()
        return (row for row in rows if isinstance(row, Example))


def _open(store: RunStore) -> _Source:
    config = load_config(store.path / "run.yaml")
    low, high = config.scorer.scale
    lists = store.inputs.checklists()
    source = _Source(store, None)
    for graded in graded_responses(store):
        response = graded.response
        if graded.score is None or response.query_id not in lists:
            continue
        made = lists[response.query_id]
        share = min(1.0, max(0.0, (graded.score - low) / (high - low)))
        pairs = tuple(zip(made.items, graded.p_yes, strict=False))
        cell = (response.query_id, response.candidate)
        source.scores[cell] = WrittenScore(response, round(share, 6), pairs, made.titles)
    benchmark = config.benchmark
    if benchmark.path.exists():
        reader = open_benchmark(benchmark)
        source.reader = reader if isinstance(reader, DataBenchmark) else None
    return source


def write_rows_back(store: RunStore, name: str, stream: BinaryIO) -> Exported:
    """Write a format that is one file."""
    source = _open(store)
    if name == "openai_grader":
        return _write_graders(source, stream)
    if name == "promptfoo":
        return _write_assertion(source, stream)
    make = {"langfuse": _langfuse, "otel": _otel, "mlflow": _mlflow}[name]
    rows = unscored = without = 0
    seen: set[tuple[Cell, SourceIds]] = set()
    for example in source.examples() if name != "mlflow" else _all_cells(source):
        ids = example.source or SourceIds()
        for response in example.responses:
            cell = (response.query_id, response.candidate)
            score = source.scores.get(cell)
            if score is None:
                unscored += 1
            elif name != "mlflow" and not ids.trace:
                without += 1
            elif (cell, ids) not in seen:
                seen.add((cell, ids))
                row = make(score, ids, source.judge)
                stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
                rows += 1
    if not rows:
        raise ExportError(
            f"No score can be written for {name}: the run's data has no ids of traces.",
            hint="Run it on an export of Langfuse or OpenTelemetry; for other data, use jsonl.",
        )
    return Exported(rows, {NOT_JUDGED: unscored, NO_IDS: without})


def _all_cells(source: _Source) -> Iterator[Example]:
    """Yield the rows of the data with their ids; for a benchmark folder, one per response."""
    rows = source.examples()
    first = next(rows, None)
    if first is not None:
        yield from chain([first], rows)
        return
    queries = source.store.inputs.queries
    for score in source.scores.values():
        yield Example("", queries[score.response.query_id], (score.response,))


def _score_id(ids: SourceIds, cell: Cell, judge: str) -> str:
    return content_hash("score", ids.trace, ids.span, *cell, judge).hex()


def _langfuse(score: WrittenScore, ids: SourceIds, judge: str) -> Mapping[str, object]:
    cell = (score.response.query_id, score.response.candidate)
    return {
        "score_id": _score_id(ids, cell, judge),
        "trace_id": ids.trace,
        "observation_id": ids.span,
        "name": NAME,
        "value": score.share,
        "data_type": "NUMERIC",
        "comment": score.explanation,
        "metadata": {"judge": judge, "rocketeval": __version__},
    }


def _otel(score: WrittenScore, ids: SourceIds, judge: str) -> Mapping[str, object]:
    return {
        "name": "gen_ai.evaluation.result",
        "trace_id": ids.trace,
        "span_id": ids.span,
        "attributes": {
            "gen_ai.evaluation.name": NAME,
            "gen_ai.evaluation.score.value": score.share,
            "gen_ai.evaluation.score.label": "pass" if score.share >= PASSING else "fail",
            "gen_ai.evaluation.explanation": score.explanation,
            **({"gen_ai.response.id": ids.response} if ids.response else {}),
            "rocketeval.judge": judge,
        },
    }


def _mlflow(score: WrittenScore, ids: SourceIds, judge: str) -> Mapping[str, object]:
    response = score.response
    return {
        **({"trace_id": ids.trace} if ids.trace else {}),
        "name": NAME,
        "value": score.share,
        "rationale": score.explanation,
        "source": {"source_type": "LLM_JUDGE", "source_id": judge},
        "metadata": {"query_id": response.query_id, "candidate": response.candidate},
    }


def _write_graders(source: _Source, stream: BinaryIO) -> Exported:
    lists = list(source.store.inputs.checklists().values())
    queries = source.store.inputs.queries
    shared = is_shared(lists)
    made = [checklist_grader(each, source.judge) for each in (lists[:1] if shared else lists)]
    lacking = Counter(reason for each in made for reason in each.lacking)
    usable = [each for each in zip(lists, made, strict=False) if each[1].content]
    if not usable:
        raise ExportError(
            "No checklist can be a grader of the OpenAI API: "
            + "; ".join(f"{count:,} {reason}" for reason, count in lacking.items())
        )
    content: object = [
        {
            "item": {"query": queries[each.query_id].text, "query_id": each.query_id},
            "grader": grader.content,
        }
        for each, grader in usable
    ]
    if shared:
        content = usable[0][1].content
    stream.write(orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE))
    notes = [
        f"The graders name the judge {source.judge!r}: change `model` to one of the OpenAI API."
    ]
    kind = load_config(source.store.path / "run.yaml").scorer.kind
    if kind != "mean":
        notes.append(f"The graders compute the weighted mean, not the scores of scorer {kind!r}.")
    if len(usable) < len(made):
        lacking["queries none of whose items can be a grader"] = len(made) - len(usable)
    return Exported(len(usable), lacking, notes=tuple(notes))


ASSERTION = '''"""Scores of RocketEval for promptfoo: {count} outputs, judged by {judge}.

Use it in a promptfoo config, with the tests and outputs of the run:
  assert: [{{type: python, value: "file://{name}"}}]
An output that was not judged fails, and says so: run RocketEval on the new results first.
"""

import hashlib
import json

SCORES = json.loads({scores!r})
PASSING = {passing}


def text_of(content):
    """Return the text of a message's content."""
    if isinstance(content, str):
        return content
    return "\\n".join(part["text"] for part in content if part.get("text"))


def conversation(prompt):
    """Return the last user message of a chat prompt, and the messages before it."""
    try:
        turns = [[each["role"], text_of(each["content"])] for each in json.loads(prompt)]
        last = max(place for place, turn in enumerate(turns) if turn[0] == "user")
    except (ValueError, AttributeError, LookupError, TypeError):
        return prompt, []
    return turns[last][1], turns[:last]


def get_assert(output, context):
    """Return the score of an output that was judged."""
    text = output if isinstance(output, str) else json.dumps(output, separators=(",", ":"))
    values = {{name: v if isinstance(v, str) else json.dumps(v, separators=(",", ":"))
              for name, v in (context.get("vars") or {{}}).items()}}
    one = next(iter(values.values()), "")
    lines = "\\n".join(f"{{name}}: {{value}}" for name, value in values.items())
    prompt = str(context.get("prompt") or "")
    query, history = conversation(prompt)
    given = one if len(values) == 1 else lines
    known = [(query, history), (given, []), (prompt, []), ("", []), (query, ["*"])]
    for query, before in known:
        key = hashlib.sha256(json.dumps([query, text, *before]).encode()).hexdigest()[:32]
        if key in SCORES:
            score, reason = SCORES[key]
            return {{"pass": score >= PASSING, "score": score, "reason": reason,
                    "namedScores": {{"rocketeval": score}}}}
    return {{"pass": False, "score": 0.0, "reason": "RocketEval has not judged this output."}}
'''


def _write_assertion(source: _Source, stream: BinaryIO) -> Exported:
    """Write a Python file that looks scores up by query and output."""
    import json
    from hashlib import sha256

    def key_of(*parts: object) -> str:
        return sha256(json.dumps(parts).encode()).hexdigest()[:32]

    queries = source.store.inputs.queries
    found: dict[str, tuple[float, str]] = {}
    anywhere: dict[str, set[str]] = {}
    for score in source.scores.values():
        query, text = queries[score.response.query_id], score.response.text
        before = [[turn.role, turn.content] for turn in query.history]
        exact = key_of(query.text, text, *before)
        found[exact] = (score.share, score.explanation)
        anywhere.setdefault(key_of(query.text, text, "*"), set()).add(exact)
    count = len(found)
    # A message that follows one history only is found even if the prompt spells it differently.
    found |= {key: found[exact] for key, (exact, *others) in anywhere.items() if not others}
    content = ASSERTION.format(
        count=count,
        judge=source.judge.replace('"', "'").replace("\\", "/"),
        name="rocketeval_assert.py",
        scores=json.dumps(dict(sorted(found.items()))),
        passing=PASSING,
    )
    stream.write(content.encode())
    return Exported(count)


def write_inspect_logs(store: RunStore, path: Path) -> Exported:
    """Write a copy of every log, with the run's scores in its samples."""
    source = _open(store)
    reader = source.reader
    if not isinstance(reader, InspectLogs):
        raise ExportError(
            "The run was not made from Inspect logs, or they are no longer there.",
            hint="Run it on the logs first: rocketeval run logs/ ...",
        )
    cells = {
        example.where: (example.query.id, example.responses[0].candidate)
        for example in source.examples()
    }
    written, rows = [], 0
    with filling(path) as fresh:
        for log, head in zip(reader.files, reader.headers, strict=True):
            target = fresh / head.file
            target.parent.mkdir(parents=True, exist_ok=True)
            rows += _write_log(log, head.file, target, cells, source)
            written.append(head.file)
        write_json(fresh / ABOUT, {"format": "inspect", "written": [ABOUT, *written]})
    unscored = sum(cell not in source.scores for cell in cells.values())
    return Exported(rows, {NOT_JUDGED: unscored}, path=path)


def _write_log(
    log: Path, name: str, target: Path, cells: Mapping[str, Cell], source: _Source
) -> int:
    """Write a copy of a log with the run's scores; NaN stays as it is."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    if row_format(log) != "eval":
        with open_bytes(log) as stream:
            document = json.loads(stream.read())
        for place, sample in enumerate(document["samples"], 1):
            _score_sample(sample, cells.get(f"{name} sample {place}"), source, found)
        _add_result(document, found)
        content = json.dumps(document, indent=2, ensure_ascii=False).encode()
        target.write_bytes(gzip.compress(content, mtime=0) if target.suffix == ".gz" else content)
        return len(found)
    with ZipFile(log) as archive, ZipFile(target, "w", ZIP_DEFLATED) as copy:
        contents = {
            each.filename: json.loads(read_member(log, each)) for each in archive.infolist()
        }
        for inside, content in contents.items():
            if inside.startswith("samples/"):
                _score_sample(content, cells.get(f"{name}/{inside}"), source, found)
        for inside, content in contents.items():
            if inside == "summaries.json":
                for summary in content:
                    key = (str(summary.get("id")), summary.get("epoch", 1))
                    if key in found:
                        summary.setdefault("scores", {})[NAME] = found[key]
            elif inside == "header.json":
                _add_result(content, found)
            # A fixed time, so that writing again gives the same bytes.
            member = ZipInfo(inside, (1980, 1, 1, 0, 0, 0))
            member.compress_type = ZIP_DEFLATED
            copy.writestr(member, json.dumps(content, ensure_ascii=False).encode())
    return len(found)


def _score_sample(
    sample: dict[str, Any],
    cell: Cell | None,
    source: _Source,
    found: dict[tuple[str, int], dict[str, Any]],
) -> None:
    score = source.scores.get(cell) if cell is not None else None
    if score is None:
        return
    entry: dict[str, Any] = {
        "value": score.share,
        "explanation": score.explanation,
        "metadata": {
            "judge": source.judge,
            "items": [{"item": item, "p_yes": p_yes} for item, p_yes in score.items],
        },
    }
    sample["scores"] = {**(sample.get("scores") or {}), NAME: entry}
    found[str(sample.get("id")), sample.get("epoch", 1)] = entry


def _add_result(document: dict[str, Any], found: Mapping[tuple[str, int], Any]) -> None:
    """Add the mean to the log's results, in place of an earlier one."""
    if not found:
        return
    mean = sum(entry["value"] for entry in found.values()) / len(found)
    results = document.get("results") or {"total_samples": len(found), "scores": []}
    others = [each for each in results.get("scores") or [] if each.get("name") != NAME]
    metric = {"name": "mean", "value": round(mean, 6), "params": {}}
    ours = {"name": NAME, "scorer": NAME, "params": {}, "metrics": {"mean": metric}}
    document["results"] = {**results, "scores": [*others, ours]}
