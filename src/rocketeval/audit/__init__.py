"""How far scores can be trusted: against votes, labels, other ratings and baselines."""
