"""`acp-agent setup EDITOR`: add the agent to an editor's configuration, or remove it."""
