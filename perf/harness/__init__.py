"""Shared parts of the performance scripts: one workload, the ways to grade it, one table."""
