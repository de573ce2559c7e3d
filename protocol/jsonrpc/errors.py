"""The error codes of JSON-RPC 2.0 and of the Agent Client Protocol, and the exception for them."""

from __future__ import annotations

from typing import Final

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800
AUTH_REQUIRED: Final = -32000
RESOURCE_NOT_FOUND: Final = -32002
UNSUPPORTED_VERSION: Final = -32022


class RpcError(Exception):
    """An error response: raised to send one, and raised when the peer sent one.

    Attributes:
        code: The number that programs look at.
        message: One line for people; line ends and runs of white space become single spaces.
        data: More detail as JSON, or None for none.
    """

    def __init__(self, code: int, message: str, data: object = None) -> None:
        one_line = " ".join(message.split())
        super().__init__(one_line)
        self.code = code
        self.message = one_line
        self.data = data

    def __repr__(self) -> str:
        return f"RpcError({self.code}, {self.message!r})"


class InvalidResultError(RpcError):
    """The peer's result does not have the type that the method requires."""

    def __init__(self, method: str, reason: str) -> None:
        super().__init__(INTERNAL_ERROR, f"the answer to {method} is malformed: {reason}")


def log(text: str, error: BaseException | None = None) -> None:
    """Log a failure with its traceback, or a message if there is no error."""
    import logging  # noqa: PLC0415 - not at start

    level = logging.INFO if error is None else logging.ERROR
    logging.getLogger("protocol.jsonrpc").log(level, "%s", text, exc_info=error)
