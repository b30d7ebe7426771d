"""Ways to ask a judge about a response: the checklist, its ablations and the baselines."""
