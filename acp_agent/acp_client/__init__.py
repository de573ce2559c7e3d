"""A client of the Agent Client Protocol: starts other agents and gives them tasks."""
