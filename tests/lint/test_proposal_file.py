"""The proposal file: old items are comments that no text can break out of."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.checklists.checklist_file import read_checklist_file
from rocketeval.lint.fix import write_proposal
from rocketeval.lint.rewrite import Fixes, FixOutcome, ItemChange, with_rewrites
from rocketeval.records import Checklist, Query

BREAKS = "Is it\n- forged\r\n  key: [\x85x\u2028y\u2029z\x0b\x1b[2J \ufeff #?"
HOSTILE = (
    BREAKS,
    "- no list: &a *b !c?",
    "=1+1?",
    "'quoted'?",
    "no",
    "1",
    "# no comment?",
    "{a}?",
    "Is\x85it?",
)


def proposal(
    checklists: dict[str, Checklist], new: dict[int, str | None], left: int | None = None
) -> Fixes:
    """Return a proposal that rewrites the same items of every checklist."""
    changes = [
        ItemChange(
            query_id=query_id,
            queries=1,
            item=number,
            outcome=FixOutcome.DROPPED if text is None else FixOutcome.REWRITTEN,
            old=made.items[number - 1],
            new=text,
            kinds=("vague",),
            why=("why",),
        )
        for query_id, made in checklists.items()
        for number, text in new.items()
    ]
    if left is not None:
        old = next(iter(checklists.values()))
        kept = old.items[left - 1]
        changes.append(
            ItemChange(
                old.query_id, 1, left, FixOutcome.LEFT, kept, None, ("scale",), ("why",), "no"
            )
        )
    return Fixes(
        source="run",
        author="big",
        asked=len(checklists),
        changes=tuple(changes),
        rewritten=0,
        dropped=0,
        left=0,
        failures={},
        not_offered={},
        unasked=0,
        reused=0,
        usage={},
        checklists=tuple(with_rewrites(made, new) for made in checklists.values()),
    )


def written(folder: Path, checklists: dict[str, Checklist], fixes: Fixes, ending: str) -> Path:
    """Return the proposal file."""
    queries = {name: Query(name, f"{name} {BREAKS}") for name in checklists}
    path = folder / f"new.{ending}"
    write_proposal(path, fixes, checklists, queries)
    return path


@pytest.mark.parametrize("ending", ["yaml", "csv"])
@pytest.mark.parametrize("groups", [None, (*HOSTILE[:5], *HOSTILE[:4])])
def test_hostile_texts_round_trip(
    tmp_path: Path, ending: str, groups: tuple[str, ...] | None
) -> None:
    """In old items, new ones, groups, ids and queries."""
    made = {
        name: Checklist(name, HOSTILE if place else HOSTILE[::-1], "x", groups)
        for place, name in enumerate(HOSTILE)
    }
    fixes = proposal(made, {1: "Is = it\u2028so?", 3: None, 8: "'Is it: #?"})
    sheet = read_checklist_file(written(tmp_path, made, fixes, ending))
    assert list(sheet.queries) == list(HOSTILE)
    for expected in fixes.checklists:
        found = sheet.queries[expected.query_id].checklist(expected.query_id)
        if groups is None:
            assert found.items == expected.items
        else:
            assert sorted(zip(found.groups or (), found.items, strict=True)) == sorted(
                zip(expected.groups or (), expected.items, strict=True)
            )


@settings(deadline=None)
@given(st.lists(st.text(min_size=1).filter(str.strip), min_size=2, max_size=4, unique=True))
def test_any_text_round_trips(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """As old text, new text and query id; no text breaks out of its comment."""
    made = {texts[0]: Checklist(texts[0], tuple(texts)), "other": Checklist("other", ("Is it?",))}
    fixes = proposal({texts[0]: made[texts[0]]}, {1: texts[1], 2: None})
    fixes_all = [*fixes.checklists, made["other"]]
    folder = tmp_path_factory.mktemp("any")
    path = written(folder, made, _with(fixes, fixes_all), "yaml")
    sheet = read_checklist_file(path)
    expected = with_rewrites(made[texts[0]], {1: texts[1], 2: None})
    assert sheet.queries[texts[0]].items == expected.items


def _with(fixes: Fixes, checklists: list[Checklist]) -> Fixes:
    return replace(fixes, checklists=tuple(checklists))


def test_old_text_is_a_comment_above_the_item(tmp_path: Path) -> None:
    """With the kinds of findings; also for dropped and unchanged flagged items."""
    made = {
        "a": Checklist("a", ("Is it good?", "Is it two?", "How well?", "Is it red?")),
        "b": Checklist("b", ("Is it?",)),
    }
    fixes = proposal({"a": made["a"]}, {1: "Is it short?", 2: None}, left=3)
    text = written(tmp_path, made, _with(fixes, [*fixes.checklists, made["b"]]), "yaml").read_text()
    lines = [line.strip() for line in text.splitlines()]
    place = lines.index("# was (vague): Is it good?")
    assert lines[place : place + 6] == [
        "# was (vague): Is it good?",
        "- Is it short?",
        "# dropped (vague): Is it two?",
        "# unchanged (scale)",
        "- How well?",
        "- Is it red?",
    ]
    assert lines[-2:] == ["items:", "- Is it?"]


def test_empty_group_is_removed(tmp_path: Path) -> None:
    """The file author would reject an empty group."""
    made = {"a": Checklist("a", ("Is it?", "Is it so?"), "x", ("one", "two"), "one: a\ntwo: b")}
    fixes = proposal(made, {1: None})
    path = written(tmp_path, made, fixes, "yaml")
    [entry] = read_checklist_file(path).queries.values()
    assert entry.checklist("a").groups == ("two",)
    assert entry.checklist("a").about == "one: a\ntwo: b"
    assert "# dropped (vague): Is it?" in path.read_text()


def test_partial_list_is_not_written_for_all(tmp_path: Path) -> None:
    """Queries without a checklist must not get one."""
    made = {name: Checklist(name, ("Is it good?", "Is it red?")) for name in ("a", "b")}
    fixes = proposal({"a": made["a"]}, {1: "Is it short?"})
    both = [with_rewrites(each, {1: "Is it short?"}) for each in made.values()]
    queries = {name: Query(name, "?") for name in ("a", "b", "c")}
    path = tmp_path / "new.yaml"
    write_proposal(path, _with(fixes, both), made, queries)
    content = yaml.safe_load(path.read_text())
    assert "for_all" not in content
    assert [entry["items"][0] for entry in content["queries"].values()] == ["Is it short?"] * 2
