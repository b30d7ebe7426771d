"""Chat messages in the shapes that tools write, split into history, query and response.

Read: OpenAI messages (text, or parts of text and images), `parts` of OpenTelemetry, `type` and
`content` of LangChain and ragas, and `from` and `value` of ShareGPT.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import orjson

from rocketeval.benchmarks.reading import Row, shown_value
from rocketeval.benchmarks.row_files import BadRow
from rocketeval.errors import BenchmarkError
from rocketeval.records import Label, Turn

__all__ = [
    "Conversation",
    "RowError",
    "join_turns",
    "label_in_column",
    "mapped",
    "read_turns",
    "split_turns",
    "system_text",
]

ROLES = {"human": "user", "ai": "assistant", "gpt": "assistant", "model": "assistant",
         "developer": "system", "bot": "assistant"}  # fmt: skip
"""Other names of the roles."""
TYPES = ("human", "ai", "user", "assistant", "system", "tool", "function", "developer")
"""Types of messages that name their role."""
CONTENTS = ("content", "parts", "value", "text")
"""Fields of a message that hold its content."""
TEXT_KINDS = ("object", "text", "input_text", "output_text", "refusal", "tool_result",
              "tool_call_response")  # fmt: skip
"""Types of parts whose content is text; a part without a type is an object."""
THOUGHTS = ("reasoning", "thinking", "redacted_thinking")
"""Types of parts that users of a model do not see."""
CALL = "[tool call]"
"""Text of an earlier turn that only calls tools."""
NO_TEXT = "a part that is not text (such as an image) is shown to the judge as its kind only"
REASONING = "the model's reasoning is not shown to the judge"
CALLS = "tool calls of a message are not shown to the judge"
REFUSAL = "the text of a refusal is used as the message"
STEPS = "tool calls and other steps between the query and the final response are not shown"

T = TypeVar("T")


class RowError(Exception):
    """A mistake in one row; readers turn it into a `BadRow`."""

    def __init__(self, kind: str, detail: str = "", hint: str = "") -> None:
        super().__init__(kind)
        self.kind, self.detail, self.hint = kind, detail, hint


def mapped(row: Row, make: Callable[[Row], T]) -> T | BadRow:
    """Return what `make` makes of a row, or the row's mistake."""
    try:
        return make(row)
    except RowError as error:
        return BadRow(row.where, error.kind, error.detail, error.hint)
    except BenchmarkError as error:
        # "the field 'x' should be text, but is 7." becomes a kind that other rows share.
        what = error.message.removeprefix(f"{row.where}: ").rstrip(".")
        kind, _, found = what.partition(", but ")
        return BadRow(row.where, kind, f"it {found}" if found else "", error.hint)


