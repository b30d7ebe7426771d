"""Item groups: the same numbers in explain.json, page, exports and terminal."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from base64 import b64decode
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval.cli import explain as terminal
from rocketeval.cli.explain import show_groups
from rocketeval.config import RunConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import ExportError
from rocketeval.explain.groups import GroupMean, GroupScore
from rocketeval.explain.stage import Explanation, explain_query, explain_run
from rocketeval.exports.formats import make_request
from rocketeval.exports.stage import export_stream
from rocketeval.exports.tables import show_groups as show_page
from rocketeval.pipeline import Outcome, Run
from rocketeval.records import Interval
from rocketeval.report.head import group_means
from rocketeval.report.model import GroupMeans
from rocketeval.text import disarm
from rocketeval.view.provisional import final_figures, provisional_figures
from support.grouped_run import NAMES, QUERIES, grouped_config, grouped_run, p_yes
from support.make import make_config


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunConfig, Outcome]:
    return grouped_run(tmp_path_factory.mktemp("grouped"))


@pytest.fixture(scope="module")
def groups(made: tuple[RunConfig, Outcome]) -> dict[str, Any]:
    """Return the means of explain.json by group and candidate."""
    written = json.loads((made[1].path / "explain.json").read_text())
    assert written["groups_left_out"] == 0
    return {
        group["group"]: {own["candidate"]: own for own in group["candidates"]}
        for group in written["groups"]
    }


def exported(config: RunConfig, to: str, what: str, **options: bool) -> str:
    stream = io.BytesIO()
    export_stream(Run(config).store, make_request(to, what, **options), stream)
    return stream.getvalue().decode()


def test_group_means_match_the_answers(groups: dict[str, Any]) -> None:
    """By hand: q0 has only one warm item, and the response of `right` to q1 was not judged."""
    warm = groups["tone: warm"]
    assert warm["=1+1"]["mean"]["value"] == pytest.approx((0.9 + 7 * 0.8) / 8)
    assert warm["left"]["mean"]["value"] == pytest.approx((0.95 + 7 * 0.85) / 8)
    assert (warm["right"]["responses"], warm["right"]["missing"]) == (7, 2)
    assert groups["=length"]["=1+1"]["mean"]["value"] == pytest.approx(0.5)
    whole = groups["tone"]["=1+1"]["mean"]["value"]
    assert whole == pytest.approx((0.9 + 7 * (0.9 + 0.7 + 0.2) / 3) / 8)


def test_page_has_groups_of_all_items(
    made: tuple[RunConfig, Outcome], groups: dict[str, Any]
) -> None:
    page = made[1].report.read_text()
    head = re.search(r'<script type="application/json" id="head">(.*?)</script>', page, re.DOTALL)
    assert head is not None
    shown = json.loads(head[1])
    names = [candidate["name"] for candidate in shown["candidates"]]
    for group in shown["groups"]:
        for name, mean, missing in zip(names, group["means"], group["missing"], strict=True):
            own = groups[group["name"]][name]
            assert mean["value"] == pytest.approx(own["mean"]["value"], abs=1e-4)
            assert missing == own["missing"]
    found = dict(re.findall(r'id="block-([\w-]+)">([^<]*)</script>', page))
    block = json.loads(gzip.decompress(b64decode(found["query-1"])))
    assert block["groups"][:2] == ["tone: warm", "tone: warm"]
    assert len(block["groups"]) == len(block["items"]) == 5


def test_exports_have_groups(made: tuple[RunConfig, Outcome], groups: dict[str, Any]) -> None:
    """One row per candidate and group; names that a spreadsheet would compute are escaped."""
    rows = list(csv.DictReader(io.StringIO(exported(made[0], "csv", "groups"), newline="")))
    assert len(rows) == 4 * len(NAMES)
    shown = {(disarm(group), disarm(name)): own for group, by in groups.items()
             for name, own in by.items()}  # fmt: skip
    for row in rows:
        own = shown[row["group"], row["candidate"]]
        assert float(row["mean"]) == pytest.approx(own["mean"]["value"])
        assert int(row["missing"]) == own["missing"]
    page = exported(made[0], "markdown", "groups")
    assert "| tone: warm | " in page
    assert "| tone (all) | " in page
    assert "tone (all) & " in exported(made[0], "latex", "groups")
    assert "Left out: 5 " in page
    assert exported(made[0], "latex", "groups").count("\\\\") >= 4


def test_every_response_has_its_own_means(made: tuple[RunConfig, Outcome]) -> None:
    """Their average is the candidate's mean; a response without items has no row."""
    rows = [json.loads(line) for line in exported(made[0], "jsonl", "group_scores").splitlines()]
    warm = {
        (row["query_id"], row["candidate"]): row for row in rows if row["group"] == "tone: warm"
    }
    assert len(warm) == len(QUERIES) * len(NAMES)
    assert warm["q0", "left"]["mean"] == pytest.approx(0.95)
    assert (warm["q0", "left"]["items"], warm["q2", "left"]["items"]) == (1, 2)
    unjudged = warm["q1", "right"]
    assert (unjudged["mean"], unjudged["items"], unjudged["answered"]) == (None, 2, 0)
    assert ("q0", "left") not in {
        (row["query_id"], row["candidate"]) for row in rows if row["group"] == "=length"
    }
    assert {row["dimension"] for row in rows if row["whole"]} == {"tone"}


