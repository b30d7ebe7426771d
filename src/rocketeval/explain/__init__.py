"""Explanation of a ranking: losses and strengths of candidates, and figures of each item."""
