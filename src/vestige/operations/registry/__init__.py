"""The registry of operations, and what every operation shares: arguments, schemas, routes, errors."""
