"""Yardsticks of `benchmarks.startup`: hello-world servers on the official MCP SDK, and the bare model."""
