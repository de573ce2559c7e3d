"""`acp-agent hooks`: list hooks, and test those of one event."""
