"""Traces: LLM calls in exports of OpenTelemetry, OpenInference and Langfuse.

OTLP JSON (resourceSpans), spans with `attributes` of the GenAI conventions or of OpenInference, and
Langfuse observations (traceId, type, input, output).
"""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rocketeval.benchmarks.cells import as_text
from rocketeval.benchmarks.data import DataBenchmark, Kept, Skipped, SourceIds
from rocketeval.benchmarks.messages import content_text, from_json, mapped, read_turns
from rocketeval.benchmarks.reading import Row
from rocketeval.benchmarks.request_logs import (
    MESSAGE_FIELDS,
    MESSAGES,
    LoggedOutput,
    asked_turns,
    read_output,
    request_example,
)
from rocketeval.benchmarks.row_files import (
    BadRow,
    Rows,
    Sample,
    data_files,
    read_document,
    row_format,
)
from rocketeval.records import Turn
from rocketeval.text import join_words

NOT_A_CALL = "not an LLM call"
CALLS = ("chat", "text_completion", "generate_content")
"""GenAI operations in which a model writes text."""


OUTPUT_FIELDS = {"role", "choices", "output", "generations", "error", *MESSAGE_FIELDS}
"""Fields of outputs; an object without them is what the model wrote."""
WRITTEN_JSON = "an output is an object: it is judged as JSON"
FIRST_CALL = ("", ".0.name", ".0.tool_call.function.name", ".0.tool_call.id")
"""Ends of the attributes of a message's first tool call."""


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
        if any(_is_span(row.values, row.values.get("attributes")) for row in sample.rows):
            return "OpenTelemetry spans"
        values = sample.rows[0].values
        named = {name.removeprefix("attributes."): 0 for name in values if "attributes." in name}
        if _is_span(values, named):
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


def _is_span(values: Mapping[str, Any], attributes: object) -> bool:
    """Return whether a row is a span: it has attributes of an LLM call, or the id of a span."""
    if not isinstance(attributes, Mapping) or not attributes:
        return False
    context = values.get("context")
    ids = {*values, *(context if isinstance(context, Mapping) else ())}
    return bool(ids & {"span_id", "spanId", "context.span_id"}) or any(
        name.partition(".")[0] in ("gen_ai", "openinference", "llm") for name in attributes
    )


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
    hidden: set[str] = set()
    if system:
        first = (Turn("system", content_text(from_json(system), hidden)),)
    if "gen_ai.input.messages" in found:
        turns, notes = asked_turns(
            from_json(found["gen_ai.input.messages"]), "gen_ai.input.messages"
        )
        output = read_output(from_json(found.get("gen_ai.output.messages")))
    else:
        turns, notes = read_turns(_numbered(found, "gen_ai.prompt.{}"), "gen_ai.prompt")
        written = _numbered(found, "gen_ai.completion.{}")
        output = read_output({"choices": [{"message": each} for each in written]})
    model = found.get("gen_ai.response.model") or found.get("gen_ai.request.model")
    said = (*notes, *sorted(hidden))
    return request_example(
        row, (*first, *turns), said, str(model or "unnamed model"), output, source
    )


def _openinference(row: Row, found: Mapping[str, Any], source: SourceIds) -> Kept:
    kind = str(found.get("openinference.span.kind") or row.values.get("span_kind") or "")
    operation = found.get("gen_ai.operation.name")
    if kind.upper() != "LLM":
        why = "the GenAI span holds no messages (content capture was off)"
        return Skipped(row.where, why if operation in CALLS else NOT_A_CALL)
    model = str(found.get("llm.model_name") or "unnamed model")
    asked = _messages(found, "llm.input_messages")
    if asked:
        turns, notes = asked_turns(asked, "llm.input_messages")
    else:
        sent = found.get("input.value")
        if found.get("input.mime_type") == "application/json":
            # The request as its library writes it: JSON that is the prompt is text/plain.
            sent = from_json(sent)
        turns, notes = asked_turns(sent, "input.value")
    written = _messages(found, "llm.output_messages")
    output = read_output(written[-1] if written else None)
    if output.text is None:
        # Notes of both: the value may be the same message in another shape.
        given = found.get("output.value")
        if written or found.get("output.mime_type") == "application/json":
            # The reply as its library writes it: JSON that the model wrote is text/plain.
            given = from_json(given)
        value = read_output(given)
        output = LoggedOutput(value.text, (*output.notes, *value.notes))
    if len(written) > 1:
        output = LoggedOutput(output.text, (*output.notes, MESSAGES))
    return request_example(row, turns, notes, model, output, source)


def _messages(found: Mapping[str, Any], name: str) -> list[object]:
    """Return the messages of an attribute of OpenInference, a list or numbered attributes."""
    listed = found.get(name)
    if isinstance(listed, list):
        return [_unwrapped(each) for each in listed]
    return [*_numbered(found, f"{name}.{{}}.message")]


def _unwrapped(message: object) -> object:
    """Return a message whose keys may start with `message.`."""
    if not isinstance(message, Mapping):
        return message
    inner = message.get("message")
    if isinstance(inner, Mapping):
        return inner
    return {str(name).removeprefix("message."): value for name, value in message.items()}


def _numbered(found: Mapping[str, Any], path: str) -> list[dict[str, object]]:
    """Return the messages of attributes such as llm.input_messages.0.message.content."""
    messages: list[dict[str, object]] = []
    for number in range(10_000):
        base = path.format(number)
        content = found.get(f"{base}.content")
        if content is None:
            parts = (f"{base}.contents.{part}.message_content" for part in range(100))
            listed = [
                {"type": found.get(f"{part}.type"), "text": found.get(f"{part}.text")}
                for part in parts
                if f"{part}.type" in found or f"{part}.text" in found
            ]
            content = listed or None
        called = any(f"{base}.tool_calls{first}" in found for first in FIRST_CALL)
        if content is None and not called and f"{base}.role" not in found:
            break
        role = str(found.get(f"{base}.role") or "user")
        messages.append({"role": role, "content": content, "tool_calls": called})
    return messages


def _langfuse(row: Row) -> Kept:
    values = row.values
    if str(values.get("type", "")).upper() != "GENERATION":
        return Skipped(row.where, NOT_A_CALL)
    turns, notes = asked_turns(values.get("input"), "input")
    given = values.get("output")
    output = read_output(given)
    if isinstance(given, Mapping) and given and not given.keys() & OUTPUT_FIELDS:
        output = LoggedOutput(as_text(given), (WRITTEN_JSON,))
    model = _first(values, "model", "providedModelName", "name") or "unnamed model"
    source = SourceIds(_first(values, "traceId"), _first(values, "id"))
    return request_example(row, turns, notes, model, output, source)
