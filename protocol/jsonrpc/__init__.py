"""JSON-RPC 2.0 (https://www.jsonrpc.org/specification) as a connection of two equal peers."""
