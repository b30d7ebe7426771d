"""How sure a difference between candidates is, and which labels to get next."""
