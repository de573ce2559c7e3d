"""Convert errors of a provider to a `Failed` with one line for the user, which never has a key.

Covers HTTP statuses, errors inside a stream, and exceptions of the connection.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from typing import Literal

import msgspec

from acp_agent.models.base import Failed, FailureKind
from acp_agent.models.http.client import (
    BrokenError,
    CompressionError,
    ConnectError,
    StatusError,
    UnsendableError,
)
from acp_agent.models.provider_errors import (
    OVERFLOW,
    Problem,
    delay_from_headers,
    failure_kind,
    read_problem,
    retry_delay,
    upstream_problem,
)
from acp_agent.models.providers import Provider, credentials_in
from acp_agent.models.stream_events import BadStreamError
from acp_agent.platform.decoding import convert
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.workspace.scrub import scrub

RETRYABLE: frozenset[FailureKind] = frozenset(
    {"connection", "timeout", "rate_limit", "overloaded", "server", "malformed"}
)

_DETAIL_LIMIT = 300  # characters of the provider's message

_BY_STATUS: dict[int, FailureKind] = {
    401: "auth", 402: "quota", 403: "auth", 404: "not_found", 408: "timeout", 409: "server",
    413: "overflow", 425: "server", 429: "rate_limit", 503: "overloaded", 504: "timeout",
    529: "overloaded",
}  # fmt: skip

_LIKE_A_KEY = re.compile(r"\b(?:(?:sk|pk|rk|gsk|key)[-_]|AIza)[\w*.-]{12,}")
_ErrorKind = Literal[
    "timeout", "unsendable", "connection", "unreachable", "unreadable", "compressed"
]
_KINDS_BY_EXCEPTION: tuple[tuple[type[BaseException], _ErrorKind], ...] = (
    (TimeoutError, "timeout"),
    (UnsendableError, "unsendable"),
    (ConnectError, "unreachable"),
    (BrokenError, "connection"),
    (CompressionError, "compressed"),
    (msgspec.MsgspecError, "unreadable"),
    (UnicodeDecodeError, "unreadable"),
    (BadStreamError, "unreadable"),
)
# The order matters: some are subclasses of later ones.
_HTTPX2: tuple[tuple[str, _ErrorKind], ...] = (
    ("TimeoutException", "timeout"),
    ("ConnectError", "unreachable"),
    ("TransportError", "connection"),
    ("DecodingError", "compressed"),
)


def from_status(
    provider: Provider, status: int, headers: Mapping[str, str], body: bytes, *, model: str
) -> Failed:
    """Return the failure for an HTTP answer with an error status."""
    problem = upstream_problem(read_problem(body))
    detail = problem.message or ""
    if 300 <= status < 400:  # not followed: key and conversation must not go to another host
        target = headers.get("location", "another address")
        detail = f"it leads to {target}; set that as the provider's base_url if it is right"
    if status < 300:
        return empty(provider)
    kind = _BY_STATUS.get(status) or ("server" if status >= 500 else "bad_request")
    if status in {400, 403, 404, 413, 422, 429}:
        kind = failure_kind(problem, kind)
    elif status == 500 and OVERFLOW.search(detail):  # llama.cpp's
        kind = "overflow"
    return Failed(
        kind=kind,
        status=status,
        message=_line(provider, kind, status, detail, model=model),
        retry_after=retry_delay(problem, kind, delay_from_headers(headers)),
    )


def from_page(provider: Provider, body: bytes, *, model: str) -> Failed:
    """Return the failure for a page with the status 200 in place of a stream."""
    problem = read_problem(body)
    if not problem.message:
        description = (
            "it sent a page where a stream of events was to come; check its address "
            f"{provider.address}, which often ends in /v1"
        )
        return malformed(provider, description)
    return from_event(provider, msgspec.to_builtins(problem), model=model)


def from_event(provider: Provider, problem: object, *, model: str) -> Failed:
    """Return the failure for an error inside a stream; `problem` is the JSON of `error`."""
    try:
        parsed = convert(problem, Problem)
    except msgspec.ValidationError:
        parsed = Problem(message=str(problem))
    status = int(parsed.code) if isinstance(parsed.code, (int, float)) else None
    if isinstance(parsed.code, str) and parsed.code.isdecimal() and len(parsed.code) == 3:
        status = int(parsed.code)
    parsed = upstream_problem(parsed)
    default = _BY_STATUS.get(status or 0) or "server"
    kind = failure_kind(parsed, default)
    return Failed(
        kind=kind,
        status=status,
        message=_line(provider, kind, status, parsed.message or "", model=model),
        retry_after=retry_delay(parsed, kind),
    )


def from_exception(
    provider: Provider, error: Exception, *, model: str, answer_started: bool
) -> Failed:
    """Return the failure for an exception of the HTTP client, a cloud's package or a decoder.

    `answer_started` is true if a part of the answer had arrived.
    """
    limited = explain_descriptor_limit(error)
    if limited is not None:  # a retry or a fallback would need descriptors too
        message = f"{provider.name} cannot be asked: {limited}."
        return Failed(kind="bad_request", message=message)
    if isinstance(error, StatusError):
        return from_status(provider, error.status, error.headers, error.body, model=model)
    cause: BaseException | None = error
    while cause is not None:
        kind = _error_kind(cause)
        match kind:
            case "timeout":
                return Failed(kind=kind, message=_line(provider, kind, None, "", model=model))
            case "unsendable":
                return unsendable(provider)
            case "connection" | "unreachable":
                if answer_started:
                    return cut(provider.name)
                message = _line(provider, "connection", None, str(cause), model=model)
                return Failed(kind="connection", message=message, unreachable=kind == "unreachable")
            case "unreadable":
                return malformed(provider, "an event of its answer cannot be read")
            case "compressed":
                return malformed(provider, "its answer cannot be decompressed")
        cause = cause.__cause__ or cause.__context__
    refused = _refusal(error)
    if refused is not None:
        status, headers, body = refused
        return from_status(provider, status, headers, body, model=model)
    detail = f"{type(error).__name__}: {error}"
    return Failed(
        kind="bad_request", message=_line(provider, "bad_request", None, detail, model=model)
    )


def _error_kind(error: BaseException) -> _ErrorKind | None:
    """Return the kind of an exception of our HTTP client or of httpx2, or None for any other."""
    our_kind = next(
        (kind for exception_type, kind in _KINDS_BY_EXCEPTION if isinstance(error, exception_type)),
        None,
    )
    if our_kind is not None:
        return our_kind
    if isinstance(error, UnicodeEncodeError) and error.encoding == "ascii":
        return "unsendable"  # raised by httpx2 for a header
    module = sys.modules.get("httpx2")
    if module is None:
        return None
    if isinstance(error, module.LocalProtocolError) and "Illegal header" in str(error):
        return "unsendable"
    return next((kind for name, kind in _HTTPX2 if isinstance(error, getattr(module, name))), None)


def _refusal(error: Exception) -> tuple[int, Mapping[str, str], bytes] | None:
    """Return the status, headers and body of an HTTP error that a cloud's package raised."""
    status, response = getattr(error, "status_code", None), getattr(error, "response", None)
    module = sys.modules.get("httpx2")
    if not isinstance(status, int) or module is None or not isinstance(response, module.Response):
        return None
    return status, response.headers, response.content if response.is_stream_consumed else b""


