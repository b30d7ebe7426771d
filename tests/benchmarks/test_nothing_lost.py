"""What a file holds is read as it is: exact values, all rows and files, and the whole request."""

from __future__ import annotations

import json
import re
import time
import zipfile
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.test_excel import HEADER, ROWS, book
from benchmarks.test_reader_meaning import csv_file, refused
from benchmarks.test_readers import opened
from contracts.benchmark_folders import write_jsonl
from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.cells import as_text
from rocketeval.benchmarks.opened import describe, open_data
from rocketeval.benchmarks.row_files import header_names
from rocketeval.benchmarks.snapshot import snapshot
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Turn
from support.needs import need

LONG = 1 << 80
FRENCH = "Answer only in French."


def texts(path: Path) -> list[str]:
    """Return all responses of a file or folder."""
    return [response.text for response in opened(path).responses()]


def test_parts_given_as_absent_stay_absent(tmp_path: Path) -> None:
    """The config that is written reads no more columns than the command did."""
    path = csv_file(tmp_path, "question,output,model,score,system\nQ,x,a,5,kind\nQ,y,b,7,rude\n")
    reader = opened(path, columns={"label": "", "system": ""})
    again = opened(path, **reader.settings())
    assert reader.settings()["columns"] == {
        "query": "question", "response": "output", "candidate": "model", "label": "", "system": ""
    }  # fmt: skip
    assert list(again.labels()) == []
    assert len(list(again.queries())) == 1


def test_an_instruction_that_repeats_is_asked_about(tmp_path: Path) -> None:
    """Without its instruction, nobody can judge what was done with the input."""
    rows = "Translate,One,Un\nTranslate,Two,Deux\nTranslate,Six,Six\n"
    said = refused(csv_file(tmp_path, "instruction,input,output\n" + rows))
    assert "--column query=instruction+input" in said


@pytest.mark.parametrize("name", ["c+d", "a, b", 'the "best"'])
def test_any_name_of_a_column(name: str, tmp_path: Path) -> None:
    """A plus, a comma or a quote in it is no separator."""
    rows = [{"question": "Q", "output": "x", name: "m"}]
    reader = opened(write_jsonl(tmp_path / "x.jsonl", rows), columns={"candidate": name})
    assert [response.candidate for response in reader.responses()] == ["m"]


@pytest.mark.parametrize("reference", ['["Paris"]', '{"a": 1,  "b": 2}', "12345678901234567890123"])
def test_a_reference_that_is_json_stays_as_it_is(reference: str, tmp_path: Path) -> None:
    """Checks compare it letter by letter."""
    rows = [{"question": "Q", "output": "x", "reference": reference}]
    (query,) = opened(write_jsonl(tmp_path / "x.jsonl", rows)).queries()
    assert query.reference == reference


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal(7), "7"),
        (Decimal(LONG), str(LONG)),
        (Decimal("0.1"), "0.1"),
        (Decimal("0.12345678901234567890123"), "0.12345678901234567890123"),
    ],
)
def test_decimals(value: Decimal, text: str, tmp_path: Path) -> None:
    """A decimal is the number that it is, and never another one."""
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"question": ["Q"], "output": [value]}), path)
    assert texts(path) == [text]


@pytest.mark.parametrize("suffix", ["jsonl", "json"])
def test_long_integers(suffix: str, tmp_path: Path) -> None:
    """Two integers of more than 64 bits that differ are two responses."""
    rows = [{"question": "Q", "model": name, "output": LONG + n} for n, name in enumerate("ab")]
    path = tmp_path / f"x.{suffix}"
    path.write_text("\n".join(map(json.dumps, rows)) if suffix == "jsonl" else json.dumps(rows))
    assert texts(path) == [str(LONG), str(LONG + 1)]


def test_values_that_are_no_json() -> None:
    """Long integers and keys that are numbers become text; half a character is refused."""
    assert as_text([{1: LONG}]) == f'[{{"1":{LONG}}}]'
    with pytest.raises(BenchmarkError, match="is not JSON"):
        as_text(["\ud800"])


