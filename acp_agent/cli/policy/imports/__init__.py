"""Reads the permissions of other agents as rules of our policy."""
