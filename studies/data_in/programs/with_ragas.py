import pandas as pd
from openai import OpenAI
from ragas.llms import llm_factory
from ragas.metrics import DiscreteMetric

frame = pd.read_csv("answers.csv")
client = OpenAI(base_url="http://127.0.0.1:8000/v1", api_key="none")
judge = llm_factory("qwen2.5-coder-1.5b-instruct", client=client)
metric = DiscreteMetric(
    name="correct",
    prompt="Is the response a correct answer to the question?\n"
    "Question: {question}\nResponse: {response}",
    allowed_values=["yes", "no"],
)
frame["score"] = [
    metric.score(llm=judge, question=row.question, response=row.output).value == "yes"
    for row in frame.itertuples()
]
print(frame.groupby("version")["score"].mean().sort_values(ascending=False))
