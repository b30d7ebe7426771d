"""What readers must not misread: the same words in another place, another shape or another file."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from benchmarks.test_readers import counts, opened
from contracts.benchmark_folders import write_jsonl
from rocketeval.benchmarks.base import check_benchmark
from rocketeval.benchmarks.data import Example, Kept
from rocketeval.benchmarks.inspect_logs import InspectLogs, InspectOptions, read_member
from rocketeval.benchmarks.opened import describe, open_data
from rocketeval.errors import BenchmarkError
from rocketeval.records import Query, Response
from support.data_files import PEERS, deepeval_run, log_likelihoods, write_json


def csv_file(folder: Path, text: str) -> Path:
    """Write a CSV file."""
    path = folder / "x.csv"
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path, **options: object) -> str:
    """Return the message and the hint about a file that cannot be read."""
    with pytest.raises(BenchmarkError) as error:
        _ = opened(path, **options).summary
    return str(error.value)


def sample(number: int, text: str, name: str) -> dict[str, Any]:
    """Return a generated sample of lm-eval under one filter."""
    return {
        "doc_id": number,
        "doc": {},
        "target": "2",
        "arguments": {"gen_args_0": {"arg_0": f"Q{number}", "arg_1": {"until": []}}},
        "resps": [["It is 2."]],
        "filtered_resps": [text],
        "filter": name,
        "metrics": [],
    }


@pytest.mark.parametrize("new", [True, False])
def test_log_likelihoods_are_no_responses(new: bool, tmp_path: Path) -> None:
    """Numbers that lm-eval writes as text are not taken for what a model wrote."""
    rows = [sample(0, "It is 2.", "none"), {**sample(1, "x", "none"), **log_likelihoods(new)}]
    reader = opened(write_jsonl(tmp_path / "samples_t.jsonl", rows))
    assert [response.text for response in reader.responses()] == ["It is 2."]
    assert "a log-likelihood task: the model wrote no text" in reader.summary.skipped


def test_the_whole_response_is_preferred_to_a_filtered_one(tmp_path: Path) -> None:
    """Of several filters, `none` is read, wherever it is; without it, the first."""
    rows = [sample(n, text, name) for name, text in (("strict", "2"), ("none", "It is 2."))
            for n in range(2)]  # fmt: skip
    reader = opened(write_jsonl(tmp_path / "samples_t.jsonl", rows))
    assert {response.text for response in reader.responses()} == {"It is 2."}
    assert "filter: none" in reader.mapping()["response"]
    assert reader.summary.unused == 2
    first = opened(write_jsonl(tmp_path / "samples_u.jsonl", rows[:2]))
    assert {response.text for response in first.responses()} == {"2"}


def test_passages_of_csv_files() -> None:
    """A list as Python writes it is several passages."""
    for response in opened(PEERS / "ragas" / "single.csv").responses():
        assert response.context == (
            "France is a country in Europe. Its capital is Paris.",
            "Berlin is in Germany.",
        )


def test_numbers_about_a_response_are_no_candidates(tmp_path: Path) -> None:
    """Columns such as response_time do not make a table with a response column a wide one."""
    text = "question,model,response,response_time,completion_tokens\n"
    reader = opened(csv_file(tmp_path, text + "One?,a,Un,1.5,7\nOne?,b,Eins,2.5,8\n"))
    assert set(reader.summary.candidates) == {"a", "b"}
    bare = "question,response_time,output_tokens,output_v1,output_v2\n"
    wide = opened(csv_file(tmp_path, bare + "One?,1.5,7,Un,Eins\nTwo?,2.5,8,Deux,Zwei\n"))
    assert set(wide.summary.candidates) == {"v1", "v2"}
    both = "question,answer,output_v1,output_v2\n"
    told = refused(csv_file(tmp_path, both + "One?,1,Un,Eins\nTwo?,2,Deux,Zwei\n"))
    assert "--candidates output_v1,output_v2 --column reference=answer" in told


def test_text_columns_of_any_name_are_asked_about(tmp_path: Path) -> None:
    """A comment is not a candidate: both readings are printed as options."""
    text = "question,bot said,reviewer comment\n1?,It is one.,good\n2?,Two.,short but right\n"
    told = refused(csv_file(tmp_path, text))
    assert "--column 'response=bot said'" in told
    assert "--candidates 'bot said,reviewer comment'" in told


def test_an_open_quote_is_named(tmp_path: Path) -> None:
    """A quote that is never closed swallows no rows; its line is named."""
    told = refused(csv_file(tmp_path, 'question,output\nq1,fine\nq2,"open\nq3,fine\n'))
    assert "x.csv:3" in told
    assert "never closed" in told
    inner = refused(csv_file(tmp_path, 'question,output\nq1,"open\nq2,"fine"\nq3,fine\n'))
    assert "x.csv:2" in inner
    assert "after a closing quote" in inner
    header = refused(csv_file(tmp_path, 'question,"output\nq1,fine\n'))
    assert "x.csv:1" in header
    late = 'question,output\n"q1\nsecond line","a ""b""\nc\n'
    assert "x.csv:3" in refused(csv_file(tmp_path, late))


def test_rows_of_several_lines_are_named_by_their_first(tmp_path: Path) -> None:
    """A message about a row with line breaks names the line where it starts."""
    told = refused(csv_file(tmp_path, 'question,output\nq1,fine\n"q\n2","a\nb",7\n'))
    assert "x.csv:3" in told


@pytest.mark.parametrize(
    "response",
    [
        '["Paris"]',
        '[{"type": "person", "name": "Ann"}]',
        '[{"from": "Oslo", "value": 3}]',
        '{"a": 1}',
    ],
)
def test_json_responses_stay_as_they_are(response: str, tmp_path: Path) -> None:
    """What a model wrote is judged unchanged, also if it is JSON; messages become their text."""
    rows = [{"question": "[1,  2]?", "model": "a", "output": response}]
    reader = opened(write_jsonl(tmp_path / "x.jsonl", rows))
    assert [each.text for each in reader.responses()] == [response]
    assert [each.text for each in reader.queries()] == ["[1,  2]?"]
    talk = json.dumps([{"role": "assistant", "content": "Paris"}])
    said = opened(write_jsonl(tmp_path / "y.jsonl", [{**rows[0], "output": talk}]))
    assert [each.text for each in said.responses()] == ["Paris"]


def test_ids_that_number_rows_are_found_late(tmp_path: Path) -> None:
    """A long table sorted by candidate shares its queries, although the ids never repeat."""
    lines = [
        f"{number},What is {number % 2100}?,{'ab'[number // 2100]},x{number}"
        for number in range(4200)
    ]
    reader = opened(csv_file(tmp_path, "\n".join(["id,question,model,output", *lines])))
    assert counts(reader) == (4200, 4200, 4200, 2100, 2)
    assert "numbers rows" in reader.mapping()["id"]
    shared = [line.replace(f"{n},", f"{n % 2100},", 1) for n, line in enumerate(lines)]
    own = opened(csv_file(tmp_path, "\n".join(["id,question,model,output", *shared])))
    assert own.mapping()["id"] == "column 'id'"


def test_a_second_id_of_a_query_is_named(tmp_path: Path) -> None:
    """Ids that repeat elsewhere do not number rows: the row with the odd id is named."""
    lines = [f"{number},What is {number}?,{name},x" for number in range(8) for name in "ab"]
    lines[1] = lines[1].replace("0,What", "99,What")
    reader = opened(csv_file(tmp_path, "\n".join(["ID,question,model,output", *lines])))
    assert counts(reader)[-2:] == (8, 2)
    assert "numbers rows" not in reader.mapping()["id"]
    assert "two ids" in reader.mapping()["id"]
    assert ".csv:3" in reader.mapping()["id"]


def test_a_label_may_be_missing(tmp_path: Path) -> None:
    """One N/A does not turn the labels off: it is counted, and the others are used."""
    text = "question,model,output,score\n1?,a,one,5\n1?,b,two,N/A\n2?,a,two,4\n2?,b,one,1\n"
    reader = opened(csv_file(tmp_path, text))
    assert [label.value for label in reader.labels()] == [5.0, 4.0, 1.0]
    assert any("1 row: column 'score' holds no number" in line for line in reader.summary.lines())
    words = csv_file(tmp_path, "question,model,output,verdict\n1?,a,one,pass\n1?,b,two,fail\n")
    told = refused(words, columns={"label": "verdict"})
    assert "column 'verdict' cannot be the label" in told


@pytest.mark.parametrize("value", ["True", "85%", '"3,5"'])
def test_a_label_that_is_no_plain_number(value: str, tmp_path: Path) -> None:
    """The reason names the value and its row; skipping drops the label and keeps the response."""
    head = "question,model,output,score\n1?,a,one,"
    shown = value.strip('"')
    column = opened(csv_file(tmp_path, f"{head}{value}\n2?,a,two,{value}\n"))
    assert column.summary.responses == 2
    (line,) = column.summary.lines()
    assert all(part in line for part in ("2 rows", "'score'", "x.csv:2", shown, "3.5"))
    rows = csv_file(tmp_path, f"{head}{value}\n2?,a,two,4\n3?,a,two,5\n")
    told = refused(rows)
    assert all(part in told for part in ("'score'", "x.csv:2", shown, "3.5"))
    skipping = opened(rows, bad_rows="skip")
    assert skipping.summary.responses == 3
    assert [label.value for label in skipping.labels()] == [4.0, 5.0]
    assert any("1 row" in line and shown in line for line in skipping.summary.lines())


def test_notes_on_bad_labels_name_the_row_and_say_what_is_used(tmp_path: Path) -> None:
    """The number 1 is not taken for true, and a repeated row is not called used."""
    row = '{{"question": "{}?", "model": "a", "output": "one", "score": {}}}\n'
    mixed = tmp_path / "x.jsonl"
    mixed.write_text("".join(row.format(at, "1" if at == 1 else "true") for at in range(1, 5)))
    assert any("x.jsonl:2 holds true" in line for line in opened(mixed).summary.lines())
    text = "question,model,output,score\n1?,a,one,4\n2?,a,one,5\n1?,a,one,bad\n"
    lines = opened(csv_file(tmp_path, text), bad_rows="skip").summary.lines()
    assert any("the label is left out: " in line for line in lines)


def test_two_people_label_one_response(tmp_path: Path) -> None:
    """All labels are kept, with their place, and by name if a column names the people."""
    text = "question,model,output,score\n1?,a,one,5\n1?,a,one,3\n1?,a,one,3\n"
    reader = opened(csv_file(tmp_path, text))
    found = [(label.value, reader.where) for label in reader.labels()]
    assert found == [(5.0, "x.csv:2"), (3.0, "x.csv:3"), (3.0, "x.csv:4")]
    assert any("1 row: the same response and label again: kept" in line and "`rater`" in line
               for line in reader.summary.lines())  # fmt: skip
    text = "question,model,output,score,rater\n1?,a,one,3,Ann\n1?,a,one,3,Bo\n"
    named = opened(csv_file(tmp_path, text))
    assert [label.labeler for label in named.labels()] == ["Ann", "Bo"]


def test_a_bad_row_hides_no_later_one(tmp_path: Path) -> None:
    """A response is read from a good row, although a bad row before it has the same one."""
    text = "question,model_b,model_a\nq1,,A1\nq1,B1,A2\nq1,B1,\n"
    options = {"candidates": ["model_b", "model_a"], "bad_rows": "skip"}
    reader = opened(csv_file(tmp_path, text), **options)
    found = [(each.candidate, each.text) for each in reader.responses()]
    assert found == [("model_a", "A1"), ("model_b", "B1")]
    assert {reason: str(rows) for reason, rows in reader.summary.skipped.items()} == {
        "a candidate has a second, different response to the same query": "x.csv:3"
    }


class Repeating(InspectLogs):
    """A reader with one row, in which a candidate has two responses."""

    texts: tuple[str, ...] = ()

    def examples(self) -> Iterator[Kept]:
        """Yield the row."""
        responses = tuple(Response("q", "a", text) for text in self.texts)
        yield Example("row 1", Query("q", "Hi"), (*responses, Response("q", "b", "x")))


def test_one_candidate_twice_in_a_row(tmp_path: Path) -> None:
    """The same response twice is read once; two different ones make the row bad."""
    reader = Repeating(tmp_path, InspectOptions())
    reader.texts = ("one", "one")
    assert [each.text for each in reader.responses()] == ["one", "x"]
    reader = Repeating(tmp_path, InspectOptions())
    reader.texts = ("one", "two")
    with pytest.raises(BenchmarkError, match="row 1: 'a' on 'q'"):
        list(reader.responses())


@pytest.mark.parametrize("column", ["reference", "category"])
def test_another_reference_or_category_is_counted(tmp_path: Path, column: str) -> None:
    """The first one of a query is used, a later one is counted, an empty one is filled in."""
    text = f"id,question,model,output,{column}\nq,1?,a,one,\nq,1?,b,two,X\nq,1?,c,three,Y\n"
    reader = opened(csv_file(tmp_path, text + "q,1?,d,four,\nq,1?,e,five,X\n"))
    (query,) = reader.queries()
    assert getattr(query, column) == "X"
    assert [
        str(rows) for note, rows in reader.summary.notes.items() if f"another {column}" in note
    ] == ["x.csv:4"]
    assert len(list(reader.responses())) == 5


NO_NUMBERS = ("NaN", "Infinity", "-Infinity")


@pytest.mark.parametrize("literal", NO_NUMBERS)
def test_inspect_log_with_a_score_that_is_no_number(tmp_path: Path, literal: str) -> None:
    """A JSON log with NaN is read; the score is missing, and all other scores are used."""
    before = opened(PEERS / "inspect_json" / "good.json")
    log = json.loads((PEERS / "inspect_json" / "good.json").read_text())
    labels = len(log["samples"][0]["scores"])
    for score in log["samples"][0]["scores"].values():
        score["value"] = float(literal.lower())
    log["results"]["note"] = "NaN"
    log["results"]["more"] = float(literal.lower())
    path = write_json(tmp_path / "log.json", log)
    assert literal in path.read_text()
    reader = opened(path)
    assert reader.kind == "inspect"
    assert reader.summary.responses == before.summary.responses
    assert len(reader.summary.labels) == len(before.summary.labels) - labels > 0


def test_inspect_scores_of_every_form(tmp_path: Path) -> None:
    """Texts count as Inspect counts them, parts get their own labels, and the rest is named."""
    log = json.loads((PEERS / "inspect_json" / "good.json").read_text())
    forms = {
        "grade": "P",
        "word": "No",
        "number": "0.25",
        "parts": {"style": 1, "facts": "C", "tone": None},
        "list": [1, 0],
        "text": "fine",
    }
    log["samples"] = log["samples"][:1]
    log["samples"][0]["scores"] = {name: {"value": value} for name, value in forms.items()}
    summary = opened(write_json(tmp_path / "log.json", log)).summary
    assert {label.labeler: label.value for label in summary.labels} == {
        "grade": 0.5,
        "word": 0.0,
        "number": 0.25,
        "parts/style": 1.0,
        "parts/facts": 1.0,
    }
    assert list(summary.notes) == [
        "there is no score of 'parts/tone': it gives no label",
        "the score of 'list' is not a number: it gives no label",
        "the score of 'text' is not a number: it gives no label",
    ]


def test_scores_of_other_tools_without_a_number_are_counted(tmp_path: Path) -> None:
    """A failed metric of DeepEval and a text in a metric of lm-eval are named."""
    notes = opened(deepeval_run(tmp_path / "one")).summary.notes
    assert {note: rows.count for note, rows in notes.items()} == {
        "there is no score of 'Relevancy': it gives no label": 1
    }
    (samples,) = (PEERS / "lm_eval" / "dummy").glob("*.jsonl")
    path = tmp_path / "two" / samples.name
    path.parent.mkdir()
    text = samples.read_text()
    path.write_text(text.replace('"exact_match": 0.0', '"exact_match": "none"'))
    assert path.read_text() != text
    notes = opened(path).summary.notes
    assert list(notes) == ["the score of 'exact_match' is not a number: it gives no label"]


@pytest.mark.parametrize("literal", NO_NUMBERS)
def test_inspect_archive_with_a_score_that_is_no_number(tmp_path: Path, literal: str) -> None:
    """NaN in the header and in a sample of an .eval log is read as a missing value."""
    before = opened(PEERS / "inspect" / "good.eval")
    path = with_nan(PEERS / "inspect" / "good.eval", tmp_path / "log.eval", literal)
    reader = opened(path)
    assert reader.summary.responses == before.summary.responses
    assert len(reader.summary.labels) == len(before.summary.labels) - 1
    assert not reader.summary.skipped


def with_nan(source: Path, path: Path, literal: str) -> Path:
    """Copy an .eval log; its header and the score of its first sample hold `literal`."""
    with ZipFile(source) as old, ZipFile(path, "w") as new:
        members = {each.filename: read_member(source, each) for each in old.infolist()}
        first = min(name for name in members if name.startswith("samples/"))
        for name, content in members.items():
            document = json.loads(content)
            if name == first:
                next(iter(document["scores"].values()))["value"] = float(literal.lower())
            if name == "header.json":
                document["more"] = float(literal.lower())
            new.writestr(name, json.dumps(document))
    return path


@pytest.mark.parametrize("damage", ['"\\ud800"', "1e999", "NaN NaN", "[" * 5000])
def test_inspect_log_that_is_damaged(tmp_path: Path, damage: str) -> None:
    """What is not JSON for another reason than NaN is refused as before."""
    text = (PEERS / "inspect_json" / "good.json").read_text().rstrip()
    path = tmp_path / "log.json"
    path.write_text(f'{text[:-1]}, "more": {damage}, "other": NaN}}')
    assert "log.json" in refused(path)


def test_other_json_with_nan_is_refused(tmp_path: Path) -> None:
    """Only logs of Inspect may hold NaN."""
    path = tmp_path / "x.json"
    path.write_text('[{"question": "One?", "output": "1", "score": NaN}]')
    assert "NaN" in refused(path)


def test_logs_of_one_name_in_two_folders(tmp_path: Path) -> None:
    """Logs are distinguished by their path, so that no model takes another's samples."""
    log = json.loads((PEERS / "inspect_json" / "good.json").read_text())
    for model in ("m-a", "m-b"):
        write_json(tmp_path / model / "log.json", {**log, "eval": {**log["eval"], "model": model}})
    reader = opened(tmp_path)
    assert reader.summary.candidates == {"m-a": 4, "m-b": 4}
    check_benchmark(reader)
    write_json(tmp_path / "m-b" / "log.json", {**log, "status": "error"})
    write_json(tmp_path / "m-a" / "log.json", log)
    same = opened(tmp_path)
    assert {name.partition(" ")[2] for name in same.summary.candidates} == {
        "(m-a/log.json)",
        "(m-b/log.json)",
    }
    assert same.mapping()["incomplete"] == "m-b/log.json (error)"


