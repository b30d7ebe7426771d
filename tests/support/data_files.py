"""Small data files in the documented shape of tools that are not installed here."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from contracts.benchmark_folders import write_jsonl

PEERS = Path(__file__).parents[1] / "peer_files"
"""Files made by the tools themselves; see make_python.py there."""
QUESTIONS = ("What is 1?", "And what is 2?")
MODELS = ("small", "large")


def write_json(path: Path, content: Any) -> Path:
    """Write a JSON file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def alpaca_eval(folder: Path) -> Path:
    """Outputs of two models, one without an output, and annotations of their comparison."""
    for model in MODELS:
        rows: list[dict[str, Any]] = [
            {"instruction": text, "output": f"{model}: {text}", "generator": model, "dataset": "d"}
            for text in QUESTIONS
        ]
        rows.append({**rows[0], "instruction": "Fails?", "output": None})
        write_json(folder / model / "model_outputs.json", rows)
    note = {
        "instruction": QUESTIONS[0],
        "output_1": f"small: {QUESTIONS[0]}",
        "generator_1": "small",
        "output_2": f"large: {QUESTIONS[0]}",
        "generator_2": "large",
        "annotator": "gpt4",
    }
    notes = [{**note, "preference": 1.9}, {**note, "preference": None}]
    write_json(folder / "large" / "annotations.json", notes)
    return folder


def arena_hard(folder: Path) -> Path:
    """Questions, answers and judgments in the first schema."""
    write_jsonl(
        folder / "question.jsonl",
        [
            {"question_id": f"q{n}", "category": "c", "cluster": "k", "turns": [{"content": text}]}
            for n, text in enumerate(QUESTIONS)
        ],
    )
    for model in MODELS:
        turns = [{"content": f"{model} says", "token_len": 2}]
        answer = {"answer_id": "a", "model_id": model, "choices": [{"index": 0, "turns": turns}]}
        rows = [{"question_id": f"q{n}", **answer} for n in range(2)]
        write_jsonl(folder / "model_answer" / f"{model}.jsonl", rows)
    games = [{"score": "A>>B"}, {"score": "B>A"}]
    row = {"question_id": "q0", "model": "large", "judge": "gpt-4", "games": games}
    empty = {**row, "question_id": "q1", "games": [{"score": None}]}
    write_jsonl(folder / "model_judgment" / "gpt-4" / "large.jsonl", [row, empty])
    return folder


def arena_hard_2025(folder: Path) -> Path:
    """Questions and answers in the schema of 2025."""
    write_jsonl(
        folder / "question.jsonl",
        [{"uid": f"q{n}", "category": "c", "prompt": text} for n, text in enumerate(QUESTIONS)],
    )
    for model in MODELS:
        rows = [
            {
                "uid": f"q{n}",
                "ans_id": "a",
                "model": model,
                "messages": [
                    {"role": "user", "content": text},
                    {"role": "assistant", "content": {"answer": f"{model} says"}},
                ],
            }
            for n, text in enumerate(QUESTIONS)
        ]
        write_jsonl(folder / "model_answer" / f"{model}.jsonl", rows)
    return folder


def wildbench(folder: Path) -> Path:
    """The dataset with checklists, results of two models, and scores of one."""
    write_jsonl(
        folder / "wildbench.jsonl",
        [
            {
                "session_id": f"s{n}",
                "conversation_input": [{"role": "user", "content": text}],
                "checklist": ["Is it a number?", "Is it short?"],
                "primary_tag": "Math",
            }
            for n, text in enumerate(QUESTIONS)
        ],
    )
    for model in MODELS:
        rows = [
            {
                "session_id": f"s{n}",
                "chat_history": [text],
                "output": [f"{model} says"],
                "generator": f"org/{model}",
            }
            for n, text in enumerate(QUESTIONS)
        ]
        write_json(folder / "result_dirs" / f"{model}.json", rows)
    score = {"session_id": "s0", "model_test": "org/large", "score": "7"}
    score["model_output"] = "large says"
    write_json(folder / "eval_results" / "large.json", [score])
    return folder


def preference_pairs(folder: Path) -> Path:
    """Pairs with a prompt, and one whose responses are the same."""
    row = {"prompt": QUESTIONS[0], "chosen": "One.", "rejected": "Two."}
    talk = [{"role": "user", "content": QUESTIONS[1]}, {"role": "assistant", "content": "Two."}]
    other = [*talk[:1], {"role": "assistant", "content": "No."}]
    rows = [row, {**row, "chosen": talk, "rejected": other}, {**row, "rejected": "One."}]
    rows[1]["prompt"] = QUESTIONS[1]
    return write_jsonl(folder / "pairs.jsonl", rows)


def arena_votes(folder: Path) -> Path:
    """Two responses and a winner, with the models' names."""
    row = {"question": QUESTIONS[0], "response_a": "One.", "response_b": "Two."}
    names = {"model_a": "small", "model_b": "large"}
    rows = [{**row, **names, "winner": "model_b"}, {**row, **names, "winner": "tie"}]
    return write_jsonl(folder / "votes.jsonl", rows)


def chat_logs(folder: Path) -> Path:
    """Stored completions of two models, and one without an answer."""
    rows = [
        {
            "id": "c",
            "model": model,
            "messages": [{"role": "system", "content": "Be brief."}, _user(text)],
            "choices": [{"message": {"role": "assistant", "content": f"{model} says"}}],
        }
        for model in MODELS
        for text in QUESTIONS
    ]
    silent = {"choices": [{"message": {"role": "assistant", "content": None}}]}
    return write_jsonl(folder / "log.jsonl", [*rows, {**rows[0], **silent}])


