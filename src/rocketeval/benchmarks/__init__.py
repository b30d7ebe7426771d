"""Benchmarks: readers of queries, responses and reference data in common formats."""
