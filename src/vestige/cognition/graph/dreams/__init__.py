"""Dreams: what is replayed, and the insights that come of it."""
