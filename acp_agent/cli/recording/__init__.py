"""`acp-agent sessions record` and `acp-agent replay`."""
