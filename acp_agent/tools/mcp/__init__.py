"""Results of MCP servers, and the search in tools that are too many to be offered."""
