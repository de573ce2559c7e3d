"""A client of the Model Context Protocol: the servers that an editor gives a session.

`config` and `server` are light; everything that imports the `mcp` package, which takes a second, is
imported in a thread, and only by a session that has servers.
"""
