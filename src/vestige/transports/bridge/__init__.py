"""The HTTP API that OpenClaw deployments use, in front of one `vestige-mcp` process.

app (routes, middleware) → requests (parsing) → isolation (scopes of agents) → supervisor → child

The bridge has no memory of its own: every request becomes a tool call over standard input and output.
"""
