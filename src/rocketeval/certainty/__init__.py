"""How sure a difference is, what few labels say of many scores, and which labels to get next."""
