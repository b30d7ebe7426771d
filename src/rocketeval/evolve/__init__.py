"""Evaluators that learn from their mistakes, after MAD-Eval: perspectives, experts, evolution."""
