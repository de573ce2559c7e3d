"""Prompts, and what stops the work that they start."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta

from protocol.v2.base import MessageId, RequestId, SessionId, TerminalId, ToolCallId, Wire
from protocol.v2.content import ContentBlock


class PromptRequest(Wire, frozen=True, kw_only=True):
    """What the user says to the agent: at least one block."""

    session_id: SessionId
    prompt: Annotated[Sequence[ContentBlock], Meta(min_length=1)]


class PromptResponse(Wire, frozen=True, kw_only=True):
    """The prompt is accepted, as the message of this id. A `state_update` tells of its end."""

    message_id: MessageId


class CancelSessionNotification(Wire, frozen=True, kw_only=True):
    """Stop what the session is doing in the foreground."""

    session_id: SessionId


class CancelToolCallRequest(Wire, frozen=True, kw_only=True):
    """Stop one tool call, and nothing else."""

    session_id: SessionId
    tool_call_id: ToolCallId


class CancelToolCallResponse(Wire, frozen=True, kw_only=True):
    """It is being stopped; a `tool_call_update` tells of its end."""


class CancelTerminalRequest(Wire, frozen=True, kw_only=True):
    """Stop what runs in one terminal."""

    session_id: SessionId
    terminal_id: TerminalId


class CancelTerminalResponse(Wire, frozen=True, kw_only=True):
    """It is being stopped; a `terminal_update` tells of its end."""


class CancelRequestNotification(Wire, frozen=True, kw_only=True):
    """Stop working on a request; either side may send it."""

    request_id: RequestId
