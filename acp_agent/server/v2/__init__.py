"""Version 2 of the protocol over the sessions."""
