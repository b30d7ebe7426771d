"""Attacks on the judge: texts that try to turn a no into a yes, measured on the user's own data."""
