"""Ratings, ranks and their intervals, from scores."""
