"""OAuth for MCP servers behind HTTP; imported only where a user logged in to one."""
