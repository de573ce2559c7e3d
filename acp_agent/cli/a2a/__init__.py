"""`acp-agent a2a`: the agent for clients of the Agent2Agent protocol."""
