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
from rocketeval.exports.official import AnsweredItem
from rocketeval.exports.openai_grader import NAME, checklist_grader, grader_item
from rocketeval.hashing import content_hash
from rocketeval.records import Query, Response, Turn
from rocketeval.store.files import write_json
from rocketeval.store.run import RunStore
from rocketeval.text import count_of

PASSING = 0.5
"""Share of the scale from which an assertion passes."""
NOT_JUDGED = "rows whose response has no score"
OTHER_RESPONSE = "rows whose response is not the judged one"
NO_IDS = "rows without the ids of a trace"
SEVERAL_SCORES = "outputs of tests with the same prompt but different judgments"
Cell = tuple[str, str]
"""Query id and candidate."""


@dataclass(frozen=True, slots=True)
class WrittenScore:
    """The score of one response, as other tools show it."""

    query: Query
    response: Response
    share: float
    """Score as a share of the scale."""
    items: tuple[str, ...]
    answers: tuple[AnsweredItem, ...]
    """The items as shown to people, with weight or penalty, and their answers."""

    @property
    def explanation(self) -> str:
        """One line per item: the probability of yes, and the item with its weight or penalty."""
        return "\n".join(f"{_shown(each)}  {each.title}" for each in self.answers)


def _shown(item: AnsweredItem) -> str:
    if not item.applies:
        return "not applicable"
    return "unanswered" if item.p_yes is None else f"{item.p_yes:.2f}"


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

    def score_of(self, query: Query, response: Response) -> WrittenScore | str:
        """Return the score of a response in the data, or why it has none.

        The data may hold a second response that the run refused, or may have changed since.
        """
        score = self.scores.get((response.query_id, response.candidate))
        if score is None:
            return NOT_JUDGED
        same = _judged_texts(query, response) == _judged_texts(score.query, score.response)
        return score if same else OTHER_RESPONSE


def _judged_texts(query: Query, response: Response) -> tuple[str, str, tuple[Turn, ...]]:
    """Return the query, the response and the turns before it, as a judge sees them."""
    history = query.history if response.history is None else response.history
    return query.text, response.text, history


def _open(store: RunStore) -> _Source:
    config = load_config(store.path / "run.yaml")
    low, high = config.scorer.scale
    lists, queries = store.inputs.checklists(), store.inputs.queries
    source = _Source(store, None)
    for graded in graded_responses(store):
        response = graded.response
        if graded.score is None or response.query_id not in lists:
            continue
        made = lists[response.query_id]
        share = min(1.0, max(0.0, (graded.score - low) / (high - low)))
        answers = tuple(graded.answered(made.titles))
        cell = (response.query_id, response.candidate)
        query = queries[response.query_id]
        source.scores[cell] = WrittenScore(query, response, round(share, 6), made.items, answers)
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
    rows = 0
    left_out: Counter[str] = Counter()
    seen: set[tuple[Cell, SourceIds]] = set()
    for example in source.examples() if name != "mlflow" else _all_cells(source):
        ids = example.source or SourceIds()
        for response in example.responses:
            cell = (response.query_id, response.candidate)
            score = source.score_of(example.query, response)
            if isinstance(score, str):
                left_out[score] += 1
            elif name != "mlflow" and not ids.trace:
                left_out[NO_IDS] += 1
            elif (cell, ids) not in seen:
                seen.add((cell, ids))
                row = make(score, ids, source.judge)
                stream.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
                rows += 1
    if not rows:
        _refuse_other_responses(name, left_out)
        raise ExportError(
            f"No score can be written for {name}: the run's data has no ids of traces.",
            hint="Run it on an export of Langfuse or OpenTelemetry; for other data, use jsonl.",
        )
    return Exported(rows, left_out)


def _refuse_other_responses(name: str, left_out: Mapping[str, int]) -> None:
    """Raise ExportError if there is no score because the data changed since the run."""
    if count := left_out.get(OTHER_RESPONSE):
        raise ExportError(
            f"No score can be written for {name}: in the run's data, "
            f"{count_of(count, 'row has', 'rows have')} another response than the judged one.",
            hint="The data changed since the run: run RocketEval on it again, then export.",
        )


