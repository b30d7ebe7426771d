"""Grading on a Ray cluster: the same judge and loop as on one machine, called by other hands."""
