"""The code index of a project in an SQLite file."""
