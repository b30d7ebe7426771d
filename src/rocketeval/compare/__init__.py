"""Comparison of two candidates, estimates of mean labels, and the choice of labels to collect."""
