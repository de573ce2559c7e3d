"""The question whether a call may run (Agent Client Protocol v2, Requesting Permission)."""

from __future__ import annotations

from acp_agent.agent.host import Asking
from acp_agent.config.message_catalog import ENGLISH, Words
from acp_agent.ids import SessionId
from acp_agent.permissions.access import Ask
from acp_agent.session.telling import title_in
from protocol.v2 import types as acp


def permission_request(
    session: SessionId, asking: Asking, ask: Ask, words: Words = ENGLISH
) -> acp.RequestPermissionRequest:
    """The question with its buttons. A warning is part of the question, and not of the call."""
    return acp.RequestPermissionRequest(
        session_id=session,
        title=title_in(asking.title, words),
        description=ask.warning or None,
        subject=permission_subject(asking),
        options=[
            acp.PermissionOption(option_id=choice.id, name=choice.label, kind=choice.kind)
            for choice in ask.choices
        ],
    )


def permission_subject(asking: Asking) -> acp.RequestPermissionSubject:
    """What the question is about: a command line, or else the call, which the client knows."""
    if asking.command is not None and asking.cwd is not None:
        return command_subject(asking, asking.command, asking.cwd)
    return tool_call_subject(asking)


def command_subject(asking: Asking, command: str, cwd: str) -> acp.CommandPermissionSubject:
    """A command line. Its terminal has the id of its call, but is not there before it runs."""
    return acp.CommandPermissionSubject(command=command, cwd=cwd, tool_call_id=asking.call)


def tool_call_subject(asking: Asking) -> acp.ToolCallPermissionSubject:
    """A call. All that it shows was told by updates before the question, and stays as it is."""
    return acp.ToolCallPermissionSubject(tool_call=acp.ToolCallUpdate(tool_call_id=asking.call))
