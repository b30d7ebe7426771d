"""Logs of requests: OpenAI chat and batch files, and traces of OpenTelemetry and Langfuse.

chat     {"messages": [...]} with the assistant last; {"model", "messages", "choices"};
         {"request", "response"}
batch    output rows {"custom_id", "response"}, joined to the input rows {"custom_id", "body"}
traces   OTLP JSON (resourceSpans), spans with `attributes` of the GenAI conventions or of
         OpenInference, and Langfuse observations (traceId, type, input, output)
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from rocketeval.benchmarks.columns import columns_of
from rocketeval.benchmarks.data import (
    DataBenchmark,
    Example,
    Kept,
    Skipped,
    SourceIds,
    content_id,
)
from rocketeval.benchmarks.messages import (
    RowError,
    content_text,
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
from rocketeval.text import join_words

NOT_A_CALL = "not an LLM call"
CALLS = ("chat", "text_completion", "generate_content")
"""GenAI operations in which a model writes text."""
VERSIONS = ("prompt_version", "prompt_name", "variant", "version", "candidate", "system_name")
"""Fields of a log that name versions of a prompt."""
KNOWN_FIELDS = ("messages", "model", "id", "metadata", "request", "response", "choices",
                "custom_id", "body", "input", "prompt", "object", "error", "method",
                "url")  # fmt: skip
NO_OUTPUT = "the call has no output"


def _example(
    row: Row,
    turns: tuple[Turn, ...],
    notes: tuple[str, ...],
    model: str,
    text: str | None,
    source: SourceIds | None = None,
) -> Kept:
    """Return the example of one request; its id is a hash of the conversation."""
    split = split_turns(turns, notes)
    answer = split.response if text is None else text
    if answer is None:
        return Skipped(row.where, NO_OUTPUT)
    name = content_id(split.query, split.history)
    return Example(
        row.where,
        Query(name, split.query, split.history),
        (Response(name, model, answer),),
        notes=split.notes,
        source=source,
    )


def _asked(given: object, field: str) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """Return the turns of a request's messages or text."""
    value = from_json(given)
    if isinstance(value, Mapping) and "messages" in value:
        value = from_json(value["messages"])
    if is_messages(value):
        return read_turns(value, field)
    text = value if isinstance(value, str) else ""
    if not text.strip():
        raise RowError("the request has no messages", f"{field}: {shown_value(value)}")
    return (Turn("user", text),), ()


def _answer(body: object) -> str | None:
    """Return the text of a chat completion, a response of the Responses API, or a message."""
    value = from_json(body)
    if isinstance(value, str):
        return value or None
    if is_messages(value):
        return read_turns(value, "output")[0][-1].content or None
    if not isinstance(value, Mapping):
        return None
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        message = choices[0].get("message") or choices[0].get("text")
        return _answer(message)
    if isinstance(value.get("output"), list):
        said = [part for part in value["output"] if isinstance(part, Mapping) and part.get("role")]
        return content_text(said[-1].get("content"), set()) or None if said else None
    if "content" in value or "parts" in value:
        return content_text(value.get("content", value.get("parts")), set()) or None
    return None


@dataclass(frozen=True, slots=True)
class _Versions:
    """The field of a log that names versions of a prompt."""

    field: str
    many_models: bool
    """Whether the model varies, too."""


def _noted(row: Row, name: str) -> str:
    """Return a field of the row, or of its metadata; empty if it has none."""
    about = from_json(row.values.get("metadata"))
    inner = about.get(name) if isinstance(about, Mapping) else None
    found = row.values.get(name)
    return "" if found is inner is None else str(inner if found is None else found).strip()


def _model_in(row: Row) -> str:
    request = from_json(row.values.get("request"))
    named = request.get("model") if isinstance(request, Mapping) else None
    return str(named or _noted(row, "model"))


