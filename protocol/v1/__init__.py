"""Version 1 of the Agent Client Protocol: its types and its methods."""
