"""`acp-agent flow` and `acp-agent watch`."""
