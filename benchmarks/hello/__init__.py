"""Hello-world servers on the official MCP SDK, which `benchmarks.startup` compares ours with."""
