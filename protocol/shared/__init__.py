"""What versions 1 and 2 of the Agent Client Protocol share: types and unstable methods."""
