"""Scorers turn a judgment's answers into one score."""
