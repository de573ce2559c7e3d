"""UNSTABLE: the system prompt that a client gives to a session."""

from __future__ import annotations

from collections.abc import Sequence

from protocol.v1.base import Wire
from protocol.v1.content import ContentBlock
from protocol.v1.sessions import SystemPrompt, SystemPromptMode


class GivenSystemPrompt(Wire, SystemPrompt, frozen=True, kw_only=True):
    """Instructions, and whether they are added to the agent's (`append`) or replace them."""

    mode: SystemPromptMode
    content: Sequence[ContentBlock]
