"""The reference runs: a user's commands, from the data to the last table.

They use only the command line and files: modules may move, what a user sees must not change.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from shutil import copyfile
from typing import Any

from reference.made_data import read_rows, write_gold, write_grid, write_item_gold, write_rows
from reference.old_files import keep_old, restore_old
from reference.session import Session, run_command
from rocketeval.cli.stages import STAGES

METHODS = (
    "checklist,checklist+hard,fixed,sequential,all_yes,all_no,multi_item,direct,reference,cot,"
    "generic,criterion:criterion=fluency,rubric:criterion=fluency,perplexity"
)
"""All grading methods except the one that needs another run's text."""
GRID_METHODS = "checklist,checklist+hard,checklist+extra_trees:trees=5"


def quickstart(session: Session) -> None:
    """Run every verb and every method on the packaged example."""
    session.say("init", "demo")
    config = session.home / "demo" / "rocketeval.yaml"
    lines = config.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if "base_url:" not in line and "api_key_env:" not in line]
    text = "\n".join(kept).replace("model: your-judge-model", "model: s\n  engine: scripted")
    config.write_text(f"{text}\nranking: {{bootstrap: 100}}\n", encoding="utf-8")
    path = "demo/rocketeval.yaml"
    session.both("plan", path, "--rate", "50")
    session.say("plan", path, "--offline", "--json")
    session.say("run", path, "--dry-run")
    session.say("run", path)
    session.keep("demo/runs/quickstart")
    session.say("run", path, "--json")
    for words in ("score", "rank", "audit", "explain", "lint", "report", "labels estimate"):
        session.both(*_verb(words), path)
    session.both("compare", "careful", "broken", path, "--fail-if", "never")
    session.both("explain", path, "--candidate", "careful")
    session.both("explain", path, "--query", "why-seasons")
    session.both("labels", "next", path, "--candidate", "careful", "--queries", "5")
    session.export_all("demo/runs/quickstart")
    session.say("audit", path, "--methods", METHODS)
    # The paper's own files, as exported, are also a benchmark.
    exported = {"kind": "rocketeval", "path": "exports/quickstart/rocketeval"}
    session.say("run", _config(session, "paper", benchmark=exported))
    session.keep("runs/paper")
    session.say(*_verb("report"), path)
    session.keep("demo/runs/quickstart")


def grid(session: Session) -> None:
    """Run a few hundred responses with all kinds of reference data, before and after judging."""
    _grid(session, 8, 30)
    prices = {"prices": "prices.yaml"}
    text = "models: {judge-one: {prompt: 2, cached: 0.5, completion: 4, currency: EUR}}\n"
    (session.home / "prices.yaml").write_text(text)
    config = _config(session, "grid", **prices)
    _config(session, "other", judge={"engine": "scripted", "model": "judge-two"})
    session.both("plan", config, "--rate", "100")
    session.both("plan", config, "--rate", "100", "--cluster", "--hours", "6", "--seed", "1")
    session.say("run", config, "--dry-run", "--json")
    session.say(*_verb("checklist"), config)
    session.say(*_verb("checklist"), config, "--json")
    run_command(session.home, ("checklist", config, "--out", "sheet.csv"))
    session.say(*_verb("grade"), config, "--json")
    session.both("run", config)
    session.keep("runs/grid")
    session.say("run", "other.yaml", "--quiet")
    for words in ("score", "rank", "audit", "explain", "lint", "report"):
        session.both(*_verb(words), config)
    session.both("compare", "birch", "dune", config, "--min-effect", "0.5", "--fail-if", "never")
    session.both("compare", "elm", "birch", config)
    session.both("labels", "estimate", config)
    session.both("labels", "estimate", config, "--candidate", "birch", "--against", "dune")
    session.both("labels", "next", config, "--top", "2", "--queries", "7", "--by-category")
    wanted = ("--candidate", "birch", "--out", "wanted.jsonl", "--force")
    session.both("labels", "next", config, *wanted)
    for candidate in ("birch", "=cedar"):
        session.both("explain", config, "--candidate", candidate)
    for query in ("q03", "q05"):
        session.both("explain", config, "--query", query)
    session.say("lint", config, "--query", "q04", "--strict")
    session.both("audit", config, "--against", "runs/other")
    write_item_gold(session.home / "item_gold.jsonl", _answers(session.home, "grid"))
    session.both("audit", config, "--reference-answers", "item_gold.jsonl")
    session.both("audit", config, "--methods", GRID_METHODS)
    session.both("audit", config, "--scorers", "mean,isotonic")
    session.say(*_verb("report"), config)
    session.export_all("runs/grid", whole=False)
    session.keep("runs/grid")
    for name in ("sheet.csv", "wanted.jsonl"):
        session.keep_file(name)
    session.both("audit", "--criteria", "--grades")
    session.both("doctor", config, "--quick")


