"""Engines answer grading tasks and write text; only they touch the network."""
