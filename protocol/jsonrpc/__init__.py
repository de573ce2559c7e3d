"""JSON-RPC 2.0 as a bidirectional peer."""
