"""Makes events fit for UTF-8 before they are kept or shown, so that both have the same text.

A model can send half of a character as an escape of its own (RFC 8259, section 8.2), which neither
the journal nor the wire can hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from acp_agent.events import AgentText, AgentThought, AnyEvent, ToolOutput
from acp_agent.session.store.event_codec import merge_adjacent, repaired


def repaired_events(events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
    """The events without lone surrogates, and as they are where there are none.

    Halves of one character that came in neighbouring pieces of a text are joined.
    """
    if not any(map(_is_broken, events)):
        return events
    return [_repaired(event) if _is_broken(event) else event for event in merge_adjacent(events)]


def _is_broken(event: AnyEvent) -> bool:
    try:
        if isinstance(event, AgentText | AgentThought | ToolOutput):  # most events by far
            if not event.text.isascii():
                event.text.encode()
        else:
            msgspec.json.encode(event)
    except UnicodeEncodeError:
        return True
    except (TypeError, ValueError, RecursionError):
        return False  # the store says what is wrong with it
    return False


def _repaired(event: AnyEvent) -> AnyEvent:
    values = _repaired_value(msgspec.to_builtins(event))
    return msgspec.convert(values, type(event))


def _repaired_value(value: Any) -> Any:  # JSON, of any kind
    if isinstance(value, str):
        return repaired(value)
    if isinstance(value, dict):
        return {_repaired_value(key): _repaired_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_repaired_value(item) for item in value]
    return value
