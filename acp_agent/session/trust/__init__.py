"""Asks the user whether to trust what a session's folder brings along."""
