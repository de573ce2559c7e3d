"""What `acp-agent doctor` says of the files that extend a session."""
