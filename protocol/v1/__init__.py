"""Version 1 of the Agent Client Protocol: its stable types and one table of its methods."""