def learned(session: Session) -> None:
    """Run the scorers that learn from labels and votes."""
    _grid(session, 8, 12)
    scorers: dict[str, dict[str, Any]] = {
        "trees": {"kind": "extra_trees", "options": {"trees": 5, "min_labels": 3}},
        "forest": {"kind": "random_forest", "options": {"trees": 5, "min_labels": 3}},
        "ridge": {"kind": "pooled_ridge", "fit_on": ["acme/atlas", "birch", "dune", "elm"]},
        "isotonic": {"kind": "isotonic", "hold_out": 0.2, "folds": 3},
        "logistic": {"kind": "pooled_logistic", "learn_from": "votes", "folds": 2},
        "select": {"kind": "select", "options": {"among": ["mean", "pooled_ridge"]}},
        "hard": {"kind": "hard", "missing": "drop"},
    }
    for name, scorer in scorers.items():
        config = _config(session, name, scorer=scorer)
        session.say("run", config)
        session.keep(f"runs/{name}")
    session.say(*_verb("score"), "trees.yaml", "--json")
    session.both("audit", "trees.yaml")
    session.both("explain", "trees.yaml", "--query", "q03")
    session.say("audit", "trees.yaml", "--scorers", "mean,isotonic,pooled_ridge", "--json")
    session.say("audit", "logistic.yaml", "--scorers", "mean,pooled_logistic")
    session.export_all("runs/trees", whole=False)
    # A scorer fitted in one run scores another.
    fitted = {"kind": "pooled_ridge", "fitted": "runs/ridge/scorer.npz"}
    session.say("run", _config(session, "reused", scorer=fitted), "--json")
    session.keep("runs/reused")


def dimension(session: Session) -> None:
    """Run one checklist for all queries, from seeds only, with groups; and an author's steps."""
    write_grid(session.home / "benchmark", 4, 10, checklists=False)
    options = {"file": "summarization", "dimensions": ["coherence", "fluency"], "steps": []}
    seeds = _config(session, "seeds", author={"kind": "dimension", "options": options})
    session.both("plan", seeds, "--rate", "10")
    session.both(*_verb("checklist"), seeds)
    session.say("run", seeds)
    session.both("explain", seeds)
    session.both("explain", seeds, "--candidate", "birch")
    session.both("explain", seeds, "--query", "q03")
    session.both("lint", seeds)
    session.export_all("runs/seeds")
    session.keep("runs/seeds")
    together = {"method": {"kind": "multi_item"}, "scorer": {"kind": "hard"}}
    author = {"kind": "dimension", "options": {**options, "dimensions": ["fluency"]}}
    session.say("run", _config(session, "together", author=author, **together), "--json")
    session.keep("runs/together")
    _author_writes(session)


