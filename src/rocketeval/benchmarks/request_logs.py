"""Logs of requests: OpenAI chat and batch files.

chat     {"messages": [...]} with the assistant last; {"model", "messages", "choices"};
         {"request", "response"}
batch    output rows {"custom_id", "response"}, joined to the input rows {"custom_id", "body"}
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
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
    CALLS,
    REASONING,
    STEPS,
    RowError,
    from_json,
    is_messages,
    mapped,
    message_text,
    read_turns,
    split_turns,
    system_text,
)
from rocketeval.benchmarks.reading import Row, shown_value
from rocketeval.benchmarks.row_files import (
    BadRow,
    Sample,
    data_files,
    stem_of,
)
from rocketeval.records import Query, Response, Turn
from rocketeval.text import join_words

VERSIONS = ("prompt_version", "prompt_name", "variant", "version", "candidate", "system_name")
"""Fields of a log that name versions of a prompt."""
KNOWN_FIELDS = ("messages", "model", "id", "metadata", "request", "response", "choices",
                "system", "instructions",
                "custom_id", "body", "input", "prompt", "object", "error", "method",
                "url")  # fmt: skip
NO_OUTPUT = "the call has no output"
NO_TEXT_OUTPUT = "the output has no text, only tool calls or reasoning"
OUTPUT_OBJECTS = ("chat.completion", "text_completion", "response")
"""Names that OpenAI's API gives to its outputs."""
REPLYING = ("assistant", "ai", "model")
"""Roles of messages that are outputs."""
MESSAGE_FIELDS = ("content", "parts", "refusal", "tool_calls", "function_call")
"""Fields of which a message that is an output has one."""
CHOICES = "an output has several choices: only the first is judged"
MESSAGES = "an output has several messages: only the last is judged"


@dataclass(frozen=True, slots=True)
class LoggedOutput:
    """What a model wrote."""

    text: str | None
    """None if there is no text to judge."""
    notes: tuple[str, ...] = ()
    """What is not shown to the judge."""

    @property
    def lack(self) -> str:
        """Why there is no text."""
        return NO_TEXT_OUTPUT if self.notes else NO_OUTPUT


def request_example(
    row: Row,
    turns: tuple[Turn, ...],
    notes: tuple[str, ...],
    model: str,
    output: LoggedOutput | None,
    source: SourceIds | None = None,
) -> Kept:
    """Return the example of one request; its id is a hash of the conversation.

    If `output` is None, the response is the last of the turns.
    """
    if output is not None and output.text is None:
        return Skipped(row.where, output.lack)
    split = split_turns(turns, notes)
    if output is None:
        output = LoggedOutput(split.response, () if turns[-1].role == "user" else notes)
    if output.text is None:
        return Skipped(row.where, output.lack)
    hidden = (STEPS,) if split.response not in (None, output.text) else ()
    name = content_id(split.query, split.history)
    return Example(
        row.where,
        Query(name, split.query, split.history),
        (Response(name, model, output.text),),
        notes=tuple(dict.fromkeys((*split.notes, *output.notes, *hidden))),
        source=source,
    )


def asked_turns(
    given: object, field: str, request: Mapping[str, Any] | None = None
) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """Return the turns of a request's messages or text; JSON without messages is the text.

    `request` may have a system prompt next to `given`, which may repeat it.
    """
    value = from_json(given)
    if isinstance(value, Mapping) and "messages" in value:
        request = value
        given = value = from_json(value["messages"])
    before = _system_turn(request or {})
    if is_messages(value):
        turns, notes = read_turns(value, field)
        return (turns if turns[:1] == before else (*before, *turns)), notes
    text = given if isinstance(given, str) and value else ""
    if not text.strip():
        raise RowError("the request has no messages", f"{field}: {shown_value(value)}")
    return (*before, Turn("user", text)), ()


def _system_turn(request: Mapping[str, Any]) -> tuple[Turn, ...]:
    """Return the system prompt that a request has next to its messages, as a turn."""
    given = request.get("system") or request.get("instructions")
    text = system_text(from_json(given)) if given else ""
    return (Turn("system", text),) if text.strip() else ()


def read_output(body: object) -> LoggedOutput:
    """Return the text of a chat completion, a response of the Responses API, or a message.

    >>> read_output('{"role": "assistant", "content": "Hi"}').text, read_output('{"a": 1}').text
    ('Hi', '{"a": 1}')
    """
    notes: set[str] = set()
    text = _output_text(decoded_output(body), notes)
    return LoggedOutput(text or None, tuple(sorted(notes)))