def test_ids_of_a_column_with_floats(tmp_path: Path) -> None:
    """A column of ids with an empty cell elsewhere holds 1.0 for 1; versions keep their zero."""
    csv_file(tmp_path, "id,question,output\n1,Q,x\n").rename(tmp_path / "a.csv")
    table = pa.table({"id": [1.0], "question": ["Q"], "output": ["y"], "model": [2.0]})
    pq.write_table(table, tmp_path / "b.parquet")
    reader = opened(tmp_path / "b.parquet")
    assert [(each.query_id, each.candidate) for each in reader.responses()] == [("1", "2.0")]
    assert [query.id for query in opened(tmp_path / "a.csv").queries()] == ["1"]


def test_shards_are_one_candidate(tmp_path: Path) -> None:
    """The files of a dataset are one, and what `datasets` cached is named as not read."""
    for place in range(2):
        table = pa.table({"question": [f"Q{place}"], "output": ["x"]})
        path = tmp_path / f"data-0000{place}-of-00002.arrow"
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table)
    (tmp_path / "cache-1a2b.arrow").write_bytes(path.read_bytes())
    reader = opened(tmp_path)
    assert {response.candidate for response in reader.responses()} == {"data"}
    assert len(list(reader.queries())) == 2
    assert "cache-1a2b.arrow" in str(describe(open_data(str(tmp_path), None, {})))


def test_columns_of_one_name_in_parquet(tmp_path: Path) -> None:
    """The second one does not replace the first without a word."""
    table = pa.Table.from_arrays(
        [pa.array(["Q"]), pa.array(["x"]), pa.array(["y"])], names=["question", "output", "output"]
    )
    pq.write_table(table, tmp_path / "x.parquet")
    assert "two columns named 'output'" in refused(tmp_path / "x.parquet")


def test_header_of_a_wide_table_is_read_in_linear_time() -> None:
    """20,000 columns took seconds of CPU time per reader that looked at the file."""
    cells = [f"column {number}" for number in range(20_000)]
    started = time.process_time()
    assert header_names(Path("x.csv"), cells) == cells
    assert time.process_time() - started < 1


def test_a_named_index_of_a_frame_is_a_column(tmp_path: Path) -> None:
    """Whether or not the other columns hold values of several types."""
    need("pandas", "a frame with an index needs pandas")
    import pandas

    frame = pandas.DataFrame(
        {"question": ["Q", "Q"], "output": ["x", 3], "model": ["a", "b"]}
    ).set_index("model")
    path = snapshot(frame, tmp_path)
    assert path.name == "data.jsonl"
    assert [response.candidate for response in opened(path).responses()] == ["a", "b"]


def test_rows_that_a_quote_takes_in_are_named(tmp_path: Path) -> None:
    """A mistake of many lines says which they are."""
    rows = "".join(f"Q{n},x\n" for n in range(9))
    path = csv_file(tmp_path, f'question,output\nQ,"open\n{rows}Q,"x\n')
    assert re.search(r"up to line 12|from line 2 to 12", refused(path))


def test_names_of_fields_that_are_no_text(tmp_path: Path) -> None:
    """YAML allows them."""
    path = tmp_path / "x.yaml"
    path.write_text("- {question: Q, output: x}\n- {1: Q, output: z}\n")
    assert "the name of a field is not text" in refused(path)


@pytest.mark.parametrize("size", ["A1", "A1:B3", "A1:C2"])
def test_the_size_that_a_sheet_states(size: str, tmp_path: Path) -> None:
    """Programs that change a sheet may leave the old one."""
    need("openpyxl", "Excel files need openpyxl")
    path = book(tmp_path / "x.xlsx", ROWS)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    sheet = "xl/worksheets/sheet1.xml"
    parts[sheet] = re.sub(rb'<dimension ref="[^"]*"', b'<dimension ref="%s"' % size.encode(),
                          parts[sheet])  # fmt: skip
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    assert texts(path) == [row[2] for row in ROWS[1:]]


