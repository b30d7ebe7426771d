import pandas as pd
from deepeval.metrics import GEval
from deepeval.models import LocalModel
from deepeval.test_case import LLMTestCase, SingleTurnParams

frame = pd.read_csv("answers.csv")
metric = GEval(
    name="correct",
    evaluation_steps=["Check whether the actual output answers the input correctly."],
    evaluation_params=[SingleTurnParams.INPUT, SingleTurnParams.ACTUAL_OUTPUT],
    model=LocalModel(
        model="qwen2.5-coder-1.5b-instruct",
        base_url="http://127.0.0.1:8000/v1",
        api_key="none",
    ),
)
frame["score"] = [
    metric.measure(LLMTestCase(input=row.question, actual_output=row.output))
    for row in frame.itertuples()
]
print(frame.groupby("version")["score"].mean().sort_values(ascending=False))
