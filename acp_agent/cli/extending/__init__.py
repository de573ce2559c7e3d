"""The checks of `acp-agent doctor` for files that extend a session."""
