"""Grading: responses with their checklists become judgments."""
