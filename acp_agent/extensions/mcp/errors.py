"""Describe why a server cannot be used, in one line for the user."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from acp_agent.content import printable_line
from acp_agent.platform.descriptor_limit import explain_descriptor_limit

if TYPE_CHECKING:  # 40 ms that only servers over HTTP need
    import httpx2

MAX_LINE_LENGTH = 300  # characters
_MAX_SCOPE_LENGTH = 200  # characters


class SessionLostError(Exception):
    """The server no longer knows the session, and has not processed the request."""


def _describe_validation_error(error: BaseException) -> str:
    """Return what a validation error of pydantic says, without its values and addresses."""
    from pydantic import ValidationError  # noqa: PLC0415 - the package has imported it

    assert isinstance(error, ValidationError)
    details = error.errors(include_url=False, include_input=False, include_context=False)
    return "; ".join(
        f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}" for detail in details[:3]
    )


def missing_scope(response: httpx2.Response) -> str:
    """Return the OAuth scopes that a refused request lacks (RFC 6750), or an empty string."""
    challenge = response.headers.get("www-authenticate", "")
    if response.status_code != 403 or "insufficient_scope" not in challenge:
        return ""
    match = re.search(r'\bscope="([^"]*)"', challenge)
    return printable_line(match[1], _MAX_SCOPE_LENGTH) if match else ""


def describe_error(error: BaseException, clean: Callable[[str], str]) -> str:
    """Return a description of an error in one line, without secrets.

    Args:
        error: the exception; for a group, its first exception that is not a group is described.
    """
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    limited = explain_descriptor_limit(error)
    if limited is not None:
        text = limited
    elif isinstance(error, FileNotFoundError):
        text = f"there is no program {error.filename}" if error.filename else str(error)
    elif isinstance(error, PermissionError) and error.filename:
        text = f"{error.filename} may not be started"
    elif type(error).__name__ == "ValidationError":
        text = f"its answer has the wrong shape: {_describe_validation_error(error)}"
    elif isinstance(error, TimeoutError):
        text = str(error) or "it took too long"
    else:
        text = str(error) or type(error).__name__
    return printable_line(clean(text), MAX_LINE_LENGTH)
