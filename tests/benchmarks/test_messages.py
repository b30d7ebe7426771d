"""What the judge is shown of messages in logs and traces, and what is noted about the rest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.test_readers import opened
from contracts.benchmark_folders import write_jsonl
from rocketeval.benchmarks.messages import (
    CALL,
    CALLS,
    NO_TEXT,
    REASONING,
    REFUSAL,
    STEPS,
    content_text,
)
from rocketeval.benchmarks.request_logs import CHOICES, MESSAGES, NO_OUTPUT, NO_TEXT_OUTPUT
from rocketeval.benchmarks.traces import WRITTEN_JSON
from rocketeval.errors import BenchmarkError
from rocketeval.records import Turn
from support.data_files import write_json

ASKED = {"role": "user", "content": "Hi?"}
CALLED = [{"id": "1", "type": "function", "function": {"name": "book", "arguments": "{}"}}]
FINE = {"role": "assistant", "content": "Fine."}


def log(*choices: dict[str, Any], messages: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return a row of a chat-completion log."""
    written = [{"message": {"role": "assistant", **choice}} for choice in choices]
    return {"model": "m", "messages": [*messages, ASKED], "choices": written}


def gen_ai(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return a span of the GenAI conventions."""
    return {
        "attributes": {
            "gen_ai.request.model": "m",
            "gen_ai.input.messages": json.dumps([ASKED]),
            "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": parts}]),
        }
    }


def responses_api(*output: dict[str, Any]) -> dict[str, Any]:
    """Return a request to the Responses API with its reply."""
    return {"request": {"model": "m", "messages": [ASKED]}, "response": {"output": output}}


def anthropic(*parts: dict[str, Any]) -> dict[str, Any]:
    """Return a request to Anthropic with its reply."""
    return {"request": {"model": "m", "messages": [ASKED]}, "response": {"content": parts}}


def phoenix(**attributes: object) -> dict[str, Any]:
    """Return a span of OpenInference with numbered attributes."""
    found = {
        "openinference.span.kind": "LLM",
        "llm.model_name": "m",
        "llm.input_messages.0.message.role": "user",
        "llm.input_messages.0.message.content": "Hi?",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.content": "Fine.",
    }
    return {"attributes": {**found, **attributes}}


def prompts(**attributes: object) -> dict[str, Any]:
    """Return a span with numbered prompts and completions."""
    found = {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Hi?"}
    written = {"gen_ai.request.model": "m", "gen_ai.completion.0.content": "Fine."}
    return {"attributes": {**found, **written, **attributes}}


TEXT = {"type": "text", "content": "Fine."}
SAID = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Fine."}],
}


@pytest.mark.parametrize(
    ("row", "notes"),
    [
        (gen_ai({"type": "reasoning", "content": "The user is dumb"}, TEXT), [REASONING]),
        (gen_ai(TEXT, {"type": "tool_call", "name": "f", "arguments": {}}), [CALLS]),
        (anthropic({"type": "thinking", "thinking": "?"}, {"type": "text", "text": "Fine."}),
         [REASONING]),
        (anthropic({"type": "text", "text": "Fine."}, {"type": "tool_use", "name": "f"}), [CALLS]),
        (responses_api({"type": "reasoning", "summary": []}, SAID), [REASONING]),
        (responses_api({"type": "web_search_call"}, SAID), [CALLS]),
        (responses_api(SAID, SAID), [MESSAGES]),
        (log(FINE, {"content": "Bad."}), [CHOICES]),
        (log({**FINE, "tool_calls": CALLED}), [CALLS]),
        (log({**FINE, "reasoning_content": "?"}), [REASONING]),
        (log({"content": None, "refusal": "Fine."}), [REFUSAL]),
        (log({"content": [{"type": "refusal", "refusal": "Fine."}]}), [REFUSAL]),
        (log(FINE, messages=(ASKED, FINE)), []),
        ({"messages": [ASKED, {**FINE, "tool_calls": CALLED}]}, [CALLS]),
        ({**log(FINE), "messages": [ASKED, {"role": "assistant", "content": None,
                                            "tool_calls": CALLED}]}, [CALLS, STEPS]),
        ({**log(FINE), "messages": [ASKED, {"role": "assistant", "content": "Wait."}]}, [STEPS]),
        (phoenix(**{"llm.output_messages.0.message.tool_calls.0.tool_call.id": "1"}), [CALLS]),
        (phoenix(**{"llm.output_messages.1.message.role": "assistant",
                    "llm.output_messages.1.message.content": "Fine."}), [MESSAGES]),
        (prompts(**{"gen_ai.completion.1.content": "Bad."}), [CHOICES]),
        (prompts(**{"gen_ai.completion.0.tool_calls.0.name": "f"}), [CALLS]),
    ],
)  # fmt: skip
def test_only_what_the_user_saw_is_judged(
    row: dict[str, Any], notes: list[str], tmp_path: Path
) -> None:
    """Reasoning, tool calls and further choices are not part of the response, and are noted."""
    reader = opened(write_jsonl(tmp_path / "log.jsonl", [row]))
    assert [response.text for response in reader.responses()] == ["Fine."]
    assert sorted(reader.summary.notes) == sorted(notes)


@pytest.mark.parametrize(
    "row",
    [
        log({"content": None, "tool_calls": CALLED}),
        {"messages": [ASKED, {"role": "assistant", "content": None, "tool_calls": CALLED}]},
        gen_ai({"type": "tool_call", "name": "f"}),
        responses_api({"type": "function_call", "name": "f"}),
        anthropic({"type": "thinking", "thinking": "?"}),
    ],
)
def test_an_output_without_text_is_skipped(row: dict[str, Any], tmp_path: Path) -> None:
    """A reply that only calls tools is skipped, with that reason."""
    other = {**row, "messages": [{"role": "user", "content": "Other?"}, FINE]}
    if "attributes" in row:
        other = gen_ai(TEXT)
    if "request" in row:
        other = {**row, "response": "Fine."}
    if "choices" in row:
        other = log(FINE)
    reader = opened(write_jsonl(tmp_path / "log.jsonl", [other, row]))
    assert len(list(reader.responses())) == 1
    assert list(reader.summary.skipped) == [NO_TEXT_OUTPUT]


WRITTEN = (
    '{"city": "Paris"}',
    '{"content": "inner", "x": 2}',
    '{"model": "T", "choices": ["a", "b"]}',
    '{"output": [{"type": "cat"}]}',
    '["Paris"]',
    '[{"from": "Oslo", "value": 3}]',
    "[]",
)
ENVELOPES = (
    {"choices": [{"message": FINE}]},
    {"object": "text_completion", "choices": [{"text": "Fine."}]},
    {"output": [SAID]},
    [FINE],
    FINE,
)


def langfuse(output: object) -> dict[str, Any]:
    """Return an observation of Langfuse."""
    about = {"traceId": "t", "id": "o", "type": "GENERATION", "model": "m"}
    return {**about, "input": {"messages": [ASKED]}, "output": output}


def outputs(text: str) -> list[dict[str, Any]]:
    """Return rows of several logs in which a text is the output."""
    return [
        {"request": {"model": "m", "messages": [ASKED]}, "response": text},
        {"request": {"messages": [ASKED]}, "response": text},
        {"model": "m", "messages": [ASKED], "response": text},
        {"model": "m", "messages": [ASKED], "choices": [{"text": text}]},
        langfuse(text),
        phoenix(**{"llm.output_messages.0.message.content": text}),
    ]


@pytest.mark.parametrize("text", WRITTEN)
def test_a_response_that_is_json_stays_as_it_is(text: str, tmp_path: Path) -> None:
    """What a model wrote is judged unchanged, also if it is JSON."""
    for row in outputs(text):
        reader = opened(write_jsonl(tmp_path / "log.jsonl", [row]))
        assert [response.text for response in reader.responses()] == [text]
        assert set(reader.summary.candidates) <= {"m", "log"}
        assert not reader.summary.notes
    value = phoenix(**{"output.value": text, "output.mime_type": "text/plain"})
    for name in ("role", "content"):
        del value["attributes"][f"llm.output_messages.0.message.{name}"]
    (response,) = opened(write_jsonl(tmp_path / "log.jsonl", [value])).responses()
    assert response.text == text


@pytest.mark.parametrize("text", ['{"city": "Oslo"}', '["a", "b"]'])
def test_a_prompt_that_is_json_stays_as_it_is(text: str, tmp_path: Path) -> None:
    """What was asked is the query, also if it is JSON; an object of a library is no prompt."""
    asked = phoenix(**{"input.value": text, "input.mime_type": "text/plain"})
    for name in ("role", "content"):
        del asked["attributes"][f"llm.input_messages.0.message.{name}"]
    rows = [
        {"prompt": text, "choices": [{"text": "Fine."}], "object": "text_completion"},
        {**langfuse("Fine."), "input": text},
        asked,
    ]
    for row in rows:
        reader = opened(write_jsonl(tmp_path / "log.jsonl", [row]))
        assert [query.text for query in reader.queries()] == [text]
    asked["attributes"]["input.mime_type"] = "application/json"
    for row in (asked, {**langfuse("Fine."), "input": '{"messages": []}'}):
        with pytest.raises(BenchmarkError, match="the request has no messages"):
            list(opened(write_jsonl(tmp_path / "log.jsonl", [row])).queries())


@pytest.mark.parametrize("output", ENVELOPES)
def test_an_output_in_json_text_is_read(output: object, tmp_path: Path) -> None:
    """A completion or a message that a tool wrote as JSON text is not judged as JSON."""
    for row in outputs(json.dumps(output))[:5]:
        reader = opened(write_jsonl(tmp_path / "log.jsonl", [row]))
        assert [response.text for response in reader.responses()] == ["Fine."]


def test_outputs_in_json_text_without_a_response(tmp_path: Path) -> None:
    """Neither an empty list of messages nor a library's own JSON is what the model wrote."""
    empty = gen_ai(TEXT)
    empty["attributes"]["gen_ai.output.messages"] = "[]"
    own = {"output.value": '{"generations": []}', "output.mime_type": "application/json"}
    called = {"llm.output_messages.0.message.tool_calls.0.tool_call.id": "1"}
    called |= {"llm.output_messages.0.message.content": "", "output.value": '{"city": "Oslo"}'}
    bare = phoenix(**own)
    for name in ("role", "content"):
        del bare["attributes"][f"llm.output_messages.0.message.{name}"]
    for row in (empty, bare, phoenix(**called)):
        reader = opened(write_jsonl(tmp_path / "log.jsonl", [phoenix(), row]))
        assert len(list(reader.responses())) == 1
        assert reader.summary.unused == 1


def test_langfuse_shows_written_json_as_an_object(tmp_path: Path) -> None:
    """An object without the fields of an output is judged as JSON, which is noted."""
    rows = [langfuse({"city": "Paris"}), langfuse({"role": "assistant", "content": None})]
    reader = opened(write_jsonl(tmp_path / "log.jsonl", rows))
    assert [response.text for response in reader.responses()] == ['{"city":"Paris"}']
    assert list(reader.summary.notes) == [WRITTEN_JSON]
    assert list(reader.summary.skipped) == [NO_OUTPUT]


@pytest.mark.parametrize("kind", ["log", "phoenix"])
def test_an_earlier_turn_of_tool_calls_is_not_empty(kind: str, tmp_path: Path) -> None:
    """The history shows that the assistant called a tool."""
    row = log(FINE, messages=(ASKED, {"role": "assistant", "content": None, "tool_calls": CALLED}))
    if kind == "phoenix":
        base = "llm.input_messages"
        row = phoenix(**{
            f"{base}.1.message.role": "assistant",
            f"{base}.1.message.tool_calls.0.tool_call.function.name": "f",
            f"{base}.2.message.role": "user",
            f"{base}.2.message.contents.0.message_content.type": "text",
            f"{base}.2.message.contents.0.message_content.text": "Hi?",
        })  # fmt: skip
    reader = opened(write_jsonl(tmp_path / "log.jsonl", [row]))
    (query,) = reader.queries()
    assert (query.history, query.text) == ((Turn("user", "Hi?"), Turn("assistant", CALL)), "Hi?")
    assert list(reader.summary.notes) == [CALLS]


def test_parts_that_are_not_text() -> None:
    """Encoded bytes and addresses are not text; results of tools and unknown texts are."""
    notes: set[str] = set()
    assert content_text({"type": "blob", "content": "aGk="}, notes) == "[blob]"
    assert notes == {NO_TEXT}
    for part in (
        {"type": "tool_result", "content": "7"},
        {"type": "md", "text": "7"},
        {"text": "7"},
    ):
        assert content_text(part, set()) == "7"


def test_messages_in_the_cell_of_a_table(tmp_path: Path) -> None:
    """A cell with only tool calls holds no response; notes on others are kept."""
    output = {"role": "assistant", "content": None, "tool_calls": CALLED}
    rows = [
        {"question": "One?", "output": [output], "model": "m"},
        {"question": "Two?", "output": [{**output, "content": "Fine."}], "model": "m"},
    ]
    reader = opened(write_jsonl(tmp_path / "table.jsonl", rows))
    assert [response.text for response in reader.responses()] == ["Fine."]
    assert list(reader.summary.skipped) == ["no response"]
    assert list(reader.summary.notes) == [CALLS]


def test_completions_of_inspect(tmp_path: Path) -> None:
    """Reasoning, further choices and steps of a sample are noted; only tool calls are no output."""
    parts = [{"type": "reasoning", "reasoning": "?"}, {"type": "text", "text": "Fine."}]
    thought = {"message": {"role": "assistant", "content": parts}}
    steps = [ASKED, {"role": "assistant", "content": "", "tool_calls": CALLED},
             {"role": "tool", "content": "7"}, FINE]  # fmt: skip
    sample = {"epoch": 1, "input": "Hi?", "target": "", "messages": steps}
    samples = [
        {**sample, "id": 1, "output": {"completion": "Fine.", "choices": [thought, thought]}},
        {**sample, "id": 2, "output": {"choices": [thought]}, "messages": []},
        {**sample, "id": 3, "output": {"completion": "", "choices": []}, "messages": steps[:2]},
    ]
    about = {"status": "success", "eval": {"model": "m", "task": "t"}, "samples": samples}
    reader = opened(write_json(tmp_path / "log.json", about))
    assert [response.text for response in reader.responses()] == ["Fine.", "Fine."]
    assert {note: rows.count for note, rows in reader.summary.notes.items()} == {
        REASONING: 2,
        CHOICES: 1,
        STEPS: 1,
    }
    assert list(reader.summary.skipped) == [NO_TEXT_OUTPUT]
