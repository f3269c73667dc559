"""Checks and repairs of a PostgreSQL store."""
