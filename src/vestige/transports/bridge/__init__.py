"""The HTTP API that OpenClaw deployments use, in front of one `vestige-mcp` process.

    app (routes, layers) → requests (what is meant) → isolation (where it may look) → supervisor → child

The bridge knows no memory: whatever it is asked becomes a tool call over standard input and output.
"""
