"""What a client was shown, read from its updates."""

from __future__ import annotations

from typing import Any


def of(updates: list[Any], kind: str) -> list[Any]:
    return [update for update in updates if update["sessionUpdate"] == kind]


def text(updates: list[Any]) -> str:
    return "".join(u["content"]["text"] for u in of(updates, "agent_message_chunk"))
