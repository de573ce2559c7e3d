"""Find out from the session's journal whether a prompt was answered before a crash."""

from __future__ import annotations

from msgspec import Struct

from acp_agent.cli.session_lookup import open_store
from acp_agent.errors import SessionNotFoundError
from acp_agent.events import AgentText, ToolCalled, TurnEnded, UserMessage
from acp_agent.ids import SessionId


class PromptHistory(Struct, frozen=True):
    """The number of prompts in a session, and the complete answer to one of them, if any."""

    prompts: int
    answer: str | None


async def read_prompts(session: str, before: int) -> PromptHistory | None:
    """Return the answer to the prompt after `before` others; None if there is no such session.

    Raises:
        StoreError: the sessions cannot be read.
    """
    async with open_store() as store:
        if store is None:
            return None
        try:
            events = await store.read_all(SessionId(session))
        except SessionNotFoundError:
            return None
    prompts, answer, text, complete = 0, None, "", False
    for event in (stored.event for stored in events):
        match event:
            case UserMessage(steering=False):
                prompts += 1
                text, complete = "", False
            case AgentText():
                text = event.text if complete else text + event.text
                complete = False
            case ToolCalled():
                complete = True
            case TurnEnded(stop_reason="end_turn") if prompts == before + 1:
                answer = text
    return PromptHistory(prompts, answer)
