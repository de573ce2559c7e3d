"""The draft of version 2 of the Agent Client Protocol: its types and tables of its methods."""
