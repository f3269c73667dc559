"""The processes that share one PostgreSQL store: peers and locks."""
