"""evolve: an evaluator learns from gold, and from what it judges wrongly."""
