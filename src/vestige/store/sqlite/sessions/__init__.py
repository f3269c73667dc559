"""The index of sessions in an SQLite file of its own."""
