"""What a table means: labels of several people, cells with lists, late columns, typed values."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.test_reader_meaning import csv_file, refused, sample
from benchmarks.test_readers import counts, opened
from contracts.benchmark_folders import write_jsonl
from rocketeval.benchmarks.messages import CALLS, REASONING, STEPS
from rocketeval.benchmarks.opened import describe, open_data
from rocketeval.benchmarks.table import NO_RESPONSE, NOT_ITEMS
from rocketeval.errors import BenchmarkError
from rocketeval.records import Turn


def lines_of(path: Path, **options: object) -> str:
    """Return what `rocketeval import` prints about a file."""
    return str(describe(open_data(str(path), None, options)))


def test_agreeing_raters_are_kept(tmp_path: Path) -> None:
    """Where labels differ, several people gave them: equal ones count, too, and are named."""
    path = csv_file(tmp_path, "question,output,model,score\nq,a,m,7\nq,a,m,7\nq,a,m,3\n")
    reader = opened(path)
    assert [label.value for label in reader.labels()] == [7.0, 7.0, 3.0]
    assert counts(reader)[:3] == (3, 3, 1)
    assert "1 row: the same response and label again: kept as another" in lines_of(path)


def test_copies_of_rows_are_dropped_and_named(tmp_path: Path) -> None:
    """If no response has two different labels, repeated rows are copies; the reason says so."""
    rows = "q1,a,m,7\nq2,b,m,3\nq1,a,n,5\n"
    path = csv_file(tmp_path, "question,output,model,score\n" + rows + rows)
    reader = opened(path)
    assert [label.value for label in reader.labels()] == [7.0, 3.0, 5.0]
    (reason,) = reader.summary.skipped
    assert "the label is dropped" in reason
    assert "`rater`" in reason
    assert (reader.summary.rows, reader.summary.used, reader.summary.unused) == (6, 3, 3)


def test_a_label_of_a_named_person_counts_once(tmp_path: Path) -> None:
    """The same person's same label is a copy, and called that."""
    head = "question,output,model,score,rater\n"
    reader = opened(csv_file(tmp_path, head + "q,a,m,7,Ann\nq,a,m,7,Ann\nq,a,m,7,Bo\nq,a,m,3,Bo\n"))
    assert [label.labeler for label in reader.labels()] == ["Ann", "Bo", "Bo"]
    (reason,) = reader.summary.skipped
    assert "of the same labeler again: the label is dropped" in reason


def test_metrics_with_different_ranges_are_noted(tmp_path: Path) -> None:
    """Labels of 0 to 1 and of 0 to 100 are not pooled without a word."""
    rows = [{**sample(n, "2", "none"), "metrics": ["em", "bleu"], "em": n, "bleu": 62.0 + n}
            for n in range(2)]  # fmt: skip
    said = lines_of(write_jsonl(tmp_path / "samples_t.jsonl", rows))
    assert "labels with different ranges are pooled ('em' 0 to 1, 'bleu' 62 to 63)" in said
    path = csv_file(tmp_path, "question,output,model,score,rater\nq,a,m,1,Ann\nq,a,m,9,Bo\n")
    assert "different ranges" not in lines_of(path)


def test_scores_of_other_tools_that_are_all_1(tmp_path: Path) -> None:
    """A metric that is always 1 is a share, not the lowest grade of 1 to 10."""
    rows = [{**sample(n, "2", "none"), "metrics": ["em"], "em": 1.0} for n in range(2)]
    path = write_jsonl(tmp_path / "samples_t.jsonl", rows)
    found = open_data(str(path), None, {})
    assert found.scale == (0.0, 1.0)
    assert "1 to 1; scale 0 to 1 assumed unless scorer.scale is set" in str(describe(found))
    assert "may be meant" not in str(describe(found))


