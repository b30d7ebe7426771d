"""Exports of a run's results in the formats of other tools."""
