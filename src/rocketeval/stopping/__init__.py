"""Stopping early: which judgments a question needs, and what is decided without the others."""
