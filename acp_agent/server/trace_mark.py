"""The mark by which lines of the log belong to a client's trace.

It is apart from `trace_context`, so that logging has it without what few requests need.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

# For the log alone: whatever a trace is passed on to is given it by name. A request's handler sets
# it in its own task, from which the task of the turn that it begins has it.
TRACE_MARK: Final[ContextVar[str]] = ContextVar("trace_mark", default="")
