"""Version 1 of the protocol over the sessions."""
