"""What a connection answers at one time: methods, their handlers, and what goes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from protocol.jsonrpc.call import Handler
from protocol.jsonrpc.errors import RpcError
from protocol.jsonrpc.methods import Method
from protocol.jsonrpc.outbox import Merge

MapError = Callable[[Exception], RpcError | None]


class Surface:
    """One side of one version of a protocol; a connection may go from one to another.

    Attributes:
        methods: What is answered, by name.
        handlers: How, by name; a method without one counts as unknown.
        map_error: Turns an exception of a handler into an error response; None for one that it
            does not know, which becomes an internal error that tells nothing but a reference to
            the log.
        merge: Joins two notifications of one method while the first waits for a slow reader.
        batches: Whether the peer may send several messages as one array (JSON-RPC 2.0 section 6).
    """

    __slots__ = ("batches", "handlers", "map_error", "merge", "methods")

    def __init__(
        self,
        methods: Mapping[str, Method[Any, Any]],
        handlers: Mapping[str, Handler],
        *,
        map_error: MapError | None = None,
        merge: Merge | None = None,
        batches: bool = False,
    ) -> None:
        self.methods = methods
        self.handlers = handlers
        self.map_error = map_error
        self.merge = merge
        self.batches = batches
