"""MCP servers of a session."""
