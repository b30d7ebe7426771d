"""Finds out whether a judge will do, before it is paid for."""