def _all_cells(source: _Source) -> Iterator[Example]:
    """Yield the rows of the data with their ids; for a benchmark folder, one per response."""
    rows = source.examples()
    first = next(rows, None)
    if first is not None:
        yield from chain([first], rows)
        return
    for score in source.scores.values():
        yield Example("", score.query, (score.response,))


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
    chats = [bool(queries[each.query_id].history) for each in lists]
    if shared:
        lists, chats = lists[:1], [any(chats)]
    made = [
        checklist_grader(each, source.judge, history=chat)
        for each, chat in zip(lists, chats, strict=False)
    ]
    lacking = Counter(reason for each in made for reason in each.lacking)
    usable = [each for each in zip(lists, made, strict=False) if each[1].content]
    if not usable:
        raise ExportError(
            "No checklist can be a grader of the OpenAI API: "
            + "; ".join(f"{count:,} {reason}" for reason, count in lacking.items())
        )
    content: object = [
        {
            "item": grader_item(queries[each.query_id]),
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
    if shared and any(chats):
        notes.append(
            "The grader shows `item.history`, the conversation before the query: give every item "
            "one, empty for a query without a conversation."
        )
    own = sum(score.response.history is not None for score in source.scores.values())
    if own:
        some = count_of(own, "response follows", "responses follow")
        notes.append(f"{some} a conversation other than the query's, which no item holds.")
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
So does an output that tests with the same prompt, but other assertions, judged differently.
"""

import hashlib
import json

SCORES = json.loads({scores!r})
PASSING = {passing}


def written(value):
    """Return a value as text: JSON, unless it is a text."""
    if isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def failed(reason):
    """Return the result of an output without a score."""
    return {{"pass": False, "score": 0.0, "reason": reason}}


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
    text = written(output)
    values = {{name: written(value) for name, value in (context.get("vars") or {{}}).items()}}
    one = next(iter(values.values()), "")
    lines = "\\n".join(f"{{name}}: {{value}}" for name, value in values.items())
    prompt = str(context.get("prompt") or "")
    query, history = conversation(prompt)
    given = one if len(values) == 1 else lines
    known = [(query, history), (given, []), (prompt, []), ("", []), (query, ["*"])]
    for query, before in known:
        key = hashlib.sha256(json.dumps([query, text, *before]).encode()).hexdigest()[:32]
        if key in SCORES:
            if SCORES[key] is None:
                return failed("Tests of the run with this prompt, but other assertions, judged "
                              "this output differently: RocketEval cannot tell which one this is.")
            score, reason = SCORES[key]
            return {{"pass": score >= PASSING, "score": score, "reason": reason,
                    "namedScores": {{"rocketeval": score}}}}
    return failed("RocketEval has not judged this output.")
'''


def _write_assertion(source: _Source, stream: BinaryIO) -> Exported:
    """Write a Python file that looks scores up by query and output.

    Tests are not distinguished: their assertions in a config differ from those in its results.
    """
    import json
    from hashlib import sha256

    def key_of(*parts: object) -> str:
        return sha256(json.dumps(parts).encode()).hexdigest()[:32]

    found: dict[str, tuple[float, str] | None] = {}
    anywhere: dict[str, set[str]] = {}
    for score in source.scores.values():
        query, text = score.query, score.response.text
        before = [[turn.role, turn.content] for turn in query.history]
        exact = key_of(query.text, text, *before)
        own = (score.share, score.explanation)
        found[exact] = own if found.get(exact, own) == own else None
        anywhere.setdefault(key_of(query.text, text, "*"), set()).add(exact)
    several = list(found.values()).count(None)
    count = len(found) - several
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
    return Exported(count, {SEVERAL_SCORES: several})


def write_inspect_logs(store: RunStore, path: Path) -> Exported:
    """Write a copy of every log, with the run's scores in its samples."""
    source = _open(store)
    reader = source.reader
    if not isinstance(reader, InspectLogs):
        raise ExportError(
            "The run was not made from Inspect logs, or they are no longer there.",
            hint="Run it on the logs first: rocketeval run logs/ ...",
        )
    scores: dict[str, WrittenScore] = {}
    left_out: Counter[str] = Counter()
    for example in source.examples():
        score = source.score_of(example.query, example.responses[0])
        if isinstance(score, str):
            left_out[score] += 1
        else:
            scores[example.where] = score
    if not scores:
        _refuse_other_responses("inspect", left_out)
    written, rows = [], 0
    with filling(path) as fresh:
        for log, head in zip(reader.files, reader.headers, strict=True):
            target = fresh / head.file
            target.parent.mkdir(parents=True, exist_ok=True)
            rows += _write_log(log, head.file, target, scores, source.judge)
            written.append(head.file)
        write_json(fresh / ABOUT, {"format": "inspect", "written": [ABOUT, *written]})
    return Exported(rows, left_out, path=path)


def _write_log(
    log: Path, name: str, target: Path, scores: Mapping[str, WrittenScore], judge: str
) -> int:
    """Write a copy of a log with the run's scores; NaN stays as it is."""
    found: dict[tuple[str, int], dict[str, Any]] = {}
    if row_format(log) != "eval":
        with open_bytes(log) as stream:
            document = json.loads(stream.read())
        for place, sample in enumerate(document["samples"], 1):
            _score_sample(sample, scores.get(f"{name} sample {place}"), judge, found)
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
                _score_sample(content, scores.get(f"{name}/{inside}"), judge, found)
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
    score: WrittenScore | None,
    judge: str,
    found: dict[tuple[str, int], dict[str, Any]],
) -> None:
    if score is None:
        return
    entry: dict[str, Any] = {
        "value": score.share,
        "explanation": score.explanation,
        "metadata": {
            "judge": judge,
            "items": [
                {
                    "item": item,
                    "p_yes": answer.p_yes,
                    **({} if answer.applies else {"not_applicable": True}),
                }
                for item, answer in zip(score.items, score.answers, strict=False)
            ],
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
