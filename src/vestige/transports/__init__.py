"""Protocols over the registry: MCP and the command line. They name no operation."""
