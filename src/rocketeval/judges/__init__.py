"""Several judges on one benchmark: their agreement, and a combined ranking."""
