import pandas as pd
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import accuracy, grouped, model_graded_qa
from inspect_ai.solver import solver

frame = pd.read_csv("answers.csv")
judge = get_model(
    "openai/qwen2.5-coder-1.5b-instruct",
    base_url="http://127.0.0.1:8000/v1",
    api_key="none",
    responses_api=False,
)


@solver
def recorded():
    async def solve(state, generate):
        state.output = ModelOutput.from_content("recorded", state.metadata["output"])
        return state

    return solve


task = Task(
    dataset=[
        Sample(
            input=row.question,
            target="The response is a correct answer to the question.",
            metadata={"output": row.output, "version": row.version},
        )
        for row in frame.itertuples()
    ],
    solver=recorded(),
    scorer=model_graded_qa(model=judge),
    metrics=[grouped(accuracy(), "version", all=False)],
)
[log] = eval(task, model=judge, display="none")
scores = {name: metric.value for name, metric in log.results.scores[0].metrics.items()}
print(pd.Series(scores).sort_values(ascending=False))
