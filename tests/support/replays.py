"""Compares what an editor was shown live with what a replay shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Json = dict[str, Any]

CHUNKS = {"agent_message_chunk", "agent_thought_chunk", "user_message_chunk"}
STATE = {"available_commands_update", "current_mode_update", "config_option_update"}


def conversation(updates: Sequence[Json]) -> list[Json]:
    """The updates that tell the conversation, adjacent pieces of one message joined.

    How a message is cut into pieces is the model's doing and means nothing; all else counts.
    """
    told: list[Json] = []
    for update in updates:
        if update["sessionUpdate"] in STATE:
            continue
        last = told[-1] if told else None
        if last is not None and _continues(last, update):
            text = last["content"]["text"] + update["content"]["text"]
            told[-1] = last | {"content": last["content"] | {"text": text}}
        else:
            told.append(update)
    return told


def without_user(updates: Sequence[Json]) -> list[Json]:
    """The updates without the user's own words, which are only shown in a replay."""
    return [update for update in updates if update["sessionUpdate"] != "user_message_chunk"]


def _continues(last: Json, update: Json) -> bool:
    return (
        update["sessionUpdate"] in CHUNKS
        and last["sessionUpdate"] == update["sessionUpdate"]
        and last.get("messageId") == update.get("messageId")
        and last["content"]["type"] == update["content"]["type"] == "text"
    )
