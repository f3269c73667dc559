"""Checks and repairs of a SQLite store."""
