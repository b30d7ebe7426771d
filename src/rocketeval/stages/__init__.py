"""The stages of a run: each reads the store, computes with records, and leaves its part behind."""
