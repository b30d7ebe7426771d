"""Comparison of grading methods in one run: names, folders, cost and failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocketeval.audit.methods import MethodComparison
from rocketeval.audit.stage import method_config, parse_variant, parse_variants, variant_scorer
from rocketeval.config import RunConfig, load_config
from rocketeval.engines.base import Likelihood
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import (
    BenchmarkError,
    BudgetSpent,
    ConfigError,
    EngineRefused,
    RocketEvalError,
    RunMismatch,
    Stopped,
)
from rocketeval.grading.loop import CONTACT_CALLS, CONTACT_TOKENS
from rocketeval.grading.methods import DIGITS, YES_NO
from rocketeval.observer import Observer
from rocketeval.pipeline import Run
from rocketeval.records import Judgment
from rocketeval.store.run import RunStore
from support.make import QUERIES, as_json, make_config, write_jsonl
from support.metered import SCORED, MeteredEngine

ASKING = ("checklist", "sequential", "all_yes", "fixed", "multi_item", "cot", "perplexity")
"""One method of every way to ask that answers with yes and no, or writes."""
CONTACT = CONTACT_CALLS * (CONTACT_TOKENS + 1) + CONTACT_CALLS
"""Tokens that are kept back for finding out how to ask."""
PRICE = {"prompt": 1e6, "completion": 1e6}
"""One for a token."""


def priced(tmp_path: Path, kind: str, **changes: Any) -> RunConfig:
    """Return a run by one method, with a price."""
    judge = {"engine": "scripted", "model": "scripted", "price": PRICE, "concurrency": 1}
    options = {"max_tokens": 40} if kind in ("cot", "multi_item") else {}
    return make_config(tmp_path, judge=judge, method={"kind": kind, "options": options}, **changes)


def test_variant_is_a_method_and_a_scorer() -> None:
    """Options follow colons; spaces do not matter; the default scorer is the mean."""
    variant = parse_variant(" rubric : criterion = fluency + extra_trees:weight=none ")
    assert variant.name == "rubric : criterion = fluency + extra_trees:weight=none"
    assert (variant.method.kind, variant.method.options) == ("rubric", {"criterion": "fluency"})
    assert (variant.scorer.kind, variant.scorer.options) == ("extra_trees", {"weight": "none"})
    assert parse_variant("direct").scorer.kind == "mean"


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([], "No method is named"),
        (["direct", "direct"], "'direct' is named twice"),
        (["dirct"], "There is no grading method 'dirct'"),
        ([""], "There is no grading method ''"),
        (["rubric:fluency"], "'fluency' in the method 'rubric:fluency' is not an option"),
        (["rubric:=fluency"], "is not an option"),
        (["cot:max_tokens=1:max_tokens=2"], "is set twice"),
    ],
)
def test_invalid_variant_is_refused(texts: list[str], expected: str) -> None:
    """The error has the invalid words."""
    with pytest.raises(ConfigError) as refused:
        parse_variants(texts)
    assert expected in str(refused.value)


@pytest.mark.parametrize("text", ["checklist+", "checklist+meen", "checklist+hard:x=1"])
async def test_unknown_scorer_is_refused_before_any_request(tmp_path: Path, text: str) -> None:
    """Grading costs money, so all checks come first."""
    engine = ScriptedEngine()
    with pytest.raises(ConfigError):
        await Run(make_config(tmp_path), judge=engine).compare_methods(["fixed", text])
    assert engine.items_asked == 0


async def test_scorer_without_training_data_is_refused_before_any_request(tmp_path: Path) -> None:
    """The run has votes, but no labels to learn from."""
    engine = ScriptedEngine()
    run = Run(make_config(tmp_path), judge=engine)
    with pytest.raises(RocketEvalError, match="label"):
        await run.compare_methods(["fixed", "checklist+extra_trees"])
    assert engine.items_asked == 0


def test_the_runs_own_method_uses_the_run_itself(tmp_path: Path) -> None:
    """By name, or with the same options in any notation."""
    method = {"kind": "cot", "options": {"max_tokens": 60}}
    config = make_config(tmp_path, method=method)
    for text in ("cot", "cot:max_tokens=60", "cot+hard"):
        assert method_config(config, parse_variant(text)).run_path == config.run_path
    assert method_config(config, parse_variant("cot:max_tokens=61")).run_path != config.run_path


def test_every_other_method_has_its_own_folder(tmp_path: Path) -> None:
    """Different options that look alike in a file name get different folders."""
    config = make_config(tmp_path)
    texts = ["direct", "rubric:criterion=fluency", "rubric:criterion=relevance", "cot"]
    texts += [
        "cot:max_tokens=9",
        "analysis:run=a/b",
        "analysis:run=a-b",
        f"analysis:run={'x' * 300}",
    ]
    folders = [method_config(config, parse_variant(text)).run_path for text in texts]
    assert len(set(folders)) == len(texts)
    assert {folder.parent for folder in folders} == {config.run_path / "methods"}
    names = [folder.name for folder in folders]
    assert names[:2] == ["direct", "rubric_criterion=fluency"]
    assert all(len(name) <= 100 for name in names)


def test_method_gets_its_own_labels_and_template(tmp_path: Path) -> None:
    """The user's template is kept only if it replaces the same prompt."""
    template = tmp_path / "own.txt"
    template.write_text("{{history}}{{query}}{{response}}{{item}} Answer:")
    judge = {"engine": "scripted", "model": "scripted", "template": str(template)}
    config = make_config(tmp_path, judge=judge)
    direct = Run(method_config(config, parse_variant("direct"))).config
    assert (direct.judge.labels, direct.judge.template) == (DIGITS, None)
    assert method_config(config, parse_variant("fixed")).judge.template == template
    own = make_config(tmp_path, judge=judge, method={"kind": "direct"})
    assert method_config(own, parse_variant("reference")).judge.template == template
    back = method_config(Run(own).config, parse_variant("checklist"))
    assert (back.judge.labels, back.judge.template) == (YES_NO, None)