def _author_writes(session: Session) -> None:
    """Run an author with recorded texts: its steps, and checklists for each query."""
    said = "1. Is the response one whole?\n2. Does each part lead on?\n3. Does it end well?"
    engine = {"engine": "scripted", "model": "author", "options": {"text": said}}
    price = {"prompt": 1, "completion": 2, "currency": "EUR"}
    options = {"file": "dialogue", "dimensions": ["coherence"], "steps": ["diversify", "elaborate"]}
    author = {"kind": "dimension", "engine": engine, "price": price, "options": options}
    session.both(*_verb("checklist"), _config(session, "steps", author=author))
    session.keep("runs/steps")
    each = _config(session, "instance", author={"kind": "instance", "engine": engine})
    session.say("run", each)
    session.keep("runs/instance")
    # Exported checklists as the author of another run.
    session.say(*_verb("checklist"), each, "--json")
    run_command(session.home, ("checklist", each, "--out", "sheet.yaml"))
    session.keep_file("sheet.yaml")
    edited = {"kind": "file", "options": {"file": "sheet.yaml"}}
    session.say("run", _config(session, "edited", author=edited), "--json")
    session.keep("runs/edited")


def ensemble(session: Session) -> None:
    """Run three judges, one of which saw fewer queries, in one ranking."""
    _grid(session, 6, 15)
    for name in ("first", "second", "third"):
        engine = {"engine": "scripted", "model": name}
        session.say("run", _config(session, name, judge=engine), "--quiet")
    session.say("run", "third.yaml", "--limit", "12", "--quiet")
    session.both("ensemble", "runs/first", "second.yaml", "runs/third", "--out", "all")
    session.keep("all")
    short = ("runs/first", "runs/third-first-12")
    session.both("ensemble", *short, "--out", "short", "--missing", "skip")
    session.keep("short")
    session.both("audit", "first.yaml", "--against", "runs/second", "--against", "runs/third")
    session.keep("runs/first")


def gaps(session: Session) -> None:
    """Run with absent, empty and unjudged responses and unreadable answers."""
    _grid(session, 5, 12)
    benchmark = session.home / "benchmark"
    rows = [
        row for number, row in enumerate(read_rows(benchmark / "responses.jsonl")) if number % 9
    ]
    rows = [{**row, "text": ""} if number % 13 == 5 else row for number, row in enumerate(rows)]
    write_rows(benchmark / "responses.jsonl", rows)
    lists = read_rows(benchmark / "checklists.jsonl")
    write_rows(benchmark / "checklists.jsonl", lists[:-2])
    failing = {"engine": "scripted", "model": "judge-one", "options": {"fail_on": "free of rep"}}
    config = _config(session, "failing", judge=failing, cache=None)
    session.both("plan", config, "--rate", "10")
    session.say("run", config)
    session.keep("runs/failing")
    for words in ("grade", "score", "rank", "audit", "explain", "lint", "report"):
        session.both(*_verb(words), config)
    session.both("explain", config, "--query", "q05")
    session.both("explain", config, "--candidate", "dune")
    session.both("compare", "birch", "dune", config, "--fail-if", "never")
    session.export_all("runs/failing")
    said = "5. Is the response polite?\n6. DROP"
    author = {"engine": {"engine": "scripted", "model": "author", "options": {"text": said}}}
    fixing = _config(session, "failing", judge=failing, cache=None, author=author)
    session.say("lint", fixing, "--fix", "fixed.yaml")
    session.say("lint", fixing, "--fix", "fixed.csv", "--json")
    for name in ("fixed.yaml", "fixed.csv"):
        session.keep_file(name)
    # The judge works again: only what is missing is asked.
    session.say("run", _config(session, "failing", cache=None), "--json")
    session.keep("runs/failing")
    text = "1. Yes\n2. No\n3. Perhaps\n4. Yes"
    mixed = {"engine": "scripted", "model": "writer", "options": {"text": text}}
    partial = {"judge": mixed, "method": {"kind": "multi_item"}}
    for missing in ("skip", "drop"):
        name = f"partial-{missing}"
        session.say("run", _config(session, name, **partial, scorer={"missing": missing}))
        session.keep(f"runs/{name}")


