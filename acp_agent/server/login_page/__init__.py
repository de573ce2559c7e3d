"""A page on this computer, for one visit, where the user gives a model provider's key.

The key goes from the browser to where `acp-agent login` keeps it, and past the editor, the protocol
and every log.
"""
