"""Editable checklist files round-trip, and mistakes are located."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from rocketeval.checklists.checklist_file import read_checklist_file
from rocketeval.checklists.export import export_checklists
from rocketeval.checklists.simple import FileAuthor
from rocketeval.config import AuthorConfig
from rocketeval.errors import ChecklistError, ConfigError, ExportError
from rocketeval.records import Checklist, Query
from rocketeval.store.run import RunStore

HOSTILE = (
    "=HYPERLINK(1)?",
    "'=1+1?",
    "''quoted?",
    ' "@now?',
    "\t-1?",
    "a,b;c?",
    "two\nlines\r\nthree?",
    "next\x85line\u2028and\u2029paragraph?",
    "\x1b[2J?",
    "no",
    "1",
    "\u202eright to left?",
    "{{item}} <<<end of response>>>",
    "'",
    "'Paris' is named?",
    " spaces ",
    "# no comment?",
    "- no list: &a *b !c",
)


def stored(folder: Path, checklists: list[Checklist], queries: list[Query]) -> RunStore:
    """A run with these checklists."""
    store = RunStore(folder / "run")
    store.inputs.save(queries, [], [], [], [])
    store.inputs.save_checklists(checklists)
    return store


async def back(path: Path, query: Query) -> Checklist:
    """The checklist of a query, read back by the file author."""
    author = FileAuthor.create(AuthorConfig(options={"file": str(path)}), {})
    return await author.write(query)


@pytest.mark.parametrize("ending", ["yaml", "csv"])
@pytest.mark.parametrize("groups", [None, tuple(HOSTILE)])
async def test_hostile_items_round_trip(
    tmp_path: Path, ending: str, groups: tuple[str, ...] | None
) -> None:
    """Formulas, quotes, line breaks, control characters; in items, groups, queries and ids."""
    queries = [Query(text, text) for text in HOSTILE]
    made = [Checklist(query.id, HOSTILE, "x", groups) for query in queries[:-1]]
    made.append(Checklist(queries[-1].id, HOSTILE[::-1], "x"))
    store = stored(tmp_path, made, queries)
    path = tmp_path / f"out.{ending}"
    assert export_checklists(store, path) == len(HOSTILE)
    for query, checklist in zip(queries, made, strict=True):
        found = await back(path, query)
        assert (found.items, found.groups) == (checklist.items, checklist.groups)


async def test_yaml_keeps_about(tmp_path: Path) -> None:
    """CSV cannot store it."""
    made = Checklist("a", ("Is it?",), groups=("g",), about="g: what\nit = means")
    store = stored(tmp_path, [made], [Query("a", "?")])
    for name, about in (("out.yaml", made.about), ("out.csv", None)):
        export_checklists(store, tmp_path / name)
        found = await back(tmp_path / name, Query("a", "?"))
        assert (found.groups, found.about) == (("g",), about)


def test_csv_cells_are_not_formulas(tmp_path: Path) -> None:
    """As a spreadsheet reads it."""
    store = stored(
        tmp_path,
        [Checklist("=id", HOSTILE), Checklist("b", ("Is it?",))],
        [Query("=id", "=query"), Query("b", "b")],
    )
    export_checklists(store, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    assert not [cell for cell in cells if cell.lstrip(' "').startswith(("=", "+", "-", "@", "\t"))]


@pytest.mark.parametrize("ending", ["yaml", "csv"])
async def test_shared_checklist_is_written_once(tmp_path: Path, ending: str) -> None:
    """And read for every query, also a new one."""
    queries = [Query("a", "A"), Query("b", "B")]
    lists = [Checklist(query.id, ("Is it?",), "x", ("g",)) for query in queries]
    path = tmp_path / f"out.{ending}"
    assert export_checklists(stored(tmp_path, lists, queries), path) == 1
    assert path.read_text().count("Is it?") == 1
    assert (await back(path, Query("new", "?"))).groups == ("g",)


async def test_a_query_without_a_checklist_is_named(tmp_path: Path) -> None:
    """No checklist is made up for it."""
    path = tmp_path / "in.yaml"
    path.write_text("queries: {a: {items: ['Is it?']}}")
    with pytest.raises(ChecklistError, match="the file has no checklist for it"):
        await back(path, Query("b", "B"))


async def test_semicolons_and_byte_order_mark(tmp_path: Path) -> None:
    """CSV as spreadsheets save it, with reordered columns and a blank line."""
    path = tmp_path / "in.csv"
    path.write_text("\ufeffitem;query_id\nIs it, so?;a\n;\n", encoding="utf-8")
    assert (await back(path, Query("a", "A"))).items == ("Is it, so?",)


async def test_apostrophes_of_hand_written_items_stay(tmp_path: Path) -> None:
    """Only one that the export would have added is removed."""
    path = tmp_path / "in.csv"
    path.write_text("query_id,item\na,'Paris' is named?\na,'=1+1?\na,''Rome' is named?\n")
    found = await back(path, Query("a", "A"))
    assert found.items == ("'Paris' is named?", "=1+1?", "'Rome' is named?")


@pytest.mark.parametrize(
    ("ending", "text", "problem"),
    [
        ("yaml", "", "must be a mapping"),
        ("yaml", "{}", "contains no checklist"),
        ("yaml", "querys: {}", "Did you mean 'queries'"),
        ("yaml", "queries: {a: {}}", "queries.a: this needs either `items` or `groups`"),
        ("yaml", "queries: {a: {items: []}}", "queries.a.items"),
        ("yaml", "queries: {a: {items: [' ']}}", "queries.a.items.0: this item is empty"),
        ("yaml", "queries: {a: {items: [yes]}}", "queries.a.items.0"),
        ("yaml", "queries: {a: {item: [x]}}", "Did you mean 'items'"),
        ("yaml", "a: " + "[" * 1000, "nested too deeply"),
        ("yaml", "queries: {q1: }", "queries.q1: this must be a list of items, or a mapping with"),
        ("yaml", "for_all: Is it good?", "for_all: this must be a list of items, or"),
        ("yaml", "for_all: []", "for_all.items: this list has no items."),
        ("yaml", "for_all: {items: [Is the ratio 3: 4 given?]}", "put the item in quotes"),
        ("csv", "", "has no column 'query_id'"),
        ("csv", "query_id,items\n", "Did you mean 'item'"),
        ("csv", "query_id,item,item\n", "occurs twice"),
        ("csv", "query_id,item\n", "contains no checklist"),
        ("csv", "query_id,item\na,b,c\n", "line 2: its columns"),
        ("csv", "query_id,item\na\n", "line 2: its columns"),
        ("csv", 'query_id,item\na,"b\n', "not valid CSV"),
        ("csv", "query_id,group,item\na,g,x?\na,,y?\n", "line 3: 'a' has items with and without"),
        ("csv", "query_id,item\na, \n", "queries.a.items.0: this item is empty"),
    ],
)
def test_mistakes_are_located(tmp_path: Path, ending: str, text: str, problem: str) -> None:
    """The error names the mistake, its place, and a valid alternative."""
    path = tmp_path / f"in.{ending}"
    path.write_text(text)
    with pytest.raises(ConfigError) as refused:
        read_checklist_file(path)
    assert problem in str(refused.value)


def test_plain_lists_are_items(tmp_path: Path) -> None:
    """A list without `items` is read like one with it, in YAML and JSON."""
    path = tmp_path / "c.yaml"
    path.write_text("for_all: [Is it good?]\nqueries:\n  q1:\n  - Is it short?\n")
    found = read_checklist_file(path)
    assert found.for_all is not None
    assert (found.for_all.items, found.queries["q1"].items) == (
        ("Is it good?",),
        ("Is it short?",),
    )
    path = tmp_path / "c.json"
    path.write_text('{"for_all": ["Is it good?"]}')
    assert read_checklist_file(path).for_all == found.for_all


def test_existing_file_is_not_overwritten(tmp_path: Path) -> None:
    """It may contain edits; the suffix determines the format."""
    store = stored(tmp_path, [Checklist("a", ("Is it?",))], [Query("a", "A")])
    path = tmp_path / "out.yaml"
    path.write_text("mine")
    with pytest.raises(ExportError, match="exists already"):
        export_checklists(store, path)
    export_checklists(store, path, force=True)
    assert "Is it?" in path.read_text()
    with pytest.raises(ExportError, match=r"\.yaml or \.csv"):
        export_checklists(store, tmp_path / "out.txt")
