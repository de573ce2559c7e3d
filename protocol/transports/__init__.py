"""How messages travel: lines on standard input and output, WebSocket, streamable HTTP."""
