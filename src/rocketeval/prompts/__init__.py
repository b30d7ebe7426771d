"""Prompts: plain-text templates, filled so that untrusted text cannot forge their markers."""
