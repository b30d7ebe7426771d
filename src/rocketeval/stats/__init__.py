"""Statistics used by every other package: resampling, correlation, agreement, tests."""
