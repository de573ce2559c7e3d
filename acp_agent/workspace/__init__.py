"""Every side effect: files, processes, network."""
