"""The audit: agreement of scores with human votes, labels, reference ratings and baselines."""
