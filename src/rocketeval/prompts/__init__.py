"""Prompts: one plain-text template a file, filled so that untrusted text forges nothing."""
