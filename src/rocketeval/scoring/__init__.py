"""Scorers, which turn the answers of a judgment into one score."""
