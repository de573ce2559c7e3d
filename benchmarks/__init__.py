"""Benchmarks of acp-agent, each measured against a floor in the same run: `make bench`."""
