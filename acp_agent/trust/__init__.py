"""Trust in items of a folder that can run code or steer the agent."""
