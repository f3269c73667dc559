"""The PostgreSQL server: address, connections to lend, dialect, values, errors."""
