"""Stores of memories: one contract (`contract/`), three implementations."""
