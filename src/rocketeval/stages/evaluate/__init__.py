"""An evolved evaluator judges a run: its perspectives are the checklist, its experts the scorer."""
