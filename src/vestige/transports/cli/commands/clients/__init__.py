"""Commands that change the settings of MCP clients."""
