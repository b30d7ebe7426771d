"""The report tells which evolved evaluator judged, and nothing of one where none did."""

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


def test_the_sentence_says_what_judged_and_how_right_it_is() -> None:
    """Sizes, what it learned from, and its own figure with the interval, not a baseline's."""
    assert evaluator_in_words(described()) == (
        "An evolved evaluator decided here: 3 perspectives about the response, 1 about the query, "
        "2 experts, learned from 100 pairs of duels. "
        "Cross-validated accuracy: 74.0 % (72.0 % to 76.0 %)."
    )


def test_the_sentence_leaves_out_what_nobody_measured() -> None:
    """An evaluator of labels, without figures and bounds, of one expert."""
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
    assert evaluator_in_words(found).endswith(
        "1 expert, learned from 100 responses of duels. "
        "Cross-validated rank correlation: \N{MINUS SIGN}0.50."
    )
    found = replace(found, figures=(), provenance=replace(found.provenance, cases=None))
    assert evaluator_in_words(found).endswith("1 about the query, 1 expert.")


def test_without_an_evaluator_there_is_no_sentence_and_no_block() -> None:
    """The page of any other run is as it was."""
    assert (evaluator_in_words(None), evaluator_blocks(None)) == ("", {})


def test_the_block_has_the_names_of_the_contract() -> None:
    """What is not there is null: a page that asks for it finds it."""
    found = replace(described(), run=None)
    block = block_of(found)
    assert sorted(block) == sorted(contract_names()["EvaluatorBlock"])
    assert block["run"] is None
    assert block["perspectives"] == encode(found.perspectives)


def test_what_is_no_number_is_refused_by_name() -> None:
    """A page with NaN in it could not be read at all."""
    found = described()
    one, other = found.experts
    found = replace(found, experts=(one, replace(other, attention=(math.nan, 0.75, 0.0))))
    with pytest.raises(RocketEvalError, match="nan for the evaluator's experts, attention"):
        evaluator_blocks(found)


def test_a_run_with_an_evaluator_carries_it_on_its_page(tmp_path: Path) -> None:
    """As a block, with its sentence in the head and its file among the others."""
    config = make_config(tmp_path)
    store = RunStore(rocketeval.run(config, judge=ScriptedEngine(p_yes)).path)
    bare = gather(store, config, read_findings(store))
    assert (bare.head.evaluator, bare.block("evaluator")) == ("", None)
    assert 'id="block-evaluator"' not in embedded_page(bare)
    store.save(described())
    source = gather(store, config, read_findings(store))
    page = embedded_page(source)
    assert source.head.evaluator.startswith("An evolved evaluator decided here: 3 perspectives")
    assert "evaluator.json" in [file.name for file in source.head.files]
    assert len(re.findall('id="block-evaluator"', page)) == 1
    assert HOSTILE not in page
    packed = source.block("evaluator")
    assert packed is not None
    assert json.loads(gzip.decompress(packed))["perspectives"][1]["text"] == HOSTILE


def test_the_block_takes_its_room_from_the_texts(tmp_path: Path) -> None:
    """A large evaluator leaves less for responses; the page does not grow over its limit."""
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
