"""Scorers on recorded judge probabilities, compared with human ratings."""
