"""Reactions to events: what happens after a search or a write was committed."""
