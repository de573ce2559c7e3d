"""The trace that a client's request is part of (W3C Trace Context, level 1; W3C Baggage).

A client puts it into the root of a request's `_meta` (Extensibility, The `_meta` Field).
"""

from __future__ import annotations

import re
from contextvars import ContextVar
from typing import Any, Final

from msgspec import Struct

TRACESTATE_CHARACTERS = 512  # Trace Context, section 3.3.1.5: at least so many are passed on
TRACESTATE_MEMBERS = 32  # section 3.3.1.1
BAGGAGE_CHARACTERS = 8_192  # Baggage, section 3.3.2

# Trace Context, section 3.2: version, trace, caller's span, flags. The patterns are compiled when
# first used, as few clients trace.
_TRACEPARENT = r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})"
_MEMBER = r"[ \t]*[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}[ \t]*"
_VISIBLE = r"[\x20-\x7e]+"
# Only for the log. A request's handler sets it in its task, and the turn's task inherits it.
TRACE_MARK: Final[ContextVar[str]] = ContextVar("trace_mark", default="")


class TraceContext(Struct, frozen=True, kw_only=True):
    """A trace, and where in it the client is."""

    traceparent: str
    tracestate: str | None = None
    baggage: str | None = None

    @property
    def mark(self) -> str:
        """The end of log lines that belong to the trace."""
        _, trace, span, _ = self.traceparent.split("-")
        return f" trace={trace} span={span}"

    @property
    def meta(self) -> dict[str, Any]:
        """The trace as the root of a `_meta` for the client."""
        return self.parent if self.baggage is None else {**self.parent, "baggage": self.baggage}

    @property
    def parent(self) -> dict[str, Any]:
        """The trace as a `_meta` for others, without baggage, which may be private.

        Source: W3C Baggage, Privacy Considerations.
        """
        fields = {"traceparent": self.traceparent, "tracestate": self.tracestate}
        return {name: value for name, value in fields.items() if value is not None}


def trace_context(meta: dict[str, Any]) -> TraceContext | None:
    """Return the trace that a `_meta` names; None without a well-formed one.

    Malformed parts are left out, so that they do not fail the request.
    """
    parent = meta.get("traceparent")
    if not isinstance(parent, str):
        return None
    match = re.fullmatch(_TRACEPARENT, parent)
    if match is None or match[1] == "ff" or not int(match[2], 16) or not int(match[3], 16):
        return None
    state, baggage = meta.get("tracestate"), meta.get("baggage")
    return TraceContext(
        traceparent=parent,
        tracestate=state if isinstance(state, str) and _is_state(state) else None,
        baggage=baggage if isinstance(baggage, str) and _is_baggage(baggage) else None,
    )


def take_over(meta: dict[str, Any]) -> None:
    """Mark the log lines of the current task and of the tasks that it starts."""
    context = trace_context(meta)
    if context is not None:
        TRACE_MARK.set(context.mark)


def _is_state(text: str) -> bool:
    members = text.split(",")
    if len(text) > TRACESTATE_CHARACTERS or len(members) > TRACESTATE_MEMBERS:
        return False
    return all(re.fullmatch(_MEMBER, member) for member in members if member.strip())


def _is_baggage(text: str) -> bool:
    return len(text) <= BAGGAGE_CHARACTERS and re.fullmatch(_VISIBLE, text) is not None