def label_in_column(
    row: Row, column: str, query_id: str, candidate: str, labeler: str
) -> Label | BadRow:
    """Return the label in a column of numbers, or its mistake."""
    value = mapped(row, lambda row: row.number(column))
    if isinstance(value, BadRow):
        return replace(value, hint=f"{value.hint} If skipped, only the label is left out.".strip())
    return Label(query_id, candidate, value, labeler)


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation split for judging."""

    query: str
    """The last user message."""
    history: tuple[Turn, ...]
    """The messages before it."""
    response: str | None
    """The assistant message after it; None if the query comes last."""
    notes: tuple[str, ...] = ()


def is_messages(value: object) -> bool:
    """Return whether a value looks like a list of chat messages: each has a role, some content.

    >>> is_messages([{"role": "user", "content": "Hi"}]), is_messages([{"type": "person"}])
    (True, False)
    """
    return (
        not isinstance(value, str)
        and isinstance(value, Sequence)
        and bool(value)
        and all(isinstance(each, Mapping) and _role(each) is not None for each in value)
        and any(name in each for each in value for name in CONTENTS)
    )


def from_json(value: object) -> object:
    """Return a cell that holds a JSON list or object as that; anything else unchanged."""
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
    return value


def read_turns(messages: object, field: str) -> tuple[tuple[Turn, ...], tuple[str, ...]]:
    """Return messages as turns, and notes about what is not shown of them."""
    if not is_messages(messages):
        raise RowError(
            f"the field {field!r} is not a list of messages",
            shown_value(messages),
            'Expected: [{"role": "user", "content": "..."}].',
        )
    given: Sequence[Mapping[str, Any]] = messages  # type: ignore[assignment]
    roles = [str(_role(message)) for message in given]
    asked = max((place for place, role in enumerate(roles) if role == "user"), default=0)
    turns = []
    notes: set[str] = set()
    for place, message in enumerate(given):
        own: set[str] = set()
        text = message_text(message, own)
        if not text and CALLS in own and place < asked:
            text = CALL
        turns.append(Turn(roles[place], text))
        notes |= own
    return tuple(turns), tuple(sorted(notes))


def message_text(message: Mapping[str, Any], notes: set[str]) -> str:
    """Return the text of a message; `notes` gets what is not shown of it.

    >>> message_text({"role": "assistant", "content": None, "refusal": "I can't."}, set())
    "I can't."
    """
    text = content_text(_content(message), notes)
    if message.get("tool_calls") or message.get("function_call"):
        notes.add(CALLS)
    if message.get("reasoning_content") or message.get("reasoning"):
        notes.add(REASONING)
    refusal = message.get("refusal")
    if text or not refusal:
        return text
    return content_text({"type": "refusal", "refusal": refusal}, notes)


def system_text(value: object) -> str:
    """Return a system prompt given as text, as parts of a message, or as messages."""
    if is_messages(value):
        return "\n".join(turn.content for turn in read_turns(value, "system")[0])
    return content_text(value, set())


def content_text(content: object, notes: set[str]) -> str:
    """Return the text of a message's content; other parts become their kind in brackets.

    Reasoning and tool calls are left out.

    >>> content_text([{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "Hi"}], set())
    'Hi'
    """
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        kind = str(content.get("type") or "object")
        plain = kind.lower().replace("-", "_")
        hidden = CALLS if plain.endswith(("_call", "tool_use")) else None
        if plain in THOUGHTS or content.get("thought") is True:
            hidden = REASONING
        if hidden:
            notes.add(hidden)
            return ""
        if plain == "refusal":
            notes.add(REFUSAL)
        for name in ("answer", "text", "content", "value", "refusal"):
            # A field `text` is text in every part; others may hold an address or encoded bytes.
            if isinstance(content.get(name), str) and (name == "text" or plain in TEXT_KINDS):
                return str(content[name])
        notes.add(NO_TEXT)
        return f"[{kind}]"
    if isinstance(content, Sequence):
        return "\n".join(filter(None, (content_text(part, notes) for part in content)))
    return str(content)


def _role(message: Mapping[str, Any]) -> str | None:
    named = message.get("role") or message.get("from")
    kind = message.get("type")
    if named is None and isinstance(kind, str) and kind.lower() in TYPES:
        named = kind
    return ROLES.get(named.lower(), named.lower()) if isinstance(named, str) else None


def _content(message: Mapping[str, Any]) -> object:
    for name in CONTENTS:
        if name in message:
            return message[name]
    return None


def split_turns(turns: Sequence[Turn], notes: Sequence[str] = ()) -> Conversation:
    """Return the last user message, what is before it, and the final response after it."""
    asked = [place for place, turn in enumerate(turns) if turn.role == "user"]
    if not asked:
        roles = ", ".join(turn.role for turn in turns)
        raise RowError("the conversation has no user message", f"roles: {roles}")
    last = asked[-1]
    after = [turn for turn in turns[last + 1 :] if turn.role == "assistant" and turn.content]
    steps = len(turns) - last - 1 > len(after[-1:])
    return Conversation(
        turns[last].content,
        tuple(turns[:last]),
        after[-1].content if after else None,
        (*notes, *((STEPS,) if steps else ())),
    )


def join_turns(turns: Sequence[Turn]) -> Iterator[str]:
    """Yield one line per turn, for messages and ids."""
    return (f"{turn.role}: {turn.content}" for turn in turns)
