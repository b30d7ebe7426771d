"""Grading on a Ray cluster, with the same judge and grading loop as on one machine."""
