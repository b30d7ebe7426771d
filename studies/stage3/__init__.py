"""Scorers on recorded judge probabilities, held against what people said."""
