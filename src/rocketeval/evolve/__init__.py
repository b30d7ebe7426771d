"""Evaluators that learn from their mistakes (MAD-Eval): perspectives, experts, evolution."""
