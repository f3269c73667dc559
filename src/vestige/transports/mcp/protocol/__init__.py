"""The MCP protocol without IO: messages in, messages out."""
