"""What can still be read of an event whose bytes are damaged: its text, up to the damage."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from acp_agent.events import AnyEvent

# The kinds that have a text worth reading in part, with the field that must have begun.
_TEXTS = {
    "user_message": "content",
    "agent_text": "text",
    "agent_thought": "text",
    "tool_called": "arguments",
    "tool_output": "text",
    "tool_ended": "result",
    "plan_changed": "entries",
}
_CONTROLS = bytes(range(0x20))
_PLACE = re.compile(r"line 1 column (\d+)$")


def salvaged(raw: bytes) -> AnyEvent | None:
    """The event with what can be read of its text; None where that is not enough to be one."""
    value = _beginning(raw)
    if not isinstance(value, dict):
        return None
    told = value.get("did") if value.get("event") == "child_worked" else value
    if not isinstance(told, dict) or _TEXTS.get(str(told.get("event")), "") not in told:
        return None
    if told["event"] == "tool_called":
        _complete_call(told)
    try:
        event: AnyEvent = msgspec.convert(value, AnyEvent)
    except (msgspec.ValidationError, TypeError, ValueError):
        return None
    return event


def _beginning(raw: bytes) -> Any:
    """The JSON value that `raw` begins with, as far as it goes."""
    from pydantic_core import from_json  # noqa: PLC0415 - for damage only

    # Bytes that are not UTF-8 become U+FFFD; none may end a line or a text.
    text = raw.translate(bytes.maketrans(_CONTROLS, b" " * len(_CONTROLS)))
    data = text.decode("utf-8", "replace").encode()
    for _ in range(2):
        try:
            return from_json(data, allow_partial="trailing-strings")
        except ValueError as error:
            place = _PLACE.search(str(error))
            if place is None:
                return None
            data = data[: int(place[1]) - 1]
    return None


def _complete_call(told: dict[str, Any]) -> None:
    """Give a call that ends in its arguments what else it must have."""
    told.setdefault("title", told.get("name", ""))
    try:
        msgspec.json.decode(str(told["arguments"]).encode())
    except msgspec.DecodeError:
        told["arguments"] = "{}"