def test_cells_at_the_end_of_a_row(tmp_path: Path) -> None:
    """A cell beyond the header is a mistake; one that is missing is empty."""
    need("openpyxl", "Excel files need openpyxl")
    beyond = book(tmp_path / "x.xlsx", [HEADER, ["Q", "a", "one", "more"]])
    assert "a cell beyond the header" in refused(beyond)
    rows = [[*HEADER, "score"], ["Q", "a", "one", 5], ["Q", "b", "two"]]
    reader = opened(book(tmp_path / "y.xlsx", rows))
    assert len(list(reader.responses())) == 2
    assert [label.value for label in reader.labels()] == [5.0]


ASKED = [{"role": "user", "content": "Hi"}]
LOGGED: list[dict[str, Any]] = [
    {"request": {"model": "m", "system": FRENCH, "messages": ASKED}, "response": "Salut"},
    {"model": "m", "system": FRENCH, "messages": ASKED, "response": "Salut"},
    {"request": {"model": "m", "instructions": FRENCH, "input": "Hi"}, "response": "Salut"},
    {"model": "m", "system": FRENCH, "response": "Salut",
     "messages": [{"role": "system", "content": FRENCH}, *ASKED]},
    {"traceId": "t", "id": "1", "type": "GENERATION", "model": "m", "output": "Salut",
     "input": {"system": FRENCH, "messages": ASKED}},
]  # fmt: skip


@pytest.mark.parametrize("row", LOGGED)
def test_system_prompts_next_to_messages(row: dict[str, Any], tmp_path: Path) -> None:
    """The judge sees them: without, nobody can tell whether the response obeys."""
    (query,) = opened(write_jsonl(tmp_path / "x.jsonl", [row])).queries()
    assert query.history == (Turn("system", FRENCH),)
    assert query.text == "Hi"


@pytest.mark.parametrize(
    ("name", "content"), [("b.jsonl", ""), ("c.json", '[{"query_id": "q", "text": "x"}]')]
)
def test_files_of_responses_that_cannot_be_read(name: str, content: str, tmp_path: Path) -> None:
    """A candidate is not absent without a word."""
    row = {"id": "q", "instruction": "Do", "input": "", "decomposed_questions": ["Is it?"],
           "question_label": [["Format"]]}  # fmt: skip
    path = write_jsonl(tmp_path / "x.jsonl", [row])
    (tmp_path / "given").mkdir()
    write_jsonl(tmp_path / "given" / "a.jsonl", [{"query_id": "q", "text": "x"}])
    (tmp_path / "given" / name).write_text(content)
    config = BenchmarkConfig(kind="infobench", path=path, options={"responses": "given"})
    with pytest.raises(BenchmarkError, match=name):
        list(open_benchmark(config).responses())


def test_further_answers_of_leaderboards(tmp_path: Path) -> None:
    """Of several choices, turns and outputs the first is judged, and that is counted."""
    question = {"question_id": "q", "category": "c", "turns": [{"content": "Q"}, {"content": "R"}]}
    turns = [{"content": "A"}, {"content": "B"}]
    answer = {"question_id": "q", "answer_id": "1", "model_id": "m",
              "choices": [{"index": 0, "turns": turns}, {"index": 1, "turns": turns}]}  # fmt: skip
    arena = tmp_path / "arena"
    (arena / "model_answer").mkdir(parents=True)
    write_jsonl(arena / "question.jsonl", [question])
    write_jsonl(arena / "model_answer" / "m.jsonl", [answer])
    said = str(describe(open_data(str(arena), None, {})))
    assert "several choices" in said
    assert "several turns" in said
    write_jsonl(arena / "question.jsonl", [question, {**question, "turns": [{"content": "S"}]}])
    assert "two different questions have the id 'q'" in refused(arena)
    row = {"session_id": "s", "chat_history": ["Hi"], "output": ["x", "y"], "generator": "m"}
    said = str(describe(open_data(str(write_jsonl(tmp_path / "w.jsonl", [row])), None, {})))
    assert "several outputs" in said
