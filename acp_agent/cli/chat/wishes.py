"""How a conversation is to begin, and why it may not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.agent_client import START_SECONDS
from acp_agent.errors import AcpAgentError

QUIT_SECONDS = 3.0  # after Ctrl-C with nothing to cancel, in which a second one quits


class ChatError(AcpAgentError):
    """The chat cannot begin; the message says why."""


class Wishes(Struct, frozen=True, kw_only=True):
    """How a conversation is to begin.

    Attributes:
        command: what starts the agent.
        cwd: the folder to work in.
        resume: a session's id, or `latest` for the last one of the folder.
        options: what sessions are given, by option id or category.
        patience: seconds that the agent gets for each answer but that of a turn.
        prompt: what the user said with the command, sent first.
        again: how the chat was started, without the session, to go on with it.
    """

    command: Sequence[str]
    cwd: Path
    resume: str | None = None
    options: Mapping[str, str] = {}
    patience: float = START_SECONDS
    prompt: str = ""
    again: str = "acp-agent chat"