def fine_tuning(folder: Path) -> Path:
    """Conversations that end with the assistant, with an image in one of them."""
    picture = [{"type": "text", "text": "Look."}, {"type": "image_url", "image_url": {"url": "x"}}]
    rows = [
        {"messages": [_user(text), {"role": "assistant", "content": "Yes."}]} for text in QUESTIONS
    ]
    rows.append({"messages": [_user(picture), {"role": "assistant", "content": "I see."}]})
    return write_jsonl(folder / "tuning.jsonl", rows)


def openai_batch(folder: Path) -> Path:
    """The input and output files of a batch; one request failed."""
    asked, answered = [], []
    for model in MODELS:
        for number, text in enumerate(QUESTIONS):
            key = f"{model}-{number}"
            body = {"model": model, "messages": [_user(text)]}
            url = "/v1/chat/completions"
            asked.append({"custom_id": key, "method": "POST", "url": url, "body": body})
            reply = {"choices": [{"message": {"role": "assistant", "content": f"{model} says"}}]}
            response = {"status_code": 200, "body": reply}
            answered.append({"id": "r", "custom_id": key, "response": response, "error": None})
    answered[-1]["response"] = {"status_code": 500, "body": {}}
    write_jsonl(folder / "batch_input.jsonl", asked)
    write_jsonl(folder / "batch_output.jsonl", answered)
    return folder


def langfuse(folder: Path) -> Path:
    """Observations of two models, and a span."""
    rows: list[dict[str, Any]] = [
        {
            "id": f"o-{model}-{n}",
            "traceId": f"t-{model}-{n}",
            "type": "GENERATION",
            "name": "answer",
            "model": model,
            "input": {"messages": [_user(text)]},
            "output": {"role": "assistant", "content": f"{model} says"},
            "startTime": "2026-11-01T00:00:00Z",
        }
        for model in MODELS
        for n, text in enumerate(QUESTIONS)
    ]
    rows.append({**rows[0], "type": "SPAN", "id": "o-span"})
    return write_jsonl(folder / "observations.jsonl", rows)


def lm_eval(folder: Path) -> Path:
    """Samples of two models, in the older and the newer form of arguments; a second filter."""
    for model, new in zip(MODELS, (False, True), strict=True):
        rows = []
        for number, text in enumerate(QUESTIONS):
            options = {"until": ["\n"]}
            listed: Any = [[f"Q: {text}\nA:", options]]
            named = {"gen_args_0": {"arg_0": f"Q: {text}\nA:", "arg_1": options}}
            row = {
                "doc_id": number,
                "doc": {"question": text},
                "target": str(number),
                "arguments": named if new else listed,
                "resps": [[f" {model}"]],
                "filtered_resps": [model],
                "filter": "none",
                "metrics": ["exact_match"],
                "exact_match": 1.0,
            }
            rows += [row, {**row, "filter": "strict"}]
        rows.append({**row, "doc_id": 7, **log_likelihoods(new)})
        name = "samples_trivia_2026-11-01T00-00-00.000000.jsonl"
        write_jsonl(folder / f"org__{model}" / name, rows)
    return folder


def log_likelihoods(new: bool) -> dict[str, Any]:
    """Fields of a sample of a multiple-choice task: numbers as text, as lm-eval writes them."""
    pairs = [["Q: Is it A?\nA:", " A"], ["Q: Is it A?\nA:", " B"]]
    named = {
        f"gen_args_{place}": {"arg_0": pair[0], "arg_1": pair[1]}
        for place, pair in enumerate(pairs)
    }
    return {
        "arguments": named if new else pairs,
        "resps": [[["-1.25", "False"]], [["-2.5", "True"]]],
        "filtered_resps": [["-1.25", "False"], ["-2.5", "True"]],
    }


def deepeval_run(folder: Path) -> Path:
    """The latest test run of DeepEval: two cases with a metric, one without an output."""
    case = {"name": "test_0", "input": QUESTIONS[0], "actualOutput": "One.", "success": True}
    metric = {"name": "Relevancy", "threshold": 0.5, "success": True, "score": 0.8}
    cases: list[dict[str, Any]] = [
        {**case, "expectedOutput": "1", "retrievalContext": ["One is 1."], "metricsData": [metric]},
        {**case, "input": QUESTIONS[1], "metricsData": [{**metric, "score": None}]},
        {**case, "input": "Fails?", "actualOutput": None},
    ]
    run = {"testCases": cases, "hyperparameters": {"model": "small"}}
    return write_json(folder / ".latest_test_run.json", run)


def wide_csv(folder: Path) -> Path:
    """A wide table with an empty cell, a category and a checklist."""
    path = folder / "wide.csv"
    path.write_text(
        "question,topic,v1,v2,checklist\n"
        '"What is 1?",maths,One.,Two.,"Is it one?\nIs it short"\n'
        '"And what is 2?",maths,,"Two, too.",\n',
        encoding="utf-8",
    )
    return path


def _user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


MADE: dict[str, tuple[str, Callable[[Path], Path]]] = {
    made.__name__: (kind, made)
    for kind, made in (
        ("alpaca_eval", alpaca_eval),
        ("arena_hard", arena_hard),
        ("arena_hard", arena_hard_2025),
        ("wildbench", wildbench),
        ("preference_pairs", preference_pairs),
        ("preference_pairs", arena_votes),
        ("openai_logs", chat_logs),
        ("openai_logs", fine_tuning),
        ("openai_logs", openai_batch),
        ("traces", langfuse),
        ("lm_eval", lm_eval),
        ("deepeval", deepeval_run),
        ("table", wide_csv),
    )
}
"""Files in a documented shape: the kind that reads them, and how to write one."""
