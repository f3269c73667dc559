"""The processes that share one SQLite file: peers and locks."""
