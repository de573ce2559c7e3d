"""`acp-agent mcp`: the configured MCP servers."""
