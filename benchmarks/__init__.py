"""What acp-agent costs, measured against the floor in the same run: `make bench`."""