def test_versions_of_a_system_prompt_under_one_id(tmp_path: Path) -> None:
    """The message says that the turns before the query differ, and names the column."""
    text = "id,question,system_prompt,output,version\n1,q,Be brief,a,v1\n1,q,Be long,b,v2\n"
    path = csv_file(tmp_path, text)
    told = refused(path)
    assert "the id belongs to the same query after other turns, such as another system" in told
    assert "'system_prompt'" in told
    assert "--column system=" in told
    assert counts(opened(path, columns={"system": ""}))[-2:] == (1, 2)


TABLES = {
    "id,input,actual_output,score,category,checklist": "1,q,a,7,c,Is it?",
    "id,user_input,response,score,category,checklist": "1,q,a,7,c,Is it?",
    "question,answer,contexts,rating": "q,a,c,7",
    "instruction,output,generator,score": "q,a,m,7",
    "uid,prompt,response,model": "1,q,a,m",
    "custom_id,prompt,response,model": "1,q,a,m",
    "session_id,question,output,generator": "1,q,a,m",
}


@pytest.mark.parametrize("header", TABLES)
def test_a_table_is_not_taken_for_another_format(header: str, tmp_path: Path) -> None:
    """One column name of another tool, or a label, does not make a table that tool's file."""
    reader = opened(csv_file(tmp_path, f"{header}\n{TABLES[header]}\n"))
    assert reader.kind == "table"
    assert counts(reader)[:3] == (1, 1, 1)
    assert len(list(reader.labels())) == ("score" in header or "rating" in header)
    assert len(list(reader.checklists())) == ("checklist" in header)


def test_deepeval_files_with_labels_keep_their_passages(tmp_path: Path) -> None:
    """With a label column, the passages are those of the file without it."""
    head = "input,actual_output,context,retrieval_context"
    for text, expected in (
        (f"{head},score\nq,a,golden,One|Two,7\n", ("One", "Two")),
        (f"{head},score\nq,a,One|Two,,7\n", ("One", "Two")),
        ("input,actualOutput,retrievalContext,score\nq,a,One|Two,7\n", ("One", "Two")),
        (f"{head},score\nq,a,,\"['One|1', 'Two']\",7\n", ("One|1", "Two")),
        ("question,output,context,score\nq,a,One | 1,7\n", ("One | 1",)),
    ):
        reader = opened(csv_file(tmp_path, text))
        assert reader.kind == "table"
        assert [response.context for response in reader.responses()] == [expected]
    row = {"input": "q", "actual_output": "a", "score": 7}
    passages = {"context": ["golden"], "retrieval_context": ["One|Two"]}
    reader = opened(write_jsonl(tmp_path / "x.jsonl", [{**row, **passages}]))
    assert [response.context for response in reader.responses()] == [("One|Two",)]
    assert reader.mapping()["not read"] == "'context'"
    empty = opened(
        write_jsonl(tmp_path / "y.jsonl", [{**row, **passages, "retrieval_context": []}])
    )
    assert [response.context for response in empty.responses()] == [("golden",)]


def test_rows_with_attributes_are_not_spans(tmp_path: Path) -> None:
    """An object `attributes` without the names of an LLM call or a span id is any object."""
    row = {"question": "q", "output": "a", "model": "m", "attributes": {"x": 1}}
    assert opened(write_jsonl(tmp_path / "x.jsonl", [row])).kind == "table"
    span = {"attributes": {"llm": {"model_name": "m"}}}
    assert opened(write_jsonl(tmp_path / "y.jsonl", [span])).kind == "traces"
    named = {"attributes": {"http.method": "GET"}, "spanId": "1"}
    assert opened(write_jsonl(tmp_path / "z.jsonl", [named])).kind == "traces"


@pytest.mark.parametrize(
    "header", ["input,actual_output", "user_input,response", "instruction,output,generator"]
)
def test_columns_that_a_format_does_not_read_are_named(header: str, tmp_path: Path) -> None:
    """The line `not read` has the columns of the file."""
    rows = ",".join("qam"[: header.count(",") + 1])
    reader = opened(csv_file(tmp_path, f"{header},topic,id\n{rows},t,1\n"))
    assert reader.kind != "table"
    assert reader.mapping()["not read"] == "'topic', 'id'"


