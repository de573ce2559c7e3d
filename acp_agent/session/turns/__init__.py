"""The turns of a session: what begins one, what it works with, how it ends."""
