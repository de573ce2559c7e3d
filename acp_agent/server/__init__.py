"""The Agent Client Protocol's surface over the sessions."""
