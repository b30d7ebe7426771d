"""RocketEval: ranks LLM outputs with checklists and a small judge model.

Rank what a data frame holds
----------------------------
A row is a response: the question, who answered, and the text. Columns are recognized by name, and
a table may also have one column per candidate. pandas, polars, pyarrow, a list of dicts, a Hugging
Face dataset and the path of a file all work.

    import rocketeval

    result = rocketeval.evaluate(
        frame,                                     # columns: question, model, output
        judge="qwen2.5-3b-instruct",               # a small model on your own server
        base_url="http://127.0.0.1:8000/v1",
        author="gpt-4o",                           # writes a checklist per question, once
    )
    result                                         # in a notebook: the ranking as a table
    result.verdict                                 # the conclusion in a sentence

Without an author, give the checklist yourself: checklists=["Is it correct?", "Is it short?"], one
list per question as a dict, or "general" for seven packaged items.

Look closer
-----------
    for row in result.ranking:                     # records, best first
        print(row.rank, row.candidate, row.mean_score)
    result.scores.to_pandas()                      # one row per response
    result.answers.to_polars()                     # one row per item and response
    result.compare("new", "old")                   # is the difference significant?
    result.audit()                                 # agreement with votes or labels in the data
    result.show()                                  # the report, with every answer

Keep a run
----------
With name="demo", the run is kept in runs/demo. A second call with the same name continues it and
asks the judge only about what is new. `rocketeval view runs` shows it in a browser.

Ask a judge directly
--------------------
    judge = rocketeval.Judge("qwen2.5-3b-instruct", "http://127.0.0.1:8000/v1")
    answers = await judge.answers("1 + 1?", "2", ["Is it correct?"])
    answers[0].p_yes                               # probability of yes

A judge can be passed to `evaluate`, too. In asynchronous code, await `evaluate_async`.

Score one response
------------------
    grader = rocketeval.Grader(judge, answers="answers.jsonl")
    graded = grader.grade("1 + 1?", "2", ["Is it correct?", "Is it short?"])
    graded.score, graded.failed                    # from 0 to 1, and the items that failed

Answers in the file are reused. Tests (a pytest plugin), scorers for other frameworks and rewards
for reinforcement learning use the same grader; see docs/howto/integrations.md.

Run a config
------------
    outcome = rocketeval.run("rocketeval.yaml")    # what the command `rocketeval run` does
    for row in outcome.ranking.rows:
        print(row.rank, row.candidate, row.rating)

Errors derive from RocketEvalError: the message says what happened, `hint` what to do next.
Names are imported on first use, which keeps `import rocketeval` fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rocketeval._version import __version__

if TYPE_CHECKING:
    from rocketeval.api import Judge, arun, run
    from rocketeval.config import RunConfig, load_config, parse_config
    from rocketeval.engines.scripted import ScriptedEngine
    from rocketeval.errors import RocketEvalError
    from rocketeval.evaluation import evaluate, evaluate_async
    from rocketeval.grader import Grader, ResponseGrade
    from rocketeval.observer import Observer
    from rocketeval.pipeline import Outcome, Run
    from rocketeval.records import (
        Answer,
        Checklist,
        Judgment,
        Label,
        Query,
        Rating,
        Response,
        Turn,
        Vote,
    )
    from rocketeval.results import Evaluation

_HOME = {
    "Answer": "records",
    "Checklist": "records",
    "Evaluation": "results",
    "ResponseGrade": "grader",
    "Grader": "grader",
    "Judge": "api",
    "Judgment": "records",
    "Label": "records",
    "Observer": "observer",
    "Outcome": "pipeline",
    "Query": "records",
    "Rating": "records",
    "Response": "records",
    "RocketEvalError": "errors",
    "Run": "pipeline",
    "RunConfig": "config",
    "ScriptedEngine": "engines.scripted",
    "Turn": "records",
    "Vote": "records",
    "arun": "api",
    "evaluate": "evaluation",
    "evaluate_async": "evaluation",
    "load_config": "config",
    "parse_config": "config",
    "run": "api",
}

__all__ = [
    "Answer",
    "Checklist",
    "Evaluation",
    "Grader",
    "Judge",
    "Judgment",
    "Label",
    "Observer",
    "Outcome",
    "Query",
    "Rating",
    "Response",
    "ResponseGrade",
    "RocketEvalError",
    "Run",
    "RunConfig",
    "ScriptedEngine",
    "Turn",
    "Vote",
    "__version__",
    "arun",
    "evaluate",
    "evaluate_async",
    "load_config",
    "parse_config",
    "run",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'rocketeval' has no attribute {name!r}")
    value = getattr(import_module(f"rocketeval.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
