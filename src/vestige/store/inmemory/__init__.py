"""The store that keeps everything in plain dicts: the oracle of the contract, and a test double."""

from vestige.store.inmemory.store import InMemoryStore

__all__ = ["InMemoryStore"]