class ChatLogs(DataBenchmark):
    """Chat-completion logs, fine-tuning files and OpenAI batches."""

    kind = "openai_logs"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for batch rows, or messages with an answer."""
        if sample.has("custom_id", "response") or sample.has("custom_id", "body"):
            return "OpenAI batch files"
        if sample.has("messages", "choices") or sample.has("object", "choices"):
            return "chat-completion logs"
        values = sample.rows[0].values if sample.rows else {}
        messages = from_json(values.get("messages"))
        if sample.has("request", "response") and isinstance(from_json(values["request"]), Mapping):
            return "chat-completion logs"
        if sample.has("messages", "response") and is_messages(messages):
            return "chat-completion logs"
        if is_messages(messages) and read_turns(messages, "messages")[0][-1].role == "assistant":
            known = {"messages", "model", "id", "metadata", "tools", "created", "usage", "weight"}
            return "chat conversations" if set(values) <= known else None
        return None

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        batch = "joined by custom_id" if self._requests else "in the same row"
        versions = self._versions
        named = " / ".join(
            ["model"] * (not versions or versions.many_models)
            + ([versions.field] if versions else [])
        )
        said = {
            "query": f"the last user message ({batch}), earlier messages as history",
            "response": "the assistant's message",
            "candidate": f"{named}: " + join_words(self.summary.candidates, most=8),
            "id": "a hash of the conversation",
        }
        used = {*KNOWN_FIELDS, *([versions.field] if versions else [])}
        unread = [each for each in columns_of(Sample(self.path).rows) if each not in used]
        if unread:
            said["not read"] = join_words(map(repr, unread), most=12)
        return said

    @cached_property
    def _versions(self) -> _Versions | None:
        """The field that names versions of a prompt, if the rows have one."""
        field = None
        models: set[str] = set()
        for path in data_files(self.path):
            for row in self.rows(path):
                if isinstance(row, BadRow):
                    continue
                if field is None:
                    found = (each for each in VERSIONS if _noted(row, each))
                    field = next(found, None)
                    if field is None:
                        # A file holds one kind of row.
                        break
                models.add(_model_in(row))
        return _Versions(field, len(models) > 1) if field else None

    @cached_property
    def _requests(self) -> dict[str, Row]:
        """The requests of batch input files by custom_id."""
        found: dict[str, Row] = {}
        self._repeated: dict[str, tuple[str, str]] = {}
        for path in data_files(self.path):
            for row in self.rows(path):
                if isinstance(row, BadRow) or "custom_id" not in row.values:
                    # A file holds one kind of row; a broken first line is reported later.
                    if isinstance(row, BadRow):
                        continue
                    break
                if "body" not in row.values:
                    break
                key = str(row.values["custom_id"])
                before = found.setdefault(key, row)
                if before.values["body"] != row.values["body"]:
                    self._repeated.setdefault(key, (before.where, row.where))
        return found

    def examples(self) -> Iterator[Kept]:
        """Yield an example per answer."""
        answered: set[str] = set()
        for path in data_files(self.path):
            for row in self.rows(path):
                if isinstance(row, BadRow):
                    yield row
                    continue
                if "custom_id" in row.values:
                    if "body" in row.values:
                        # An input row: half of the row that answers it.
                        continue
                    answered.add(str(row.values["custom_id"]))
                yield mapped(row, partial(self._one, name=stem_of(path)))
        for name, row in self._requests.items():
            if name not in answered:
                yield Skipped(row.where, "the batch's output has no answer to this request")

    def _one(self, row: Row, name: str) -> Kept:
        if "custom_id" in row.values:
            return self._batch(row)
        if "request" in row.values:
            request, body = map(from_json, (row.values["request"], row.values.get("response")))
        else:
            request, body = row.values, row.values.get("response") or row.values
        if not isinstance(request, Mapping):
            raise RowError("the request is not an object", shown_value(request))
        given = request.get("messages", request.get("input", request.get("prompt")))
        turns, notes = _asked(given, "messages")
        served = body.get("model") if isinstance(body, Mapping) else None
        model = str(request.get("model") or served or _noted(row, "model") or name)
        if self._versions:
            version = _noted(row, self._versions.field)
            if not version:
                raise RowError(f"the field {self._versions.field!r} is empty")
            model = f"{model} / {version}" if self._versions.many_models else version
        text = None if body is row.values and "choices" not in row.values else _answer(body)
        if text is None and body is not row.values:
            return Skipped(row.where, NO_OUTPUT)
        return _example(row, turns, notes, model, text)

    def _batch(self, row: Row) -> Kept:
        key = str(row.values["custom_id"])
        request = self._requests.get(key)
        if request is None:
            raise RowError(
                "no request has this custom_id",
                key,
                "Give a folder with the batch's input file next to its output file.",
            )
        if key in self._repeated:
            raise RowError(
                "two requests have this custom_id",
                f"{key} ({' and '.join(self._repeated[key])})",
                "Give the files of one batch at a time, or rename the requests.",
            )
        response = row.values.get("response")
        status = response.get("status_code") if isinstance(response, Mapping) else None
        if row.values.get("error") or status != 200:
            return Skipped(row.where, "the request failed")
        sent = request.get("body", dict)
        turns, notes = _asked(sent.get("messages", sent.get("input")), "body.messages")
        body = response.get("body") if isinstance(response, Mapping) else None
        text = _answer(body)
        if text is None:
            return Skipped(row.where, NO_OUTPUT)
        served = body.get("model") if isinstance(body, Mapping) else None
        model = str(sent.get("model") or served or "unnamed model")
        return _example(row, turns, notes, model, text)


class TraceExport(DataBenchmark):
    """LLM calls in exports of OpenTelemetry, OpenInference and Langfuse."""

    kind = "traces"

    @classmethod
    def recognize(cls, sample: Sample) -> str | None:
        """Look for spans, span attributes or Langfuse observations."""
        if "resourceSpans" in sample.document or sample.has("resourceSpans"):
            return "OpenTelemetry traces (OTLP JSON)"
        if not sample.rows:
            return None
        values = sample.rows[0].values
        if isinstance(values.get("attributes"), Mapping):
            return "OpenTelemetry spans"
        if any(name.startswith("attributes.") for name in values):
            return "Phoenix spans"
        return "Langfuse observations" if sample.has("traceId", "type", "input", "output") else None

    def mapping(self) -> Mapping[str, str]:
        """Return where the parts come from."""
        return {
            "query": "the last user message of each LLM call, earlier messages as history",
            "response": "the call's output",
            "candidate": "model: " + join_words(self.summary.candidates, most=8),
            "id": "a hash of the conversation",
        }

    def examples(self) -> Iterator[Kept]:
        """Yield an example per span."""
        for path in data_files(self.path):
            for row in self._spans(path):
                yield row if isinstance(row, BadRow) else mapped(row, _span)

    def _spans(self, path: Path) -> Rows:
        if row_format(path) == "json":
            document = read_document(path)
            if isinstance(document, Mapping) and "resourceSpans" in document:
                yield from _otlp_spans(Row(document, path.name))
                return
        for row in self.rows(path):
            if isinstance(row, Row) and "resourceSpans" in row.values:
                yield from _otlp_spans(row)
            else:
                yield row


def _otlp_spans(row: Row) -> Iterator[Row]:
    number = 0
    for resource in _list(row.values, "resourceSpans"):
        for scope in _list(resource, "scopeSpans"):
            for span in _list(scope, "spans"):
                number += 1
                values = {**span, "attributes": _otlp_attributes(_list(span, "attributes"))}
                yield Row(values, f"{row.where} span {number}")


def _list(value: object, name: str) -> list[Any]:
    """Return the objects in a list field; none if there is no such field."""
    found = value.get(name) if isinstance(value, Mapping) else None
    return [each for each in found if isinstance(each, Mapping)] if isinstance(found, list) else []


def _otlp_value(value: object) -> object:
    if not isinstance(value, Mapping) or not value:
        return None
    kind, inner = next(iter(value.items()))
    if kind == "arrayValue":
        return [_otlp_value(each) for each in _list(inner, "values")]
    if kind == "kvlistValue":
        return _otlp_attributes(_list(inner, "values"))
    return inner


def _otlp_attributes(listed: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    return {str(each.get("key")): _otlp_value(each.get("value")) for each in listed}


def _span(row: Row) -> Kept:
    values = row.values
    if "traceId" in values and "attributes" not in values:
        return _langfuse(row)
    attributes = values.get("attributes")
    if isinstance(attributes, Mapping):
        found = dict(_flat(attributes))
    else:
        flat = {
            name.removeprefix("attributes."): value
            for name, value in values.items()
            if name.startswith("attributes.") and value is not None
        }
        found = dict(_flat(flat))
    context = values.get("context")
    ids = context if isinstance(context, Mapping) else values
    source = SourceIds(
        trace=hex_id(_first(ids, "trace_id", "traceId", "context.trace_id")),
        span=hex_id(_first(ids, "span_id", "spanId", "context.span_id")),
        response=str(found.get("gen_ai.response.id") or ""),
    )
    if "gen_ai.input.messages" in found or "gen_ai.prompt.0.content" in found:
        return _gen_ai(row, found, source)
    return _openinference(row, found, source)


def hex_id(name: str) -> str:
    """Return a trace or span id in hex; some exporters write it in base64.

    >>> hex_id("KB1+J5ljrt4="), hex_id("281d7e279963aede"), hex_id("0x281d7e279963aede")
    ('281d7e279963aede', '281d7e279963aede', '281d7e279963aede')
    """
    plain = name.removeprefix("0x")
    if len(plain) in (12, 24) and plain.endswith("="):
        with contextlib.suppress(binascii.Error):
            return base64.b64decode(plain, validate=True).hex()
    return plain


def _first(values: Mapping[str, Any], *names: str) -> str:
    return next((str(values[name]) for name in names if values.get(name)), "")


def _flat(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield attributes under dotted names, also those of nested objects and lists."""
    for name, value in values.items():
        path = f"{before}{name}"
        messages = path.endswith(("_messages", ".messages", "_instructions"))
        if isinstance(value, Mapping) and not messages:
            yield from _flat(value, f"{path}.")
        else:
            yield path, value