def test_variant_scorer_keeps_the_runs_other_settings(tmp_path: Path) -> None:
    """Scale and seed are the run's; options only for the same kind."""
    scorer = {"kind": "extra_trees", "scale": [0, 5], "seed": 3, "options": {"trees": 7}}
    own = make_config(tmp_path, scorer=scorer).scorer
    same = variant_scorer(own, parse_variant("checklist+extra_trees"))
    other = variant_scorer(own, parse_variant("checklist+hard"))
    assert (same.options, same.scale, same.seed) == ({"trees": 7}, (0, 5), 3)
    assert (other.kind, other.options, other.scale) == ("hard", {}, (0, 5))


async def test_methods_are_compared_and_judgments_reused(tmp_path: Path) -> None:
    """Two scorers of one method share its judgments; a second comparison sends no requests."""
    methods = ["checklist", "checklist+hard", "fixed", "sequential", "perplexity"]
    first, second = ScriptedEngine(), ScriptedEngine()
    config = make_config(tmp_path)
    found = await Run(config, judge=first).compare_methods(methods)
    assert [row.name for row in found.rows][:5] == methods
    assert found.responses == 6
    assert first.items_asked == 12 + 36 + 12
    assert {path.name for path in (config.run_path / "methods").iterdir()} == {
        "fixed",
        "sequential",
        "perplexity",
    }
    saved = json.loads((config.run_path / "methods.json").read_text())
    assert saved["rows"][0]["name"] == "checklist"
    assert as_json(RunStore(config.run_path).read(MethodComparison)) == as_json(found)
    assert saved["advice"]["told"] == (found.advice.told if found.advice else None)
    again = await Run(config, judge=second).compare_methods(methods)
    assert second.items_asked == 0
    assert again == found


async def test_direct_run_can_be_compared_with_checklist(tmp_path: Path) -> None:
    """A direct run asks one question; the checklist method uses the author's items."""
    config = make_config(tmp_path, method={"kind": "direct"})
    await Run(config).compare_methods(["direct", "checklist"])
    inside = RunStore(config.run_path / "methods" / "checklist")
    assert {made.items for made in inside.inputs.checklists().values()} == {
        ("Is it right?", "Is it clear?")
    }
    assert len(RunStore(config.run_path).inputs.checklists()["sky"].items) == 1


@pytest.mark.parametrize("cache", [True, False])
async def test_checklists_are_written_once_for_all_methods(tmp_path: Path, cache: bool) -> None:
    """Also without a cache: methods are compared on the same checklists."""
    author = {"kind": "instance", "engine": {"engine": "scripted", "model": "author"}}
    changes: dict[str, Any] = {} if cache else {"cache": None}
    config = make_config(tmp_path, author=author, **changes)
    await Run(config).compare_methods(["checklist", "sequential"])
    journal = (tmp_path / "cache" if cache else config.run_path) / "authored.jsonl"
    assert journal.read_text().count('"key"') == len(QUERIES)
    manifest = json.loads((config.run_path / "methods/sequential/manifest.json").read_text())
    assert manifest["stages"]["checklist"]["reused"] == len(QUERIES)


async def test_given_engine_must_support_every_method(tmp_path: Path) -> None:
    """A yes/no engine cannot give digits; the error comes before any request."""
    engine = ScriptedEngine()
    with pytest.raises(ConfigError, match="'direct'"):
        await Run(make_config(tmp_path), judge=engine).compare_methods(["checklist", "direct"])
    assert engine.items_asked == 0