def evolved(session: Session) -> None:
    """Run evaluators that learn from votes with a recorded optimizer, and judge with them."""
    _grid(session, 4, 16, share=1.0)
    price = {"prompt": 1, "completion": 2, "currency": "EUR"}
    section = {**_evolve_section(session), "price": price}
    judge = {"engine": "scripted", "model": "judge-one", "price": price}
    config = _config(session, "evolve", judge=judge, evolve=section)
    session.say("evolve", config)
    session.keep("runs/evolve")
    _judge_with(session, "runs/evolve/evaluator.npz")
    from_labels = {**section, "gold": "labels", "answers": "choice", "rounds": 0, "experts": [1]}
    session.say("evolve", _config(session, "labels", judge=judge, evolve=from_labels))
    session.keep("runs/labels")
    session.say("run", "labels.yaml", "--evaluator", "runs/labels/evaluator.npz", "--json")
    session.keep("runs/labels")


def _evolve_section(session: Session) -> dict[str, Any]:
    """Write seeds and the optimizer's recorded texts; return the config section."""
    write_rows(session.home / "optimizer.jsonl", OPTIMIZER_WRITES)
    (session.home / "seeds.yaml").write_text(SEEDS, encoding="utf-8")
    return {
        "seeds": ["seeds.yaml"],
        "optimizer": {
            "engine": "scripted",
            "model": "big",
            "options": {"texts": "optimizer.jsonl"},
        },
        "rounds": 1,
        "folds": 2,
        "experts": [2],
        "attempts": 1,
        "batches": 2,
        "batch": 3,
    }


def _judge_with(session: Session, evaluator: str) -> None:
    """Judge with an evaluator in a separate run."""
    config = _config(session, "evaluated")
    session.both("plan", config, "--evaluator", evaluator, "--rate", "10")
    session.say("run", config, "--evaluator", evaluator)
    session.keep("runs/evaluated")
    session.say("run", config, "--evaluator", evaluator, "--json")
    session.both("explain", config, "--query", "q03")
    session.export_all("runs/evaluated", whole=False)


def old(session: Session) -> None:
    """Read files of an earlier version: its cache answers everything, its runs are readable."""
    restore_old(session.home)
    write_old_configs(session, "again")
    session.say("run", "again.yaml", "--json")
    session.say("run", "again-author.yaml", "--json")
    session.say("evolve", "again-evolve.yaml", "--json")
    session.say("run", "again-judged.yaml", "--json")
    for name in ("again", "again-author", "again-evolve", "again-judged"):
        session.keep(f"runs/{name}")
    # Read the old files before anything is written again.
    session.export_all("runs/old")
    write_old_configs(session, "old")
    session.both("compare", "birch", "dune", "old.yaml", "--fail-if", "never")
    session.both("explain", "old.yaml", "--query", "q03")
    session.both("explain", "old.yaml", "--candidate", "birch")
    for words in ("lint", "labels estimate", "rank", "audit", "explain", "report", "score"):
        session.both(*_verb(words), "old.yaml")
    session.both("ensemble", "runs/old", "runs/again", "--out", "both")
    # An old scorer scores a new run.
    fitted = {"kind": "pooled_ridge", "fitted": "runs/old/scorer.npz"}
    session.say("run", _config(session, "fitted", scorer=fitted), "--json")
    session.keep("runs/fitted")


def write_old_configs(session: Session, name: str) -> None:
    """Write the configs of four runs that share a cache; the last judges with an evaluator."""
    scorer = {"kind": "pooled_ridge", "hold_out": 0.2}
    _config(session, name, scorer=scorer)
    said = "1. Is the response one whole?\n2. Does each part lead on?\n3. Does it end well?"
    engine = {"engine": "scripted", "model": "author", "options": {"text": said}}
    _config(session, f"{name}-author", author={"kind": "instance", "engine": engine})
    _config(session, f"{name}-evolve", evolve=_evolve_section(session))
    _config(session, f"{name}-judged", evaluator="evaluator.npz")


