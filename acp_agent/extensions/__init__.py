"""Room for what others add to the agent."""