def test_files_that_are_not_read_are_listed(tmp_path: Path) -> None:
    """JSON next to .eval logs is named; JSON next to .arrow files is read."""
    shutil.copytree(PEERS / "inspect", tmp_path / "logs")
    shutil.copy(PEERS / "inspect_json" / "good.json", tmp_path / "logs" / "more.json")
    lines = list(opened(tmp_path / "logs").summary.lines())
    assert any("more.json (next to .eval logs)" in line for line in lines)
    shutil.copytree(PEERS / "hf_dataset", tmp_path / "data")
    arrow = opened(tmp_path / "data")
    before = arrow.summary.rows
    columns = dict(arrow.settings()["columns"])  # type: ignore[call-overload]
    row = {columns["query"]: "New?", columns["response"]: "Yes."}
    row |= {each: "v9" for each in columns.get("candidate", "").split("+") if each}
    write_json(tmp_path / "data" / "z.json", [row])
    assert opened(tmp_path / "data").summary.rows == before + 1


@pytest.mark.parametrize("choices", [["x"], [], [{"message": None}]])
def test_odd_choices_are_no_traceback(choices: list[Any], tmp_path: Path) -> None:
    """An output without a message is a message about the sample, or a named skip."""
    log = json.loads((PEERS / "inspect_json" / "good.json").read_text())
    log["samples"][0] |= {"output": {"choices": choices}, "messages": []}
    path = write_json(tmp_path / "log.json", log)
    reader = opened(path, bad_rows="skip")
    assert reader.summary.unused == 1


