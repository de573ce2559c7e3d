"""Typed identifiers that sort by creation time.

The layout is UUID version 7 (RFC 9562, section 5.7) in hex, after a prefix for the kind. A counter
orders the ids of one millisecond.
"""

from __future__ import annotations

import os
import threading
import time
from typing import NewType

SessionId = NewType("SessionId", str)
TurnId = NewType("TurnId", str)
MessageId = NewType("MessageId", str)
CallId = NewType("CallId", str)

_lock = threading.Lock()
_last = (0, 0)

_REWIND = "rew_"


def _time_ordered() -> str:
    global _last  # noqa: PLW0603 - the process has one clock
    with _lock:
        millisecond = time.time_ns() // 1_000_000
        # If the clock is set back, keep the last tick and count up, so that the order holds.
        tick = (millisecond, 0) if millisecond > _last[0] else (_last[0], _last[1] + 1)
        if tick[1] > 0xFFF:
            tick = (tick[0] + 1, 0)
        _last = tick
    random = int.from_bytes(os.urandom(8), "big") & 0x3FFF_FFFF_FFFF_FFFF
    return f"{tick[0]:012x}7{tick[1]:03x}{random | 0x8000_0000_0000_0000:016x}"


def new_session_id() -> SessionId:
    """Return a new session's id."""
    return SessionId(f"sess_{_time_ordered()}")


def new_turn_id() -> TurnId:
    """Return a new turn's id."""
    return TurnId(f"turn_{_time_ordered()}")


def new_message_id() -> MessageId:
    """Return a new message's id."""
    return MessageId(f"msg_{_time_ordered()}")


def new_call_id() -> CallId:
    """Return a new tool call's id, in characters that every provider accepts."""
    return CallId(f"call_{_time_ordered()}")


def new_checkpoint_id() -> str:
    """Return a new checkpoint's id."""
    return f"ckpt_{_time_ordered()}"


def new_rewind_id() -> str:
    """Return a new rewind's id."""
    return f"{_REWIND}{_time_ordered()}"


def is_rewind_id(name: str) -> bool:
    """Return whether an id is that of a rewind."""
    return name.startswith(_REWIND)


def new_compaction_id() -> str:
    """Return a new compaction's id."""
    return f"comp_{_time_ordered()}"


def new_flow_id() -> str:
    """Return a new id for a run of a workflow."""
    return f"flow_{_time_ordered()}"
