"""Make the files in this folder with the tools that write them, in an environment that has them.

    pip install inspect-ai deepeval openpyxl pandas polars openai langfuse \
        opentelemetry-sdk opentelemetry-exporter-otlp-proto-common openinference-instrumentation
    python make_python.py inspect deepeval excel otel

    pip install ragas datasets pandas "langchain-community<0.4"
    python make_python.py ragas datasets

    pip install lm-eval==0.4.13     # in lm_eval_task
    lm_eval run --model dummy --tasks trivia --include_path . --log_samples --output_path out

No file needs a network: models are mocks, spans go to memory.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
QUESTIONS = {
    "capital": ("What is the capital of France?", "Paris"),
    "sum": ("What is 2 + 2?", "4"),
    "color": ("Name a primary color.", "red"),
}
CONTEXT = ["France is a country in Europe. Its capital is Paris.", "Berlin is in Germany."]


def make_inspect() -> None:
    """Write two .eval logs and a JSON log with mock models, one sample with a long input."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import Sample
    from inspect_ai.model import (
        ChatMessageSystem,
        ChatMessageUser,
        ModelOutput,
        ModelUsage,
        get_model,
    )
    from inspect_ai.scorer import includes

    samples = [
        Sample(id=name, input=text, target=target, metadata={"category": "general"})
        for name, (text, target) in QUESTIONS.items()
    ]
    long = "Summarize this. " + "The quick brown fox jumps over the lazy dog. " * 10
    samples.append(
        Sample(
            id="long",
            input=[ChatMessageSystem(content="Be brief."), ChatMessageUser(content=long)],
            target="fox",
        )
    )
    answers = {
        "good": ["Paris.", "4", "Red is a primary color.", "A fox jumps over a dog."],
        "poor": ["London.", "5", "Purple.", "No idea."],
    }
    folder = HERE / "inspect"
    # Outside a checkout: a log records the repository it was made in.
    os.chdir(tempfile.mkdtemp())
    for name, texts in answers.items():
        for form in ("eval", "json") if name == "good" else ("eval",):
            outputs = [ModelOutput.from_content(f"mockllm/{name}", text) for text in texts]
            for output in outputs:
                # Otherwise the mock counts tokens with a tokenizer from the network.
                output.usage = ModelUsage(input_tokens=9, output_tokens=3, total_tokens=12)
            model = get_model(f"mockllm/{name}", custom_outputs=outputs, memoize=False)
            eval(
                Task(dataset=samples, scorer=includes(), name="trivia"),
                model=model,
                log_dir=str(folder),
                log_format=form,
                display="none",
                max_connections=1,
                max_samples=1,
            )
            made = next(folder.glob(f"*_trivia_*.{form}"))
            made.rename(folder / f"{name}.{form}")
    (HERE / "inspect_json").mkdir(exist_ok=True)
    (folder / "good.json").rename(HERE / "inspect_json" / "good.json")


def make_deepeval() -> None:
    """Write a dataset of test cases as JSON, CSV and JSON lines, and a test run."""
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    from deepeval.dataset import EvaluationDataset
    from deepeval.test_case import LLMTestCase

    dataset = EvaluationDataset()
    for text, target in QUESTIONS.values():
        dataset.add_test_case(
            LLMTestCase(
                input=text,
                actual_output=f"It is {target}.",
                expected_output=target,
                retrieval_context=CONTEXT,
            )
        )
    folder = HERE / "deepeval"
    for form in ("json", "csv", "jsonl"):
        dataset.save_as(
            file_type=form, directory=str(folder), file_name="cases", include_test_cases=True
        )


def make_excel() -> None:
    """Write a wide table with pandas and openpyxl, and long ones with pandas and polars."""
    import pandas
    import polars

    texts = [text for text, _ in QUESTIONS.values()]
    wide = pandas.DataFrame(
        {
            "question": texts,
            "prompt_a": ["Paris is the capital.", "It is 4.", "Red."],
            "prompt_b": ["Lyon?", "Maybe 5.", "Green is one."],
        }
    )
    wide.to_excel(HERE / "wide.xlsx", index=False)
    long = wide.melt("question", var_name="version", value_name="output")
    long.to_csv(HERE / "long.csv")
    polars.from_pandas(long).write_parquet(HERE / "long.parquet")


