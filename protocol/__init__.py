"""The Agent Client Protocol's wire: JSON-RPC, transports, types. Knows nothing of agents."""
