"""OAuth for MCP servers over HTTP; imported only if the user has logged in to one."""
