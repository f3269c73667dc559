"""Sessions of coding agents: bringing the index up to date, searching, the archive."""
