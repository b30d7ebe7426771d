rocketeval run answers.csv --judge qwen2.5-coder-1.5b-instruct --base-url http://127.0.0.1:8000/v1 --checklist general