def test_a_failure_of_a_detected_format_names_the_table(tmp_path: Path) -> None:
    """If the columns would do for a table, the hint says how to read one."""
    path = write_jsonl(tmp_path / "x.jsonl", [{"input": 5, "actual_output": "a"}])
    with pytest.raises(BenchmarkError) as error:
        open_data(str(path), None, {})
    assert "taken for DeepEval dataset; if it is a plain table, add --format table" in str(
        error.value
    )
    with pytest.raises(BenchmarkError) as chosen:
        open_data(str(path), "deepeval", {})
    assert "--format table" not in str(chosen.value)


def test_an_input_follows_its_instruction(tmp_path: Path) -> None:
    """Alpaca's two columns are one query where both are filled; else the command asks."""
    head = "instruction,input,output\n"
    path = csv_file(tmp_path, head + "Translate,Hi,Salut\nSay 1,,1\nSay 2,,2\n")
    reader = opened(path)
    assert [query.text for query in reader.queries()] == ["Translate\n\nHi", "Say 1", "Say 2"]
    assert reader.mapping()["query"] == "column 'instruction', then 'input' where it is filled"
    again = opened(path, **reader.settings())
    assert list(again.queries()) == list(reader.queries())
    asked = csv_file(tmp_path, head + "Translate,Hi,Salut\nSay,1,1\n")
    assert "--column query=instruction+input" in refused(asked)
    both = opened(asked, columns={"query": "instruction+input"})
    assert [query.text for query in both.queries()] == ["Translate\n\nHi", "Say\n\n1"]


@pytest.mark.parametrize("text", ["[5, 2,  8]", '["one"]', "[]", '{"a":  1}'])
def test_an_input_that_is_json_stays_as_it_is(text: str, tmp_path: Path) -> None:
    """The judge sees the text that the model saw."""
    rows = [{"instruction": "Sort", "input": given, "output": "a"} for given in (text, "", [])]
    rows[1]["instruction"] = rows[2]["instruction"] = "Say 1"
    reader = opened(write_jsonl(tmp_path / "x.jsonl", rows))
    assert [query.text for query in reader.queries()] == [f"Sort\n\n{text}", "Say 1"]


@pytest.mark.parametrize("given", ["", " ", "+", "question+", "question+context+model"])
def test_a_query_is_one_or_two_columns(given: str, tmp_path: Path) -> None:
    """Another number of columns is refused at once, and none is dropped without a word."""
    path = csv_file(tmp_path, "question,context,model,output\nq,c,m,a\n")
    told = refused(path, columns={"query": given})
    assert f"{given!r} as the query" in told
    assert "at most two columns" in told
    assert "--column query=COLUMN" in told


def test_plus_in_the_name_of_a_column(tmp_path: Path) -> None:
    """A column may have any name, also one that looks like several columns."""
    path = csv_file(tmp_path, "a+b+c,output\nq,a\n")
    (query,) = opened(path, columns={"query": "a+b+c"}).queries()
    assert query.text == "q"


def test_ids_of_instructions_with_different_inputs(tmp_path: Path) -> None:
    """Rows with one instruction and two inputs are two queries, so that their ids count."""
    rows = "1,T,Hi,a,m\n2,T,Ho,b,n\n3,S,,c,m\n4,U,,d,n\n"
    reader = opened(csv_file(tmp_path, "id,instruction,input,output,model\n" + rows))
    assert reader.mapping()["id"] == "column 'id'"


def test_cells_with_lists_as_python_writes_them(tmp_path: Path) -> None:
    """A data frame writes lists into CSV as Python does: items, passages and messages are read."""
    text = "messages,output,model,checklist,context\n"
    said = "\"[{'role': 'user', 'content': 'hi'}]\""
    lists = "\"['Is it a?', 'Is it b?']\",\"['c1', 'c2']\""
    reader = opened(csv_file(tmp_path, f"{text}{said},a,m,{lists}\n"))
    assert [query.text for query in reader.queries()] == ["hi"]
    assert [found.items for found in reader.checklists()] == [("Is it a?", "Is it b?")]
    assert [response.context for response in reader.responses()] == [("c1", "c2")]
    arrays = "\"['Is it a?'\n 'Is it b?']\",\"['c1' 'c2']\""
    found = opened(csv_file(tmp_path, f"{text}{said},a,m,{arrays}\n"))
    assert list(found.checklists()) == list(reader.checklists())
    assert list(found.responses()) == list(reader.responses())


