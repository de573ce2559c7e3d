"""How much of everything a remote client may have."""

from __future__ import annotations

from typing import NamedTuple

from protocol.transports.base import LIMIT


class Limits(NamedTuple):
    """Bounds, so that no client can take the process down; times in seconds, sizes in bytes.

    Attributes:
        message: a message's size.
        connections: connections that exist at the same time, WebSockets among them.
        sessions: sessions that one connection may have open.
        sockets: sockets that are open at the same time.
        head: how long the head of a request may take, TLS included.
        body: how long its body may take.
        keep_alive: how long a socket without a request stays open.
        handshake: how long a new connection may take to `initialize`.
        idle: how long a connection without an open stream and without requests lives.
        ping: how long a socket may be silent before it is pinged; event streams get a comment.
        stall: how long a client may read nothing of a stream that has something for it.
    """

    message: int = LIMIT
    connections: int = 256
    sessions: int = 64
    sockets: int = 512
    head: float = 10.0
    body: float = 120.0
    keep_alive: float = 75.0
    handshake: float = 30.0
    idle: float = 120.0
    ping: float = 20.0
    stall: float = 60.0
