"""A coding agent that any editor drives over the Agent Client Protocol."""