def unsendable(provider: Provider) -> Failed:
    """Return the failure for a header that cannot be sent. It may be the key: it is not quoted."""
    advice = f"Set {provider.key_env[0]} again, or run" if provider.key_env else "Run"
    return Failed(
        kind="bad_request",
        message=f"{provider.name} cannot be asked: its key or one of its headers has line breaks "
        f"or unusual characters. {advice} `acp-agent login {provider.id}`.",
    )


def malformed(provider: Provider, description: str) -> Failed:
    """Return the failure for an answer that violates the API."""
    return Failed(kind="malformed", message=f"{provider.name} answered badly: {description}.")


def empty(provider: Provider) -> Failed:
    """Return the failure for an empty answer."""
    return malformed(provider, "its answer is empty")


def cut(provider: str) -> Failed:
    """Return the failure for a stream that ended before the answer was complete."""
    return Failed(
        kind="connection",
        message=f"The connection to {provider} broke in the middle of the answer. Try again.",
    )


def timed_out(provider: str, seconds: float, *, answer_started: bool) -> Failed:
    """Return the failure for an answer that started too late or paused too long."""
    allowed = "1 second" if seconds == 1 else f"{seconds:g} seconds"
    description = (
        f"{provider} paused its answer for more than {allowed} (set by limits.stall_timeout)"
        if answer_started
        else f"{provider} did not begin to answer within {allowed} "
        "(set by limits.first_byte_timeout)"
    )
    return Failed(kind="timeout", message=f"{description}. Try again.")


def _line(
    provider: Provider, kind: FailureKind, status: int | None, detail: str, *, model: str
) -> str:
    code = f" (HTTP {status})" if status is not None else ""
    name = provider.name
    words = _clean(provider, detail)
    quoted = f": {words}" if words else ""
    match kind:
        case "auth":
            key = f" or set {provider.key_env[0]}" if provider.key_env else ""
            # The provider's message is left out: it often repeats a part of the key.
            return (
                f"{name} refused the API key{code}. Run its key_command in a terminal: it may "
                "need a login."
                if provider.key_command
                else f"{name} refused the API key{code}. Run `acp-agent login {provider.id}`{key}."
            )
        case "quota":
            return (
                f"{name} says that the account has no credit left{code}{quoted}. Top it up there."
            )
        case "not_found":
            return (
                f"{name} knows no model {model} at {provider.address}{code}{quoted}. "
                "Choose another model, or correct the base URL."
            )
        case "overflow":
            return (
                f"The conversation is too long for {model} at {name}{code}{quoted}. Shorten it "
                "with /compact, or choose a model with a larger window."
            )
        case "rate_limit":
            return f"{name} allows no more requests at the moment{code}{quoted}. Try again later."
        case "overloaded":
            return f"{name} is overloaded at the moment{code}{quoted}. Try again later."
        case "timeout":
            return f"{name} did not answer in time{code}{quoted}. Try again."
        case "connection":
            return f"No connection to {name} at {provider.address}{quoted}. Check the network."
        case "server":
            return f"{name} failed{code}{quoted}. Try again later."
        case _:
            return f"{name} refused the request{code}{quoted}."


def _clean(provider: Provider, detail: str) -> str:
    line = " ".join(
        "".join(character if character.isprintable() else " " for character in detail).split()
    )
    line = scrub(line, (provider.key or "", *credentials_in(provider.headers)))
    line = _LIKE_A_KEY.sub("***", line).rstrip(".")
    return line if len(line) <= _DETAIL_LIMIT else f"{line[:_DETAIL_LIMIT]}…"