def test_text_that_is_json_is_not_unwrapped(tmp_path: Path) -> None:
    """A prompt that is JSON text stays as it is; messages in a text are named."""
    talk = json.dumps([{"role": "assistant", "content": "hello"}])
    row = {"prompt": '{"city": "Paris"}', "output": talk, "model": "m"}
    reader = opened(write_jsonl(tmp_path / "x.jsonl", [row]))
    assert [query.text for query in reader.queries()] == ['{"city": "Paris"}']
    assert any("text that holds chat messages" in note for note in reader.summary.notes)
    typed = opened(write_jsonl(tmp_path / "y.jsonl", [{**row, "prompt": {"city": "Paris"}}]))
    assert [query.text for query in typed.queries()] == ["Paris"]


def test_late_fields_are_named(tmp_path: Path) -> None:
    """A field that the first rows lack is not lost without a word, and can be named."""
    rows = [{"question": f"q{n}", "output": "a", "model": "m"} for n in range(2000)]
    last = {"question": "z", "output": "a", "model": "m", "score": 3, "extra": 1}
    path = write_jsonl(tmp_path / "x.jsonl", [*rows, last])
    said = lines_of(path)
    assert "not read   'extra' (from x.jsonl:2001 on)" in said
    assert "1 row: the field 'score' is not in the first rows, and is not read" in said
    assert "`columns: {label: score}` (x.jsonl:2001)" in said
    named = opened(path, columns={"label": "score"})
    assert [label.value for label in named.labels()] == [3.0]
    assert not named.summary.notes


def test_columns_of_every_file_count(tmp_path: Path) -> None:
    """In a folder, a column of the second file is read, and equal names are two candidates."""
    for name, text in {
        "u/a.csv": "question,output\nq,a\n",
        "v/a.csv": "question,output,score\nq,b,3\n",
    }.items():
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    reader = opened(tmp_path)
    assert [(label.candidate, label.value) for label in reader.labels()] == [("v/a", 3.0)]
    assert set(reader.summary.candidates) == {"u/a", "v/a"}


def talk(*said: str) -> list[dict[str, str]]:
    """Return messages of a user and an assistant in turn."""
    roles = ("user", "assistant")
    return [{"role": roles[n % 2], "content": text} for n, text in enumerate(said)]


def test_pairs_keep_system_prompt_voter_and_earlier_turns(tmp_path: Path) -> None:
    """Nothing of a pair is lost: the rest is named as not read."""
    text = "system,prompt,chosen,rejected,annotator,foo\nBe brief,q,a,b,Ann,1\n"
    reader = opened(csv_file(tmp_path, text))
    assert [query.history for query in reader.queries()] == [(Turn("system", "Be brief"),)]
    assert [vote.voter for vote in reader.votes()] == ["Ann"]
    assert reader.mapping()["not read"] == "'foo'"
    pair = {"chosen": talk("u1", "a1", "u2", "good"), "rejected": talk("u1", "a1", "u2", "bad")}
    turns = opened(write_jsonl(tmp_path / "x.jsonl", [{"prompt": "u2", **pair}]))
    (query,) = turns.queries()
    assert (query.text, [turn.content for turn in query.history]) == ("u2", ["u1", "a1"])
    other = opened(write_jsonl(tmp_path / "y.jsonl", [{"prompt": "else", **pair}]))
    assert any("the prompt is not among the turns" in note for note in other.summary.notes)


