"""Types and unstable methods that versions 1 and 2 of the Agent Client Protocol share."""