def decoded_output(body: object) -> object:
    """Return an output that tools wrote as JSON text as an object; other text stays as it is.

    A model may write JSON, too: its fields are the response, whatever their names.
    """
    found = from_json(body)
    return found if found is body or _is_output(found) else body


def _is_output(value: object) -> bool:
    """Return whether a value has the marks of what tools write, not only a field of that name."""
    if not isinstance(value, Mapping):
        return is_messages(value) and read_turns(value, "output")[0][-1].role == "assistant"
    if value.get("role") in REPLYING and any(name in value for name in MESSAGE_FIELDS):
        return True
    listed = [value[name] for name in ("choices", "output") if isinstance(value.get(name), list)]
    named = value.get("object") in OUTPUT_OBJECTS
    return bool(listed) and (named or any(map(_is_part, listed[0])))


def _is_part(value: object) -> bool:
    """Return whether a value is a choice of a chat completion, or a part of a response."""
    if not isinstance(value, Mapping):
        return False
    step = str(value.get("type")).endswith(("reasoning", "_call"))
    return step or value.get("role") in REPLYING or "message" in value or "finish_reason" in value


def _output_text(value: object, notes: set[str]) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and is_messages(value):
        if len(value) > 1:
            notes.add(MESSAGES)
        return message_text(value[-1], notes)
    if not isinstance(value, Mapping):
        return ""
    choices = value.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], Mapping):
        if len(choices) > 1:
            notes.add(CHOICES)
        said = choices[0].get("message") or choices[0].get("text")
        return _output_text(decoded_output(said), notes)
    if isinstance(value.get("output"), list):
        parts = [part for part in value["output"] if isinstance(part, Mapping)]
        said = [part for part in parts if part.get("role")]
        if len(said) > 1:
            notes.add(MESSAGES)
        notes |= {
            REASONING if part.get("type") == "reasoning" else CALLS
            for part in parts
            if not part.get("role")
        }
        return message_text(said[-1], notes) if said else ""
    if any(name in value for name in MESSAGE_FIELDS):
        return message_text(value, notes)
    return ""


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
        first = sample.rows[0].values if sample.rows else {}
        parts = [from_json(first.get(each)) for each in ("response", "body")]
        failed = first.get("response") is None and "response" in first and "error" in first
        if "custom_id" in first and (failed or any(isinstance(each, Mapping) for each in parts)):
            return "OpenAI batch files"
        if sample.has("messages", "choices") or sample.has("object", "choices"):
            return "chat-completion logs"
        messages = from_json(first.get("messages"))
        if sample.has("request", "response") and isinstance(from_json(first["request"]), Mapping):
            return "chat-completion logs"
        if sample.has("messages", "response") and is_messages(messages):
            return "chat-completion logs"
        if is_messages(messages) and read_turns(messages, "messages")[0][-1].role == "assistant":
            known = {"messages", "model", "id", "metadata", "tools", "created", "usage", "weight"}
            return "chat conversations" if set(first) <= known else None
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
            request = from_json(row.values["request"])
            body = decoded_output(row.values.get("response"))
        else:
            request, body = row.values, row.values.get("response") or row.values
        if not isinstance(request, Mapping):
            raise RowError("the request is not an object", shown_value(request))
        given = request.get("messages", request.get("input", request.get("prompt")))
        turns, notes = asked_turns(given, "messages", request)
        served = body.get("model") if isinstance(body, Mapping) else None
        model = str(request.get("model") or served or _noted(row, "model") or name)
        if self._versions:
            version = _noted(row, self._versions.field)
            if not version:
                raise RowError(f"the field {self._versions.field!r} is empty")
            model = f"{model} / {version}" if self._versions.many_models else version
        spoken = body is row.values and not row.values.get("choices")
        return request_example(row, turns, notes, model, None if spoken else read_output(body))

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
        turns, notes = asked_turns(sent.get("messages", sent.get("input")), "body.messages", sent)
        body = response.get("body") if isinstance(response, Mapping) else None
        served = body.get("model") if isinstance(body, Mapping) else None
        model = str(sent.get("model") or served or "unnamed model")
        return request_example(row, turns, notes, model, read_output(body))
