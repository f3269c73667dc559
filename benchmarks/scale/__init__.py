"""How searching and storing grow from a thousand memories to a million, on SQLite and on PostgreSQL."""