def _gen_ai(row: Row, found: Mapping[str, Any], source: SourceIds) -> Kept:
    system = found.get("gen_ai.system_instructions")
    first: tuple[Turn, ...] = ()
    if system:
        first = (Turn("system", content_text(from_json(system), set())),)
    if "gen_ai.input.messages" in found:
        turns, notes = _asked(found["gen_ai.input.messages"], "gen_ai.input.messages")
        text = _answer(found.get("gen_ai.output.messages"))
    else:
        turns, notes = tuple(_numbered(found, "gen_ai.prompt.{}", "role", "content")), ()
        text = _text_of(found.get("gen_ai.completion.0.content"))
    if text is None:
        return Skipped(row.where, NO_OUTPUT)
    model = found.get("gen_ai.response.model") or found.get("gen_ai.request.model")
    return _example(row, (*first, *turns), notes, str(model or "unnamed model"), text, source)


def _openinference(row: Row, found: Mapping[str, Any], source: SourceIds) -> Kept:
    kind = str(found.get("openinference.span.kind") or row.values.get("span_kind") or "")
    operation = found.get("gen_ai.operation.name")
    if kind.upper() != "LLM":
        why = "the GenAI span holds no messages (content capture was off)"
        return Skipped(row.where, why if operation in CALLS else NOT_A_CALL)
    model = str(found.get("llm.model_name") or "unnamed model")
    listed = found.get("llm.input_messages")
    if isinstance(listed, list):
        turns, notes = _asked([_unwrapped(each) for each in listed], "llm.input_messages")
    else:
        turns = tuple(_numbered(found, "llm.input_messages.{}.message", "role", "content"))
        notes = ()
    if not turns:
        turns, notes = _asked(found.get("input.value"), "input.value")
    out = found.get("llm.output_messages")
    if isinstance(out, list) and out:
        text = _answer(_unwrapped(out[-1]))
    else:
        said = list(_numbered(found, "llm.output_messages.{}.message", "role", "content"))
        text = said[-1].content if said else None
    text = text or _answer(found.get("output.value"))
    if text is None:
        return Skipped(row.where, NO_OUTPUT)
    return _example(row, turns, notes, model, text, source)