def test_requests_of_two_batches(tmp_path: Path) -> None:
    """A custom_id in two input files is refused: an answer would have two requests."""
    for name, text in (("a", "One?"), ("b", "Two?")):
        body = {"model": "m", "messages": [{"role": "user", "content": text}]}
        reply = {"choices": [{"message": {"role": "assistant", "content": name}}]}
        answer = {"custom_id": "r-1", "response": {"status_code": 200, "body": reply}}
        write_jsonl(tmp_path / f"{name}_input.jsonl", [{"custom_id": "r-1", "body": body}])
        write_jsonl(tmp_path / f"{name}_output.jsonl", [answer])
    told = refused(tmp_path)
    assert "two requests have this custom_id" in told
    assert "r-1 (a_input.jsonl:1 and b_input.jsonl:1)" in told


def test_versions_of_a_prompt_in_logs(tmp_path: Path) -> None:
    """A field such as prompt_version names the candidate; the model too if it varies."""
    row: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    rows = [{"prompt_version": f"v{n}", **row, "response": "Hi." * n, "cost": n} for n in (1, 2)]
    reader = opened(write_jsonl(tmp_path / "x.jsonl", rows))
    assert reader.summary.candidates == {"v1": 1, "v2": 1}
    assert reader.mapping()["candidate"] == "prompt_version: v1, v2"
    assert reader.mapping()["not read"] == "'cost'"
    noted = [{**row, "metadata": {"variant": name}, "response": name} for name in "ab"]
    two = [*noted, {**noted[0], "model": "n"}]
    both = opened(write_jsonl(tmp_path / "y.jsonl", two))
    assert set(both.summary.candidates) == {"m / a", "m / b", "n / a"}


