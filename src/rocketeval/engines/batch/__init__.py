"""Batch jobs: requests gathered into files, answered within a day, and never paid for twice."""
