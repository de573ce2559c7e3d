"""The agent on a socket: HTTP, WebSocket, and who may use them."""