async def test_reference_method_needs_references(tmp_path: Path) -> None:
    """Without references, the method would equal direct."""
    run = Run(make_config(tmp_path, method={"kind": "reference"}))
    with pytest.raises(BenchmarkError, match="No query has a reference"):
        await run.to_judgments()
    rows = [{"id": q, "text": f"Why the {q}?", "reference": f"{q}."} for q in QUERIES]
    write_jsonl(tmp_path / "benchmark" / "queries.jsonl", rows)
    facts = await Run(make_config(tmp_path, method={"kind": "reference"})).to_judgments()
    assert facts.judged == 6


class Untelling(ScriptedEngine):
    """An engine that cannot compute the likelihood of a text."""

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        raise EngineRefused("This server tells nothing of prompts.", hint="Use another.")


async def test_unsupported_method_does_not_stop_the_others(tmp_path: Path) -> None:
    """It is excluded with the engine's error; the others are compared and kept."""
    config = make_config(tmp_path)
    engine = Untelling()
    methods = ["perplexity", "checklist", "fixed"]
    found = await Run(config, judge=engine).compare_methods(methods)
    assert [row.name for row in found.rows][:2] == ["checklist", "fixed"]
    (apart,) = found.apart
    assert (apart.name, apart.figures) == ("perplexity", None)
    assert apart.reason == "The judge cannot be used: This server tells nothing of prompts."
    assert json.loads((config.run_path / "methods.json").read_text())["apart"][0]["name"]
    able = ScriptedEngine()
    again = await Run(config, judge=able).compare_methods(methods)
    assert able.items_asked == 0
    assert not again.apart


async def test_no_supported_method_raises_the_reason(tmp_path: Path) -> None:
    """Nothing is left to compare."""
    with pytest.raises(EngineRefused, match="tells nothing of prompts"):
        await Run(make_config(tmp_path), judge=Untelling()).compare_methods(["perplexity"])


@pytest.mark.parametrize("kind", ASKING)
async def test_failures_are_counted_and_retried(tmp_path: Path, kind: str) -> None:
    """One failed response per method is missing, and the next run retries only that one."""
    config = priced(tmp_path, kind)
    failing = MeteredEngine(fail_on="left explains the sun")
    facts = await Run(config, judge=failing).to_judgments()
    assert (facts.judged, facts.failed, facts.unfinished) == (5, 1, 1)
    (failure,) = RunStore(config.run_path).failures()
    assert "scripted to fail" in failure.reason
    mended = MeteredEngine()
    facts = await Run(config, judge=mended).to_judgments()
    assert (facts.judged, facts.unfinished) == (1, 0)
    assert all("left explains the sun" in prompt for prompt in mended.prompts)
    assert not set(mended.prompts) & set(failing.prompts)


async def test_sequence_resumes_after_a_failure(tmp_path: Path) -> None:
    """The first item is known: it is shown in the prompt, not asked again."""
    config = priced(tmp_path, "sequential")
    with pytest.raises(EngineRefused, match="answered none of the first 6 responses"):
        await Run(config, judge=MeteredEngine(fail_on="Is it clear?")).to_judgments()
    rest = MeteredEngine()
    facts = await Run(config, judge=rest).to_judgments()
    assert (facts.judged, len(rest.prompts)) == (6, 6)
    assert all("Is it right?" in prompt and "Is it clear?" in prompt for prompt in rest.prompts)
    whole = MeteredEngine()
    other = priced(tmp_path, "sequential", name="whole", cache=None)
    await Run(other, judge=whole).to_judgments()
    assert set(rest.prompts) == {prompt for prompt in whole.prompts if "Is it clear?" in prompt}
    scores = [RunStore(path) for path in (config.run_path, other.run_path)]
    answers = [
        {row["key"]: row["p_yes"] for table in store.judgments() for row in table.to_pylist()}
        for store in scores
    ]
    assert answers[0] == answers[1]


@pytest.mark.parametrize("kind", ASKING)
async def test_max_cost_applies_to_all_methods(tmp_path: Path, kind: str) -> None:
    """Even with the most expensive judge; paid answers are kept, and the rest follows."""
    whole = MeteredEngine()
    await Run(priced(tmp_path, kind, name="free", cache=None), judge=whole).to_judgments()
    seen: list[str] = []
    for part in (0.4, 0.3):
        limit = CONTACT + part * whole.tokens
        engine = MeteredEngine()
        run = Run(priced(tmp_path, kind, max_cost=limit), judge=engine)
        with pytest.raises(BudgetSpent, match="responses are not judged"):
            await run.to_judgments()
        assert run.budget is not None
        assert engine.tokens == run.budget.spent <= limit - CONTACT
        assert engine.prompts
        seen += engine.prompts
    rest = MeteredEngine()
    await Run(priced(tmp_path, kind), judge=rest).to_judgments()
    assert sorted(seen + rest.prompts) == sorted(whole.prompts)


