"""`acp-agent hooks`: lists hooks, and tries those of one event."""
