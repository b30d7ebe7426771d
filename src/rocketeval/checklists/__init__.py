"""Authors: where the checklists that judges answer come from."""
