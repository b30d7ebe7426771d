import pandas as pd

import rocketeval

frame = pd.read_csv("answers.csv")
result = rocketeval.evaluate(
    frame,
    judge="qwen2.5-coder-1.5b-instruct",
    base_url="http://127.0.0.1:8000/v1",
    checklists=["Is the response a correct answer to the question?"],
)
print(result)
