"""How large a cluster a run needs, how long it takes and what it costs."""
