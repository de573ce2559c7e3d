"""A local web page, for one visit, where the user enters a model provider's key.

The key is sent from the browser to the store of `acp-agent login`. It does not pass through the
editor, the protocol or any log.
"""
