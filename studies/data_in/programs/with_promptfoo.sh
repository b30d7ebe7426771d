npx promptfoo eval -c with_promptfoo.yaml -o results.json
jq '.results.prompts[0].metrics.namedScores' results.json
