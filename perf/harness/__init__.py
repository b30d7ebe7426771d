"""What the performance scripts share: one workload, the ways to grade it, one table."""
