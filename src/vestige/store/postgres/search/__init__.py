"""The search arms of a PostgreSQL store."""
