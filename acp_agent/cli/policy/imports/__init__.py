"""Translate the permissions of other agents to our rules."""
