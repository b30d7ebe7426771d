"""From scores to ratings, ranks and the intervals that say how sure they are."""
