"""All kinds of session update, for those who read them."""

from __future__ import annotations

from typing import Any, Final

from protocol.codec.open_union import OpenUnion, string_in
from protocol.v2 import (
    commands,
    compactions,
    config_options,
    messages,
    plans,
    session_info,
    subagents,
    terminals,
    tool_calls,
)
from protocol.v2.session_states import session_state_variant
from protocol.v2.session_update import OtherSessionUpdate, SessionUpdate

# But `state_update`, which has several.
UPDATES: Final[dict[str, type[SessionUpdate]]] = {
    "user_message_chunk": messages.UserMessageChunk,
    "user_message": messages.UserMessage,
    "agent_message_chunk": messages.AgentMessageChunk,
    "agent_message": messages.AgentMessage,
    "agent_thought_chunk": messages.AgentThoughtChunk,
    "agent_thought": messages.AgentThought,
    "tool_call_content_chunk": tool_calls.ToolCallContentChunk,
    "tool_call_update": tool_calls.ToolCallProgress,
    "terminal_update": terminals.TerminalUpdate,
    "terminal_output_chunk": terminals.TerminalOutputChunk,
    "plan_update": plans.PlanUpdate,
    "available_commands_update": commands.AvailableCommandsUpdate,
    "config_option_update": config_options.ConfigOptionUpdate,
    "session_info_update": session_info.SessionInfoUpdate,
    "usage_update": session_info.UsageUpdate,
    "notice": session_info.Notice,
    "compaction_update": compactions.CompactionUpdate,
    "compaction_summary_chunk": compactions.CompactionSummaryChunk,
    # UNSTABLE from here on.
    "plan_removed": plans.PlanRemoved,
    "subagent_update": subagents.SubagentUpdate,
    "session_message": subagents.SessionMessage,
    "session_message_chunk": subagents.SessionMessageChunk,
}


def variant_of(value: dict[str, Any]) -> type[OpenUnion]:
    """The variant of `SessionUpdate` that a JSON object is meant to be.

    Raises:
        ValueError: it does not say which.
    """
    kind = string_in(value, "sessionUpdate")
    if kind == "state_update":
        return session_state_variant(value)
    return UPDATES.get(kind, OtherSessionUpdate)
