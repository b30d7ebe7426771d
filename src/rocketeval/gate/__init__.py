"""Gates for tests and CI: the pytest plugin, test cases and baselines."""