def make_old(home: Path) -> None:
    """Make the files that `old` reads: a cache, a run, an evaluator and their benchmark."""
    session = Session(home)
    _grid(session, 5, 10, share=0.6)
    write_old_configs(session, "old")
    for args in (("run", "old.yaml"), ("run", "old-author.yaml"), ("evolve", "old-evolve.yaml")):
        session.say(*args)
    copyfile(home / "runs" / "old-evolve" / "evaluator.npz", home / "evaluator.npz")
    session.say("run", "old-judged.yaml")
    keep_old(session.home)


OPTIMIZER_WRITES = (
    {
        "when": "Request: round 1, failures, batch 1",
        "text": "# Analysis\nLength was overlooked.\n# About responses\n"
        "1. Does the response keep itself brief?\n2. Does the response name its sources?\n"
        "# About queries\n1. Does the query ask for a decision?\n",
    },
    {
        "when": "Request: round 1, broaden",
        "text": "1. Is the response free of spelling mistakes?\n2. Is the response kind?\n",
    },
    {
        "when": "Request: round 1, deepen",
        "text": "1. DROP\n2. Is each claim borne out?\n3. DROP\n4. DROP",
    },
    {
        "when": "Request: round 1, routing",
        "text": "1. DROP\n2. Does the query set a limit?\n3. DROP\n4. DROP\n5. DROP",
    },
)
"""The recorded optimizer has no answer to the second batch of mistakes."""
SEEDS = """\
perspectives:
  - text: Is the response a good answer to the query as a whole?
    origin: transfer
  - text: Is the response polite?
  - text: Is everything that the response states correct?
  - text: Is the response clear and easy to follow?
  - text: Does the query set a form for the answer?
    kind: query
  - text: Does the query name a thing?
    kind: query
"""

RUNS: dict[str, Callable[[Session], None]] = {
    "quickstart": quickstart,
    "grid": grid,
    "learned": learned,
    "dimension": dimension,
    "evolved": evolved,
    "ensemble": ensemble,
    "gaps": gaps,
    "old": old,
}
"""Every reference run by name."""


def seen_in(name: str, home: Path) -> dict[str, Any]:
    """Make a reference run in an empty folder and return everything that a user sees."""
    # The report contains the name of the benchmark folder.
    (home / "home").mkdir()
    session = Session(home / "home")
    RUNS[name](session)
    return session.seen


def _grid(session: Session, candidates: int, queries: int, *, share: float = 0.35) -> None:
    """Write a benchmark, and reference data that depends on a judge's answers."""
    benchmark = session.home / "benchmark"
    write_grid(benchmark, candidates, queries)
    run_command(session.home, (*_verb("grade"), _config(session, "probe", cache=None), "--quiet"))
    run_command(session.home, (*_verb("score"), "probe.yaml", "--quiet"))
    write_gold(benchmark, _answers(session.home, "probe"), share=share)


def _verb(words: str) -> tuple[str, ...]:
    """Return the words of a verb; a stage is `run --only STAGE`."""
    return ("run", "--only", words) if words in STAGES else tuple(words.split())


def _answers(home: Path, run: str) -> list[dict[str, Any]]:
    """Return the judge's answers in a run."""
    args = ("export", f"runs/{run}", "--to", "jsonl", "--what", "judgments")
    return [json.loads(line) for line in run_command(home, args)[1].splitlines()]


def _config(session: Session, name: str, **changes: Any) -> str:
    """Write a config next to the benchmark (JSON is valid YAML); return its name."""
    content = {
        "name": name,
        "benchmark": {"path": "benchmark"},
        "judge": {"engine": "scripted", "model": "judge-one"},
        "ranking": {"bootstrap": 100},
        **changes,
    }
    (session.home / f"{name}.yaml").write_text(json.dumps(content), encoding="utf-8")
    return f"{name}.yaml"
