"""The store: the only package that knows the paths inside a run directory."""
