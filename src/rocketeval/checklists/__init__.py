"""Authors make the checklists that judges answer."""
