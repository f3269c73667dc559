"""The search arms of a SQLite store."""
