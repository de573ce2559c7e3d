"""Serve the agent to programs of other protocols: A2A and MCP."""
