"""The store: sole owner of every path inside a run directory."""
