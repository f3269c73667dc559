"""Limits: bodies, rates, concurrency, responses, connections."""