@pytest.mark.parametrize("kind", ["multi_item", "cot", "perplexity"])
async def test_failed_request_is_counted_in_the_cost(tmp_path: Path, kind: str) -> None:
    """It is counted once, and in full."""
    config = priced(tmp_path, kind, max_cost=1e9)
    run = Run(config, judge=MeteredEngine(fail_on="left explains the sun"))
    await run.to_judgments()
    paid = MeteredEngine()
    await Run(priced(tmp_path, kind, name="whole", cache=None), judge=paid).to_judgments()
    assert run.budget is not None
    assert run.budget.spent == paid.tokens


async def test_stopped_comparison_resumes(tmp_path: Path) -> None:
    """Stopped in the second method, it resumes there and sends nothing twice."""
    config = make_config(
        tmp_path, judge={"engine": "scripted", "model": "scripted", "concurrency": 1}
    )
    engine = MeteredEngine()
    run = Run(config, judge=engine)

    class StopLater(Observer):
        seen = 0

        def judged(self, judgment: Judgment) -> None:
            self.seen += 1
            if self.seen == 8:
                assert run.stoppable
                run.stop.set()

    run.observer = StopLater()
    methods = ["checklist", "cot", "sequential"]
    with pytest.raises(Stopped):
        await run.compare_methods(methods)
    assert len(engine.prompts) == 6 * 2 + 2
    assert not run.stoppable
    rest = MeteredEngine()
    found = await Run(config, judge=rest).compare_methods(methods)
    assert len(rest.prompts) == 4 + 6 * 2
    assert found.responses == 6


async def test_unreadable_methods_are_excluded(tmp_path: Path) -> None:
    """A judge that cannot write the requested format does not affect the others."""
    engine = ScriptedEngine(text=lambda _: "Lovely weather.")
    found = await Run(make_config(tmp_path), judge=engine).compare_methods(["cot", "checklist"])
    assert found.rows[0].name == "checklist"
    assert found.responses == 6
    (apart,) = found.apart
    assert apart.reason == "it scored only 0 of 6 responses"
    assert apart.figures is not None
    assert (apart.figures.unanswered, apart.figures.unscored) == (6, 6)


async def test_analysis_needs_a_cot_run(tmp_path: Path) -> None:
    """Written by one judge, read by another, and refused if missing."""
    writer = make_config(tmp_path, "writer", method={"kind": "cot"})
    await Run(writer, judge=ScriptedEngine(text=lambda _: SCORED)).to_judgments()
    config = make_config(tmp_path, "reader")
    methods = ["checklist", f"analysis:run={writer.run_path}"]
    found = await Run(config).compare_methods(methods)
    assert [row.name for row in found.rows][:2] == methods
    left = tmp_path / "benchmark" / "responses" / "left.jsonl"
    left.write_text(left.read_text().replace("left explains the sea", "something new"))
    found = await Run(config).compare_methods(methods)
    assert "no analysis of the response of 'left'" in found.apart[0].reason


async def test_reopened_run_keeps_its_author(tmp_path: Path) -> None:
    """A method with one question must not replace the checklist."""
    run = Run(make_config(tmp_path, method={"kind": "direct"}))
    await run.compare_methods(["direct", "generic"])
    for path in (run.store.path, run.store.path / "methods" / "generic"):
        again = Run(load_config(path / "run.yaml"))
        await again.compare_methods(["checklist"])
        (made,) = (path / "methods").glob("checklist")
        asked = RunStore(made).inputs.checklists()
        assert {checklist.author for checklist in asked.values()} == {"imported"}


async def test_scorer_with_too_little_data_has_a_note(tmp_path: Path) -> None:
    """Its scores are those of the mean."""
    labels = [
        {"query_id": query, "candidate": name, "value": 5}
        for query in QUERIES
        for name in ("left", "right")
    ]
    config = make_config(tmp_path)
    write_jsonl(config.benchmark.path / "labels.jsonl", labels)
    found = await Run(config).compare_methods(["checklist", "checklist+extra_trees"])
    notes = {row.name: row.note for row in found.rows}
    assert notes["checklist"] == ""
    assert "too little data" in notes["checklist+extra_trees"]


async def test_changed_method_under_the_same_name_is_refused(tmp_path: Path) -> None:
    """The error names the method, not a template hash."""
    await Run(make_config(tmp_path)).to_judgments()
    with pytest.raises(RunMismatch, match="prompt or grading method"):
        await Run(make_config(tmp_path, method={"kind": "direct"})).to_judgments()