def test_pairs_that_do_not_end_with_a_response(tmp_path: Path) -> None:
    """The user's last words are not taken for a response."""
    row = {"prompt": "u", "chosen": talk("u", "good", "thanks"), "rejected": talk("u", "bad")}
    told = refused(write_jsonl(tmp_path / "x.jsonl", [row]))
    assert "the conversation in 'chosen' does not end with the assistant's turn" in told
    assert "x.jsonl:1: its last turn: user" in told


def test_pairs_without_text_are_skipped_and_hidden_parts_noted(tmp_path: Path) -> None:
    """Nobody votes on a reply that only calls tools; what is not shown of others is counted."""
    asked, answer = talk("u", "Sunny")
    call = {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]}
    thought = [{"type": "thinking", "thinking": "?"}, {"type": "text", "text": "Rainy"}]
    rows = [
        {"prompt": "u", "chosen": [asked, call], "rejected": [asked, answer]},
        *({"prompt": "u", "chosen": blank, "rejected": "Sunny"} for blank in ("  ", "", None)),
        {"prompt": "u", "chosen": [asked, {**answer, "content": thought}], "rejected": "Sunny"},
        {"prompt": [asked, call, {"role": "tool", "content": "3 C"}], "chosen": "Cold",
         "rejected": "Hot"},
    ]  # fmt: skip
    reader = opened(write_jsonl(tmp_path / "x.jsonl", rows))
    assert [response.text for response in reader.responses()] == ["Rainy", "Sunny", "Cold", "Hot"]
    assert reader.summary.skipped[NO_RESPONSE].count == 4
    assert reader.summary.notes.keys() == {REASONING, CALLS, STEPS}


@pytest.mark.parametrize(
    "columns",
    [("output_c++", "output_c#", "output_java"), ("gpt4_output", "output_gpt4", "output_b")],
)
def test_wide_columns_with_names_alike_are_all_candidates(
    columns: tuple[str, ...], tmp_path: Path
) -> None:
    """Names that differ only in marks keep their columns apart."""
    rows = [{"question": f"q{n}", **{name: f"{name} {n}" for name in columns}} for n in range(4)]
    reader = opened(write_jsonl(tmp_path / "x.jsonl", rows))
    alone = columns[2].removeprefix("output_")
    assert {response.candidate for response in reader.responses()} == {*columns[:2], alone}


@pytest.mark.parametrize(
    "names",
    [
        ("output_a", "output_b", "output_c"),
        ("prompt_a", "prompt_b", "prompt_c"),
        ("v1", "v2", "v3"),
        ("A", "B", "C"),
    ],
)
def test_a_wide_column_of_numbers_is_asked_about(names: tuple[str, ...], tmp_path: Path) -> None:
    """Short answers may be numbers: a candidate is not left out; figures are no candidates."""
    direct, *others = names
    rows = [
        {"question": f"{n} + 1?", direct: n + 1, **{name: f"{name}: {n}" for name in others}}
        for n in range(4)
    ]
    told = refused(write_jsonl(tmp_path / "x.jsonl", rows))
    assert f"'{direct}' could be responses, or figures about them" in told
    assert f"--candidates {','.join(names)}" in told
    path = write_jsonl(tmp_path / "y.jsonl", [{**row, "output_tokens": 7} for row in rows])
    wide = open_data(str(path), None, {"candidates": list(names)}).benchmark
    assert len(list(wide.responses())) == 12
    figures = [
        {"question": row["question"], **{name: row[name] for name in others}, "output_tokens": 7,
         "output_quality": 0.5, "output_correct": True, "n": 3}
        for row in rows
    ]  # fmt: skip
    assert len(list(opened(write_jsonl(tmp_path / "z.jsonl", figures)).responses())) == 8


