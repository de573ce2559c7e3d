"""Transports of messages: lines on standard input and output, WebSocket, streamable HTTP."""
