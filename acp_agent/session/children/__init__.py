"""Agents that work on a task of a session's: child sessions, and who starts and stops them."""
