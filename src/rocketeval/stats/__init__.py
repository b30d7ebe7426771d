"""Statistics used by all other packages: resampling, correlation, agreement, tests."""
