"""The report describes the evolved evaluator that judged, if there is one."""

from __future__ import annotations

import gzip
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import RocketEvalError
from rocketeval.report.findings import read_findings
from rocketeval.report.head import evaluator_blocks, evaluator_in_words
from rocketeval.report.page import embedded_page
from rocketeval.report.stage import gather
from rocketeval.store.codec import encode
from rocketeval.store.run import RunStore
from support.contract import contract_names
from support.described_evaluator import HOSTILE, described, interval
from support.make import make_config


def p_yes(prefix: str, suffix: str) -> float:
    return 0.9 if "left explains the sea" in prefix else 0.5


def block_of(found: Any) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(gzip.decompress(evaluator_blocks(found)["evaluator"]))
    return made


def test_description_names_size_training_data_and_accuracy() -> None:
    """The accuracy is the evaluator's, not a baseline's."""
    words = evaluator_in_words(described())
    for part in ("3 perspectives", "1 on the query", "2 experts", "100 pairs from duels"):
        assert part in words
    assert words.endswith("accuracy: 74.0% (72.0% to 76.0%).")


def test_description_omits_unknown_figures() -> None:
    """An evaluator of labels with one expert, without bounds, then without figures."""
    found = described()
    own, *others = found.figures
    unsure = replace(interval(-0.5), low=math.nan)
    found = replace(
        found,
        decides="responses",
        unit="number",
        measure="rank correlation",
        experts=found.experts[:1],
        figures=(replace(own, value=unsure), *others),
    )
    words = evaluator_in_words(found)
    assert "1 expert, trained on 100 responses from duels." in words
    assert words.endswith("rank correlation: \N{MINUS SIGN}0.50.")
    found = replace(found, figures=(), provenance=replace(found.provenance, cases=None))
    assert evaluator_in_words(found).endswith("1 on the query, 1 expert.")


def test_without_an_evaluator_there_is_no_description_and_no_block() -> None:
    """Other runs show no evaluator."""
    assert (evaluator_in_words(None), evaluator_blocks(None)) == ("", {})


def test_the_block_matches_the_contract() -> None:
    """Missing parts are null."""
    found = replace(described(), run=None)
    block = block_of(found)
    assert sorted(block) == sorted(contract_names()["EvaluatorBlock"])
    assert block["run"] is None
    assert block["perspectives"] == encode(found.perspectives)


def test_nan_is_refused_with_the_name_of_its_field() -> None:
    """JSON has no NaN."""
    found = described()
    one, other = found.experts
    found = replace(found, experts=(one, replace(other, attention=(math.nan, 0.75, 0.0))))
    with pytest.raises(RocketEvalError, match="nan for the evaluator's experts, attention"):
        evaluator_blocks(found)


def test_the_page_of_a_run_includes_its_evaluator(tmp_path: Path) -> None:
    """As a block, with a description in the head and its file in the list of files."""
    config = make_config(tmp_path)
    store = RunStore(rocketeval.run(config, judge=ScriptedEngine(p_yes)).path)
    bare = gather(store, config, read_findings(store))
    assert (bare.head.evaluator, bare.block("evaluator")) == ("", None)
    assert 'id="block-evaluator"' not in embedded_page(bare)
    store.save(described())
    source = gather(store, config, read_findings(store))
    page = embedded_page(source)
    assert "3 perspectives" in source.head.evaluator
    assert "evaluator.json" in [file.name for file in source.head.files]
    assert len(re.findall('id="block-evaluator"', page)) == 1
    assert HOSTILE not in page
    packed = source.block("evaluator")
    assert packed is not None
    assert json.loads(gzip.decompress(packed))["perspectives"][1]["text"] == HOSTILE


def test_a_large_evaluator_leaves_less_space_for_texts(tmp_path: Path) -> None:
    """The page stays within its size limit."""
    config = make_config(tmp_path)
    store = RunStore(rocketeval.run(config, judge=ScriptedEngine(p_yes)).path)
    found = described()
    more = [
        replace(found.perspectives[0], id=f"x{place}", text=f"Is it {place**7:x}?")
        for place in range(600)
    ]
    store.save(replace(found, perspectives=(*found.perspectives, *more)))
    source = gather(store, config, read_findings(store))
    whole = embedded_page(source)
    limit = len(whole.encode()) - 1
    page = embedded_page(source, limit)
    assert len(page.encode()) <= limit
    assert 'id="block-evaluator"' in page
    assert page.count('id="block-query-') < whole.count('id="block-query-')
