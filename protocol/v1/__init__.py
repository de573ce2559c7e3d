"""Version 1 of the Agent Client Protocol: its types and tables of its methods, stable or not."""