def make_otel() -> None:
    """Write spans as OTLP JSON: GenAI conventions, then OpenInference, and one of a tool."""
    from google.protobuf.json_format import MessageToDict
    from openinference.instrumentation import get_llm_attributes
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.semconv._incubating.attributes import gen_ai_attributes as gen_ai

    kept = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(kept))
    tracer = provider.get_tracer("made")

    def message(role: str, text: str) -> dict[str, object]:
        return {"role": role, "parts": [{"type": "text", "content": text}]}

    for model in ("small", "large"):
        for number, (text, target) in enumerate(QUESTIONS.values()):
            with tracer.start_as_current_span("chat") as span:
                span.set_attribute(gen_ai.GEN_AI_OPERATION_NAME, "chat")
                span.set_attribute(gen_ai.GEN_AI_REQUEST_MODEL, model)
                span.set_attribute(gen_ai.GEN_AI_RESPONSE_ID, f"{model}-{number}")
                asked = json.dumps([message("user", text)])
                span.set_attribute(gen_ai.GEN_AI_INPUT_MESSAGES, asked)
                said = json.dumps([{**message("assistant", target), "finish_reason": "stop"}])
                span.set_attribute(gen_ai.GEN_AI_OUTPUT_MESSAGES, said)
    with tracer.start_as_current_span("search") as span:
        span.set_attribute(gen_ai.GEN_AI_OPERATION_NAME, "execute_tool")
    write_spans(kept, encode_spans, MessageToDict, "otel_genai.jsonl")
    for model in ("small", "large"):
        for text, target in QUESTIONS.values():
            with tracer.start_as_current_span("ChatCompletion") as span:
                span.set_attribute("openinference.span.kind", "LLM")
                span.set_attributes(
                    get_llm_attributes(
                        model_name=model,
                        input_messages=[{"role": "user", "content": text}],
                        output_messages=[{"role": "assistant", "content": target}],
                    )
                )
    with tracer.start_as_current_span("retrieve") as span:
        span.set_attribute("openinference.span.kind", "RETRIEVER")
    write_spans(kept, encode_spans, MessageToDict, "openinference.jsonl")


def write_spans(kept, encode_spans, as_dict, name: str) -> None:
    """Write the kept spans as one line of OTLP JSON."""
    request = encode_spans(kept.get_finished_spans())
    (HERE / name).write_text(json.dumps(as_dict(request)) + "\n")
    kept.clear()


def make_ragas() -> None:
    """Write single-turn and multi-turn datasets."""
    from ragas.dataset_schema import EvaluationDataset, MultiTurnSample, SingleTurnSample
    from ragas.messages import AIMessage, HumanMessage

    single = [
        SingleTurnSample(
            user_input=text,
            response=f"It is {target}.",
            reference=target,
            retrieved_contexts=CONTEXT,
        )
        for text, target in QUESTIONS.values()
    ]
    folder = HERE / "ragas"
    folder.mkdir(exist_ok=True)
    EvaluationDataset(single).to_jsonl(folder / "single.jsonl")
    EvaluationDataset(single).to_csv(folder / "single.csv")
    turns = [HumanMessage(content="Hi"), AIMessage(content="Hello"), HumanMessage(content="2 + 2?")]
    multi = [MultiTurnSample(user_input=[*turns, AIMessage(content="4")], reference="4")]
    EvaluationDataset(multi).to_jsonl(folder / "multi.jsonl")


def make_datasets() -> None:
    """Write a Hugging Face dataset to a folder, as its package does."""
    from datasets import Dataset

    rows = [
        {"prompt": text, "completion": f"{model}: {target}", "model": model}
        for model in ("small", "large")
        for text, target in QUESTIONS.values()
    ]
    Dataset.from_list(rows).save_to_disk(str(HERE / "hf_dataset"))


if __name__ == "__main__":
    for wanted in sys.argv[1:]:
        globals()[f"make_{wanted}"]()
