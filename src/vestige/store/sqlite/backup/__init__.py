"""Backup and restore of a SQLite file."""
