"""Checks of checklist items, static and by the judge's answers, and rewrites by the author."""
