"""Words that come while the user is told that an answer was cut off."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from acp_agent.events import AgentText, AnyEvent
from acp_agent.ids import SessionId
from acp_agent.session.turns.turn import Turn
from tests.support.model_server import ModelServer, answer
from tests.support.open_session import Desk


async def test_a_message_sent_in_the_last_moment_of_an_interrupted_turn_is_answered(
    desk: Desk, model_server: ModelServer
) -> None:
    model_server.otherwise = lambda request: (
        answer("In short: yes.") if b"shorter" in request.body else answer("As far", stop="length")
    )
    show, said = desk.editor.show, list[asyncio.Task[Turn]]()

    async def speak_up(session: SessionId, events: Sequence[AnyEvent]) -> None:
        await show(session, events)
        told = any(isinstance(one, AgentText) and "cut off" in one.text for one in events)
        turn = desk.session.turn
        if told and turn is not None:
            said.append(asyncio.create_task(desk.begin("shorter")))
            while not turn._steered:  # from there on the words are on their way to the journal
                await asyncio.sleep(0)

    desk.editor.show = speak_up  # type: ignore[method-assign]  # what the editor does at that moment
    assert await desk.say("well?") == "end_turn"
    assert len(said) == 1
    assert desk.words()[-1] == "shorter"
