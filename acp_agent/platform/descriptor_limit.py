"""The limit of open files: raise it at start-up, and explain errors that it causes.

Files, sockets, pipes and processes need descriptors. Without a free one, the error often has
another name: a host cannot be resolved, a database cannot be opened, a module is not found.
"""

from __future__ import annotations

import errno
import os
import resource
import socket
import sqlite3

TARGET_LIMIT = 65_536  # descriptors; with a million, programs that close all of them become slow
SCARCE = 256  # descriptors; a session with a model and an MCP server uses about 40

# Errors that hide the system's error. For these, opening a file shows whether the limit is hit.
_AMBIGUOUS_ERRORS = (socket.gaierror, sqlite3.OperationalError, ImportError)


def raise_descriptor_limit() -> None:
    """Raise this process's limit as far as the system allows, up to `TARGET_LIMIT`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    target = TARGET_LIMIT if hard == unlimited else min(hard, TARGET_LIMIT)
    if soft == unlimited or soft >= target:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
    except (OSError, ValueError):  # systems such as macOS have a further limit
        return


def descriptor_limit() -> int | None:
    """Return how many files this process may have open; None if unlimited."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if soft == resource.RLIM_INFINITY else soft


def describe_os_error(error: OSError) -> str:
    """Return the reason of a system error, with the remedy for too many open files."""
    return explain_descriptor_limit(error) or error.strerror or str(error) or type(error).__name__


def explain_descriptor_limit(error: BaseException) -> str | None:
    """Return the reason and the remedy if the limit of open files caused an error, else None.

    Args:
        error: the error; its causes and the members of a group are checked as well.
    """
    ambiguous = False
    pending: list[BaseException] = [error]
    visited: set[int] = set()
    while pending:
        current = pending.pop()
        if id(current) in visited:
            continue
        visited.add(id(current))
        advice = _advice(current.errno) if isinstance(current, OSError) else None
        if advice is not None:
            return advice
        ambiguous = ambiguous or isinstance(current, _AMBIGUOUS_ERRORS)
        pending += [
            cause for cause in (current.__cause__, current.__context__) if cause is not None
        ]
        if isinstance(current, BaseExceptionGroup):
            pending += current.exceptions
    return _advice(_current_open_error()) if ambiguous else None


def _advice(number: int | None) -> str | None:
    match number:
        case errno.EMFILE:
            remedy = "close sessions, or raise the limit of open files (ulimit -n)"
        case errno.ENFILE:
            remedy = "close programs, or raise the system's limit of open files"
        case _:
            return None
    return f"{os.strerror(number)}; {remedy}"


def _current_open_error() -> int | None:
    """Return the error number if no file can be opened at the moment, else None."""
    try:
        os.close(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        return error.errno
    return None
