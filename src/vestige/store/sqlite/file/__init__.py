"""The database file itself: write-ahead log, identity, damage."""
