"""The agent on a socket: HTTP, WebSocket and access control."""
