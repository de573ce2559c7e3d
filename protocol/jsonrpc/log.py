"""The log of a connection; what goes there never goes to the peer."""

from __future__ import annotations


def log(text: str, error: BaseException | None = None) -> None:
    """Log a failure with its traceback, or, without an error, something worth knowing."""
    import logging  # noqa: PLC0415 - not at start

    level = logging.INFO if error is None else logging.ERROR
    logging.getLogger("protocol.jsonrpc").log(level, "%s", text, exc_info=error)