def test_a_table_of_requests(tmp_path: Path) -> None:
    """Columns named request and response with plain text are a table, not a log."""
    text = "request,response,model\nWhat is 1?,One.,a\nWhat is 1?,No idea.,b\n"
    reader = opened(csv_file(tmp_path, text))
    assert reader.kind == "table"
    assert counts(reader) == (2, 2, 2, 1, 2)


def test_a_preference_that_is_a_list(tmp_path: Path) -> None:
    """An annotation with a list as preference is a message about the row."""
    row = {"instruction": "One?", "output_1": "a", "output_2": "b", "generator_1": "x"}
    path = write_json(tmp_path / "a.json", [{**row, "generator_2": "y", "preference": []}])
    assert "preference" in refused(path)


@pytest.mark.parametrize(
    ("labels", "words", "may_be_five"),
    [
        (("1", "5"), "1 to 5; scale 1 to 10 assumed", True),
        (("1.5", "5"), "1.5 to 5; scale 1 to 10 assumed", False),
        (("2", "9"), "2 to 9; scale 1 to 10 assumed", False),
        (("0", "1"), "0 to 1; scale 0 to 1 assumed", False),
    ],
)
def test_the_assumed_scale_of_labels_is_shown(
    labels: tuple[str, str], words: str, may_be_five: bool, tmp_path: Path
) -> None:
    """Ratings of 1 to 5 are never taken for a part of 1 to 10 without a word."""
    rows = "".join(f"Q{row},A,m,{label}\n" for row, label in enumerate(labels))
    path = csv_file(tmp_path, f"question,answer,model,rating\n{rows}")
    found = describe(open_data(str(path), None, {}))
    (line,) = (line for line in found.lines if "'rating'" in line)
    assert words in line
    assert "scorer.scale" in line
    assert ("[1, 5] may be meant" in line) == may_be_five
