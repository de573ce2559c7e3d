"""A client of the Model Context Protocol (MCP), for the servers of a session.

`config` and `server` are light. All modules that import the `mcp` package, which takes a second,
are imported in a thread, and only by a session that has servers.
"""
