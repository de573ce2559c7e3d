"""Tools of MCP servers that are too many to be offered one by one: searched, then called."""
