"""The example of docs/howto/rubrics.md runs as printed, on the scripted engine."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import rubric_prefix
import yaml

from rocketeval.items import ItemKind
from rocketeval.store.inputs import Inputs
from support.in_process import cli

PAGE = (Path(__file__).parents[1] / "docs" / "howto" / "rubrics.md").read_text()
FILE = re.compile(r"`([\w./]+)`[^`\n]*:\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The files of the example, judged by the scripted engine."""
    files = dict(FILE.findall(PAGE))
    assert set(files) == {
        "data/queries.jsonl",
        "data/responses/old.jsonl",
        "data/responses/new.jsonl",
        "rubric.yaml",
        "rocketeval.yaml",
    }
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    config = yaml.safe_load(files["rocketeval.yaml"])
    config["judge"] = {"engine": "scripted", "model": "s"}
    (tmp_path / "rocketeval.yaml").write_text(yaml.safe_dump(config))
    return tmp_path


def test_example_is_planned_run_and_explained(example: Path) -> None:
    """It has weights, a penalty, a graded item, a check and a context; every command works."""
    plan = json.loads(cli(example, "plan", "--json").stdout)
    assert plan["items"] == 16
    cli(example, "run")
    run = example / "runs" / "rubric"
    checklist = Inputs(run / "inputs").checklists()["lights"]
    kinds = [detail.kind for detail in checklist.every_detail]
    assert kinds == [ItemKind.YES_NO] * 3 + [ItemKind.SCALE, ItemKind.CHECK]
    assert [detail.weight for detail in checklist.every_detail] == [1.0, 3.0, -2.0, 2.0, 1.0]
    rows = {
        (row["query_id"], row["candidate"]): row
        for row in pq.read_table(run / "scores.parquet").to_pylist()
    }
    ledger = [
        row
        for file in (run / "ledger").glob("*.parquet")
        for row in pq.read_table(file).to_pylist()
    ]
    assert len(ledger) == 4
    for row in ledger:
        values, na = row["p_yes"], row["p_na"][3]
        shares = [1.0, 3.0, 2.0, 2.0 * (1 - na), 1.0]
        turned = [values[0], values[1], 1 - values[2], values[3], values[4]]
        score = sum(s * v for s, v in zip(shares, turned, strict=True)) / sum(shares)
        assert rows[row["query_id"], row["candidate"]]["score"] == pytest.approx(1 + 9 * score)
        long_winded = (row["query_id"], row["candidate"]) == ("lights", "old")
        assert values[4] == (0.0 if long_winded else 1.0)
    shown = cli(example, "explain", "--query", "lights").stdout
    assert "penalty of weight 2" in shown
    assert "check words" in shown
    cli(example, "lint")
    cli(example, "export", "--to", "csv", "--what", "judgments", "--out", "answers.csv")
    head, *lines = (example / "answers.csv").read_text().splitlines()
    assert {"weight", "kind", "p_na"} <= set(head.split(","))
    assert len(lines) == 20


def test_prompts_share_their_prefixes(monkeypatch: pytest.MonkeyPatch) -> None:
    """In our order, a cache of 32,000 tokens computes at most 1.05 times the minimum."""
    monkeypatch.setattr(rubric_prefix, "QUERIES", 6)
    for name, uses in rubric_prefix.CASES.items():
        for own in (False, True):
            sent = rubric_prefix.prompts(uses, own_context=own)
            least = rubric_prefix.trie_tokens(sent, rubric_prefix.BLOCK).computed
            assert rubric_prefix.recent(sent, 32_000) <= 1.05 * least, name
            if len({tuple(each) for each in uses}) == 1:
                assert (
                    rubric_prefix.one_slot(sent) <= 1.05 * rubric_prefix.trie_tokens(sent).computed
                )
