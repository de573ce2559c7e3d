"""What the MCP servers of a session's client bring to it, and ask of it."""
