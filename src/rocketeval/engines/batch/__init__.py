"""Batch jobs: requests collected into files, answered within a day, and never paid for twice."""