def test_judgments_name_the_group_of_their_item(made: tuple[RunConfig, Outcome]) -> None:
    rows = [json.loads(line) for line in exported(made[0], "jsonl", "judgments").splitlines()]
    assert {(row["item_text"], row["group"]) for row in rows if row["query_id"] == "q0"} == {
        ("Is it warm?", "tone: warm")
    }


def test_a_query_is_explained_with_groups(made: tuple[RunConfig, Outcome]) -> None:
    found = explain_query(Run(made[0]).store, made[0], "q0")
    assert [item.group for item in found.items] == ["tone: warm"]


@pytest.mark.parametrize(("width", "head"), [(None, "=1+1"), (200, "=1+1"), (60, "2")])
def test_terminal_shows_groups(
    made: tuple[RunConfig, Outcome],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    width: int | None,
    head: str,
) -> None:
    """By name if names fit, else by place; no control characters."""
    monkeypatch.setattr(terminal, "screen_width", lambda: width)
    found = explain_run(Run(made[0]).store, made[0])
    show_groups(found.groups, "what a figure is", 3)
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    rows = [line.split() for line in shown.splitlines()]
    assert head in rows[1]
    assert any(row[:2] == ["warm", "0.86"] for row in rows)
    assert any(row[:2] == ["tone", "(all)"] for row in rows)
    assert "what a figure is" in shown
    assert "5 missing answers are left out" in shown
    assert "3 more groups are not shown" in shown


def test_viewer_has_groups_during_the_run(tmp_path: Path) -> None:
    """From the judgments so far, by the same function."""
    config = grouped_config(tmp_path)
    outcome = rocketeval.run(config, judge=ScriptedEngine(p_yes, fail_on="FAIL"))
    final = json.loads((outcome.path / "explain.json").read_text())["groups"]
    store = Run(config).store
    store.drop_from("score")
    head = provisional_figures(store).source.head
    assert [group.name for group in head.groups] == [group["group"] for group in final]
    values = {own["candidate"]: own["mean"]["value"] for own in final[0]["candidates"]}
    for candidate, mean in zip(head.candidates, head.groups[0].means, strict=True):
        assert mean is not None
        assert mean.value == pytest.approx(values[candidate.name], abs=1e-4)


def test_unjudged_responses_are_not_missing_during_the_run(tmp_path: Path) -> None:
    """A pending response does not count as a missing answer."""
    config = grouped_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine(p_yes, fail_on="FAIL"))
    store = Run(config).store
    store.drop_from("score")
    head = provisional_figures(store).source.head
    assert {sum(group.missing) for group in head.groups} == {0}


def test_viewer_keeps_groups_until_explain_json_exists(tmp_path: Path) -> None:
    """The means and gaps equal those of explain.json."""
    config = grouped_config(tmp_path)
    outcome = rocketeval.run(config, judge=ScriptedEngine(p_yes, fail_on="FAIL"))
    store = Run(config).store
    final = final_figures(store).source.head.groups
    (outcome.path / "explain.json").unlink()
    head = provisional_figures(store).source.head
    assert "audit" in head.provisional
    assert [group.missing for group in head.groups] == [group.missing for group in final]
    assert _values(head.groups) == _values(final)
    assert head.groups


def _values(groups: Sequence[GroupMeans]) -> list[list[float | None]]:
    return [[mean and mean.value for mean in group.means] for group in groups]


def test_unranked_candidate_has_no_row(tmp_path: Path) -> None:
    """A candidate without a score is left out."""
    config = grouped_config(tmp_path)
    silent = {"query_id": "q0", "candidate": "silent", "text": "FAIL"}
    with (tmp_path / "benchmark/responses.jsonl").open("a") as stream:
        stream.write(json.dumps(silent) + "\n")
    rocketeval.run(config, judge=ScriptedEngine(p_yes, fail_on="FAIL"))
    head = final_figures(Run(config).store).source.head
    assert [own.name for own in head.candidates][len(NAMES) :] == ["silent"]
    assert {(len(group.means), len(group.missing)) for group in head.groups} == {(4, 4)}


def test_no_ranked_candidate_means_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    group = GroupScore("x", None, False, 1, ())
    found = Explanation((), 4, 5, 1, 0, 1, {}, (), (group,))
    assert group_means(found, []) == ()
    show_groups([group], "about")
    assert capsys.readouterr().out == ""


def test_group_named_like_its_dimension_has_its_own_row(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No two rows share a name, on the page and in the terminal."""
    means = (GroupMean("a", Interval(0.5, 0.4, 0.6), 8, 0),)
    found = [
        GroupScore("tone", "tone", True, 8, means),
        GroupScore("tone", "tone", False, 8, means),
        GroupScore("tone: warm", "tone", False, 8, means),
    ]
    page = show_page(found, 0, "judge", "about")
    assert [row[0] for row in page.rows] == ["tone (all)", "tone", "tone: warm"]
    show_groups(found, "about")
    shown = [line.split("0.50")[0] for line in capsys.readouterr().out.splitlines()]
    assert [line.rstrip() for line in shown if "tone" in line or "warm" in line] == [
        "tone (all)",
        "  tone",
        "  warm",
    ]


@pytest.mark.parametrize("what", ["groups", "group_scores"])
def test_a_run_without_groups_says_so(tmp_path: Path, what: str) -> None:
    config = make_config(tmp_path)
    rocketeval.run(config)
    assert json.loads((tmp_path / "runs/run/explain.json").read_text())["groups"] == []
    with pytest.raises(ExportError, match="no groups"):
        exported(config, "csv", what)
