"""The Agent Client Protocol on the wire: JSON-RPC 2.0 between two peers, and the protocol's types.

Knows nothing of agents and needs only `msgspec`. Importing this package imports nothing else, so
that a program can claim its standard streams before anything else runs.
"""