def test_checklist_cells_may_hold_items_as_objects(tmp_path: Path) -> None:
    """Weights are read wherever items are written; a wrong item is named."""
    row = {"question": "q", "output": "a", "checklist": [{"text": "Is it a?", "weight": 2}, "b?"]}
    (found,) = opened(write_jsonl(tmp_path / "x.jsonl", [row])).checklists()
    assert found.items == ("Is it a?", "b?")
    assert found.detail(0).weight == 2.0
    wrong = {"question": "q", "output": "a", "rubric": [{"text": "Is it a?", "weigth": 2}]}
    assert "item 1 of 'rubric'" in refused(write_jsonl(tmp_path / "y.jsonl", [wrong]))
    (blank,) = opened(
        write_jsonl(tmp_path / "z.jsonl", [{**row, "checklist": ["b?", " "]}])
    ).checklists()
    assert blank.items == ("b?",)


def test_wide_columns_of_true_and_false(tmp_path: Path) -> None:
    """They are responses where every candidate has them; next to texts they are asked about."""
    asked = [{"question": f"{n} < 2?"} for n in range(4)]
    names = ("output_greedy", "output_sampled", "output_temperature_0")
    rows = [{**row, **dict.fromkeys(names, n < 2)} for n, row in enumerate(asked)]
    assert len(list(opened(write_jsonl(tmp_path / "x.jsonl", rows)).responses())) == 12
    texts = [{**row, "output_a": f"a: {n}", "output_b": f"b: {n}"} for n, row in enumerate(asked)]
    rows = [{**row, "output_refused": n < 2} for n, row in enumerate(texts)]
    told = refused(write_jsonl(tmp_path / "y.jsonl", rows))
    assert "'output_refused' could be responses, or figures about them" in told
    figures = [{**row, "output_correct": "yes", "output_bertscore": 0.5} for row in texts]
    assert len(list(opened(write_jsonl(tmp_path / "z.jsonl", figures)).responses())) == 8


def test_a_text_next_to_a_conversation_is_not_the_response(tmp_path: Path) -> None:
    """The conversation ends with the response, and its score is the label."""
    rows = [
        {"messages": talk(f"Hi {n}", f"Hello {n}"), "rationale": f"It is kind: {n}", "score": n}
        for n in range(3)
    ]
    reader = opened(write_jsonl(tmp_path / "x.jsonl", rows))
    assert {response.text for response in reader.responses()} == {"Hello 0", "Hello 1", "Hello 2"}
    assert len(list(reader.labels())) == 3


def test_items_as_objects_in_parquet(tmp_path: Path) -> None:
    """Arrow writes all fields for every item, those that are not given as null."""
    items = [{"text": "Is it a?", "weight": 2}, {"text": "names a", "na": True}, None]
    rows = [{"question": "q", "output": "a", "checklist": items}]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.Table.from_pylist(rows), path)
    (found,) = opened(path).checklists()
    assert found.items == ("Is it a?", "Does the response meet this criterion? names a")
    assert (found.detail(0).weight, found.detail(0).na, found.detail(1).na) == (2.0, False, True)


def test_pairs_need_their_columns(tmp_path: Path) -> None:
    """Another table that is named as pairs is refused with the columns that are needed."""
    path = write_jsonl(tmp_path / "x.jsonl", [{"prompt": "a", "output": "b"}])
    with pytest.raises(BenchmarkError, match="lacks columns of preference pairs"):
        open_data(str(path), "preference_pairs", {})


@pytest.mark.parametrize(
    "cell",
    [[{"sku": 1}], [{}, "Is it a?"], [{"criterion": "a"}], [{"text": "Milk", "price": 4}]],
)
def test_objects_that_are_no_items_are_noted(cell: list[object], tmp_path: Path) -> None:
    """A column such as items may hold something else; the responses are read all the same."""
    row = {"question": "q", "output": "a", "items": cell}
    reader = opened(write_jsonl(tmp_path / "x.jsonl", [row]))
    assert len(list(reader.responses())) == 1
    assert not list(reader.checklists())
    assert NOT_ITEMS in reader.summary.notes


def test_pairs_without_model_names_are_noted(tmp_path: Path) -> None:
    """Candidates that stand for missing or equal model names are not made up without a word."""
    text = "prompt,response_a,response_b,model_a,model_b,winner\n"
    reader = opened(csv_file(tmp_path, text + "q,a,b,m,n,a\nr,a,b,m,,a\ns,a,b,m,m,b\n"))
    assert [note.partition(":")[0] for note in reader.summary.notes] == [
        "a model has no name",
        "both models have the same name",
    ]


