"""MCP over Streamable HTTP."""