def _unwrapped(message: object) -> object:
    """Return a message whose keys may start with `message.`."""
    if not isinstance(message, Mapping):
        return message
    inner = message.get("message")
    if isinstance(inner, Mapping):
        return inner
    return {str(name).removeprefix("message."): value for name, value in message.items()}


def _numbered(found: Mapping[str, Any], path: str, role: str, content: str) -> Iterator[Turn]:
    """Yield the turns of attributes such as llm.input_messages.0.message.content."""
    for number in range(10_000):
        base = path.format(number)
        text = found.get(f"{base}.{content}")
        if text is None:
            parts = [
                found[name]
                for part in range(100)
                if (name := f"{base}.contents.{part}.message_content.text") in found
            ]
            text = "\n".join(map(str, parts)) if parts else None
        if text is None and f"{base}.{role}" not in found:
            return
        yield Turn(str(found.get(f"{base}.{role}") or "user"), str(text or ""))


def _text_of(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _langfuse(row: Row) -> Kept:
    values = row.values
    if str(values.get("type", "")).upper() != "GENERATION":
        return Skipped(row.where, NOT_A_CALL)
    turns, notes = _asked(values.get("input"), "input")
    text = _answer(values.get("output"))
    if text is None:
        return Skipped(row.where, NO_OUTPUT)
    model = _first(values, "model", "providedModelName", "name") or "unnamed model"
    source = SourceIds(_first(values, "traceId"), _first(values, "id"))
    return _example(row, turns, notes, model, text, source)
