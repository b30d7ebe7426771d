"""Benchmarks read queries, responses and gold from formats people already have."""
