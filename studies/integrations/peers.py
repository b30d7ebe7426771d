"""Every scorer for another framework, run by that framework, with a judge of known answers.

    python studies/integrations/peers.py inspect|deepeval|mlflow|ragas|promptfoo

Run it in an environment that has the framework and RocketEval; it prints the version and what the
framework reports. `recorded/peers.txt` has the output of all five.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from word_judge import MODEL, serving

QUERY = "Can I get a refund?"
GOOD = "You can return it within 30 days. Thanks for asking."
BAD = "Look at the website."
ITEMS = ["Does the response mention 30 days?", "Is the response polite?"]
EXPECTED = {GOOD: (0.95 + 0.9) / 2, BAD: (0.04 + 0.3) / 2}
"""Scores that the rules of word_judge.py imply."""


def run_inspect(folder: Path, base_url: str) -> dict[str, float]:
    """Make a log with Inspect's mock model, then score it with `inspect score`."""
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import Sample
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.solver import generate

    samples = [
        Sample(id="good", input=QUERY, target="30 days", metadata={"checklist": ITEMS}),
        Sample(id="bad", input=f"{QUERY} Be vague.", metadata={"checklist": ITEMS}),
    ]

    def reply(messages: Any, *_: object) -> ModelOutput:
        text = BAD if "vague" in messages[-1].text else GOOD
        output = ModelOutput.from_content("mockllm/model", text)
        # Without a usage, Inspect would download a tokenizer to count.
        output.usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)
        return output

    model = get_model("mockllm/model", custom_outputs=reply)
    task = Task(dataset=samples, solver=generate())
    (log,) = evaluate(task, model=model, log_dir=str(folder), display="none")
    if log.status != "success":
        raise SystemExit(f"The log has the status {log.status}.")
    environment = {
        **os.environ,
        "ROCKETEVAL_JUDGE": MODEL,
        "ROCKETEVAL_BASE_URL": base_url,
        "ROCKETEVAL_ANSWERS": str(folder / "answers.jsonl"),
    }
    scored = folder / "scored.eval"
    command = [str(Path(sys.executable).with_name("inspect")), "score", log.location]
    command += ["--scorer", "rocketeval/checklist", "--overwrite", "--output-file"]
    command += [str(scored)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)
    found = read_eval_log(str(scored))
    assert found.results is not None
    assert found.samples is not None
    metrics = {each.name: each.value for each in found.results.scores[0].metrics.values()}
    print(f"inspect score: {found.results.scores[0].name} {metrics}")
    for sample in found.samples:
        print((sample.scores or {})["checklist"].explanation)
    return {
        sample.output.completion: float((sample.scores or {})["checklist"].as_float())
        for sample in found.samples
    }


def run_deepeval(folder: Path, base_url: str) -> dict[str, float]:
    """Measure two test cases, and let `assert_test` fail on the bad one."""
    from deepeval import assert_test
    from deepeval.test_case import LLMTestCase

    from rocketeval.integrations.deepeval import ChecklistMetric

    metric = ChecklistMetric(
        ITEMS, judge=MODEL, base_url=base_url, answers=str(folder / "answers.jsonl")
    )
    cases = {text: LLMTestCase(input=QUERY, actual_output=text) for text in (GOOD, BAD)}
    assert_test(cases[GOOD], [metric])
    try:
        assert_test(cases[BAD], [metric])
    except AssertionError as error:
        print(f"assert_test: {str(error)[:200]}")
    else:
        raise SystemExit("assert_test did not fail on the bad response.")
    found = {text: metric.measure(case) for text, case in cases.items()}
    print(f"reason: {metric.reason}")
    return found


def run_mlflow(folder: Path, base_url: str) -> dict[str, float]:
    """Evaluate two rows with `mlflow.genai.evaluate` and read the assessments of the traces."""
    import mlflow

    from rocketeval.integrations.mlflow import ChecklistScorer

    mlflow.set_tracking_uri(f"sqlite:///{folder / 'mlflow.db'}")
    mlflow.set_experiment("rocketeval")
    scorer = ChecklistScorer(judge=MODEL, base_url=base_url, answers=str(folder / "answers.jsonl"))
    rows = [
        {"inputs": {"question": QUERY}, "outputs": text, "expectations": {"checklist": ITEMS}}
        for text in (GOOD, BAD)
    ]
    found = mlflow.genai.evaluate(data=rows, scorers=[scorer])
    print(f"metrics: {found.metrics}")
    scores = {}
    for trace in mlflow.search_traces(run_id=found.run_id, return_type="list"):
        (feedback,) = [each for each in trace.info.assessments if each.name == scorer.name]
        print(f"{feedback.source.source_type} {feedback.source.source_id}: {feedback.rationale}")
        scores[json.loads(trace.data.response)] = float(feedback.value)
    return scores