def test_typed_values_of_parquet(tmp_path: Path) -> None:
    """Bytes are text, dates have no quotes, decimals are labels, and 0 names a candidate."""
    columns = {
        "question": ["qé".encode(), b"r"],
        "version": [0, 1],
        "output": [date(2024, 5, 3)] * 2,
        "score": [Decimal("7.5")] * 2,
        "image": [b"\xff\xfe"] * 2,
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    reader = opened(tmp_path / "x.parquet")
    assert [query.text for query in reader.queries()] == ["qé", "r"]
    assert [(each.candidate, each.text) for each in reader.responses()] == [
        ("0", "2024-05-03"),
        ("1", "2024-05-03"),
    ]
    assert [label.value for label in reader.labels()] == [7.5, 7.5]
    pq.write_table(pa.table({**columns, "output": [b"\xff"] * 2}), tmp_path / "y.parquet")
    assert "bytes that are not UTF-8" in refused(tmp_path / "y.parquet")


def test_infinite_numbers_of_parquet(tmp_path: Path) -> None:
    """An infinite response is its text, NaN is no response, and an infinite label is named."""
    columns = {"question": ["q", "r", "s"], "output": [1.5, float("-inf"), float("nan")]}
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    reader = opened(tmp_path / "x.parquet")
    assert [response.text for response in reader.responses()] == ["1.5", "-inf"]
    labeled = {"question": ["q"], "output": ["a"], "score": [float("inf")]}
    pq.write_table(pa.table(labeled), tmp_path / "y.parquet")
    assert "it is inf" in refused(tmp_path / "y.parquet")


def test_bytes_in_lists_of_parquet(tmp_path: Path) -> None:
    """Bytes inside lists and objects are text, too; only those that are not UTF-8 are refused."""
    columns = {
        "messages": [[{"role": b"user", "content": "qé".encode()}]],
        "output": ["a"],
        "context": [["cé".encode(), b"d"]],
        "checklist": [[b"Is it a?"]],
        "reference": [{"price": [Decimal("1.5")], "name": b"n"}],
    }
    pq.write_table(pa.table(columns), tmp_path / "x.parquet")
    reader = opened(tmp_path / "x.parquet")
    (query,) = reader.queries()
    assert (query.text, query.reference) == ("qé", '{"price":[1.5],"name":"n"}')
    assert [response.context for response in reader.responses()] == [("cé", "d")]
    assert [found.items for found in reader.checklists()] == [("Is it a?",)]
    pq.write_table(pa.table({**columns, "context": [[b"\xff"]]}), tmp_path / "y.parquet")
    assert "bytes that are not UTF-8" in refused(tmp_path / "y.parquet")
    plain = {"input": ["q"], "actual_output": [b"a"], "retrieval_context": [[b"c"]]}
    pq.write_table(pa.table(plain), tmp_path / "z.parquet")
    (response,) = opened(tmp_path / "z.parquet").responses()
    assert (response.text, response.context) == ("a", ("c",))


def test_values_of_other_types(tmp_path: Path) -> None:
    """No reference is no text, parts of a system prompt are shown, and objects are no names."""
    row = {"question": "q", "output": "a", "model": "m", "id": 1}
    parts = [{"type": "text", "text": "Be brief"}]
    reader = opened(write_jsonl(tmp_path / "x.jsonl", [{**row, "reference": [], "system": parts}]))
    (query,) = reader.queries()
    assert (query.reference, query.history) == (None, (Turn("system", "Be brief"),))
    for part, field in (("candidate", "model"), ("id", "id")):
        told = refused(write_jsonl(tmp_path / "y.jsonl", [row, {**row, field: {"a": 1}}]))
        assert f"the {part} is not a text or a number" in told
        assert f"""y.jsonl:2: column '{field}': {{"a":1}}""" in told
