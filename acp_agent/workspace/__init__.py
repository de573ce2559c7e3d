"""All side effects of the agent: files, processes and the network."""