def run_ragas(folder: Path, base_url: str) -> dict[str, float]:
    """Score two responses with a metric of ragas' own base class, one by one and as a batch."""
    from rocketeval.integrations.ragas import ChecklistScore

    metric = ChecklistScore(
        ITEMS, judge=MODEL, base_url=base_url, answers=str(folder / "answers.jsonl")
    )
    inputs = [{"user_input": QUERY, "response": text} for text in (GOOD, BAD)]
    batch = asyncio.run(metric.abatch_score(inputs))
    single = metric.score(**inputs[0])
    print(f"reason: {batch[1].reason}")
    assert float(single.value) == float(batch[0].value)
    return {row["response"]: float(one.value) for row, one in zip(inputs, batch, strict=True)}


PROMPTFOO = """\
prompts: ["{{query}}"]
providers:
  - {id: "exec:sh good.sh", label: good}
  - {id: "exec:sh bad.sh", label: bad}
tests:
  - vars: {query: "QUERY"}
    metadata: {checklist: ITEMS}
    assert:
      - type: python
        value: file://rocketeval_assert.py
        config: {judge: MODEL, base_url: "URL"}
"""


def run_promptfoo(folder: Path, base_url: str) -> dict[str, float]:
    """Run promptfoo with the assertion file, on two providers that echo a response.

    Needs $PROMPTFOO: the command of an installed promptfoo.
    """
    text = PROMPTFOO.replace("QUERY", QUERY).replace("ITEMS", json.dumps(ITEMS))
    text = text.replace("MODEL", MODEL).replace("URL", base_url)
    for name, reply in (("good.sh", GOOD), ("bad.sh", BAD)):
        (folder / name).write_text(f"echo '{reply}'\n")
    (folder / "promptfooconfig.yaml").write_text(text)
    line = "from rocketeval.integrations.promptfoo import get_assert\n"
    (folder / "rocketeval_assert.py").write_text(line)
    environment = {
        **os.environ,
        "PROMPTFOO_PYTHON": sys.executable,
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
        "PROMPTFOO_CONFIG_DIR": str(folder / "home"),
        "ROCKETEVAL_ANSWERS": str(folder / "answers.jsonl"),
    }
    command = [*os.environ.get("PROMPTFOO", "promptfoo").split(), "eval", "--no-cache"]
    command += ["-o", "results.json", "--no-table"]
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if not (folder / "results.json").exists():
        raise SystemExit(done.stdout + done.stderr)
    output = json.loads((folder / "results.json").read_text())
    print(f"promptfoo {output['metadata']['promptfooVersion']}")
    rows = output["results"]["results"]
    print(f"reason: {rows[1]['gradingResult']['reason']}")
    return {row["response"]["output"].strip(): row["score"] for row in rows}


PEERS: dict[str, tuple[str, Callable[[Path, str], dict[str, float]]]] = {
    "inspect": ("inspect_ai", run_inspect),
    "deepeval": ("deepeval", run_deepeval),
    "mlflow": ("mlflow", run_mlflow),
    "ragas": ("ragas", run_ragas),
    "promptfoo": ("", run_promptfoo),
}


def main(name: str) -> None:
    """Run one framework and compare its scores with the known ones."""
    package, run = PEERS[name]
    print(f"## {package} {version(package)}" if package else f"## {name}")
    with TemporaryDirectory() as folder, serving() as server:
        found = run(Path(folder), server.base_url)
        for text, expected in EXPECTED.items():
            score = next(value for given, value in found.items() if given.startswith(text[:20]))
            print(f"{score:.4f} (expected {expected:.4f}): {text}")
            if not abs(score - expected) <= 0.02:
                raise SystemExit("The framework reports another score.")
        before = server.count
        run(Path(folder), server.base_url)
        print(f"again: {server.count - before} HTTP requests")


if __name__ == "__main__":
    main(sys.argv[1])
