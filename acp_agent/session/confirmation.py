"""Ask the user to allow something that is not a call of the model."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence

from acp_agent.agent.resources import PermissionRequest
from acp_agent.content import CallContent
from acp_agent.errors import EditorFailedError, EditorGoneError
from acp_agent.events import PermissionAsked, PermissionDecided, ToolCalled, ToolEnded
from acp_agent.ids import SessionId, new_call_id, new_message_id
from acp_agent.permissions.access import Ask, Choice, Decision
from acp_agent.session.client import Client

_log = logging.getLogger(__name__)


async def confirm(
    client: Client,
    session: SessionId,
    notify: Callable[..., Awaitable[None]],
    *,
    name: str,
    title: str,
    content: tuple[CallContent, ...],
    choices: Sequence[Choice],
    by_user_only: bool = False,
) -> Decision:
    """Ask for permission with a call of its own, which is shown and not journaled.

    Args:
        notify: shows events that are not part of the conversation.
        name: the name of the call.
        by_user_only: whether the answer of a flag counts as none.

    Returns:
        The decision, without a choice if the user could not be asked or chose none.
    """
    call, decision = new_call_id(), Decision(by="nobody")
    await notify(
        ToolCalled(
            call=call,
            message=new_message_id(),
            name=name,
            arguments="{}",
            title=title,
            content=content,
        ),
        PermissionAsked(call=call, options=tuple(choice.id for choice in choices)),
    )
    request = PermissionRequest(
        call=call, title=title, kind="other", arguments="{}", content=content
    )
    try:
        decision = await client.ask_permission(session, request, Ask(choices=tuple(choices)))
        if by_user_only and decision.by != "user":
            decision = Decision(by=decision.by)
    except (EditorFailedError, EditorGoneError):
        _log.info("the user could not be asked: %s", title)
    finally:
        allowed = decision.choice is not None and decision.choice.kind.startswith("allow")
        await notify(
            PermissionDecided(call=call, allowed=allowed, by=decision.by),
            ToolEnded(call=call, failed=not allowed),
        )
    return decision
