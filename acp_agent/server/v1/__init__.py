"""The sessions over version 1 of the protocol."""
