"""A fork from any message, with what was said before it or up to it."""

from __future__ import annotations

import pytest

from acp_agent.errors import InvalidInputError
from acp_agent.events import ModelAsked, UserMessage
from acp_agent.ids import MessageId
from acp_agent.session.fork_point import ForkPoint
from acp_agent.session.session import Session
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import Desk, RecordingEditor


async def conversation(desk: Desk, server: ModelServer) -> list[MessageId]:
    """Two turns; the ids of their messages."""
    server.add(
        answer("Let me look.", Call("list", {"path": "."})),
        answer("Nothing."),
        answer("Written.", Call("write", {"path": "a", "content": "1"})),
        answer("Done."),
    )
    await desk.say("Look")
    await desk.say("Write")
    await desk.session.workbench.checkpoints.settled()
    return [
        event.message
        for event in await desk.journal()
        if isinstance(event, UserMessage | ModelAsked)
    ]


async def forked(desk: Desk, message: str, *, inclusive: bool) -> Session:
    point = ForkPoint(message=MessageId(message), inclusive=inclusive)
    return await desk.manager.fork(
        desk.session.session, str(desk.folder), [], RecordingEditor(), point=point
    )


@pytest.mark.parametrize(
    ("place", "inclusive", "sent"),
    [
        (0, False, 0),
        (0, True, 1),
        (1, False, 1),
        (1, True, 3),  # with the result of its call
        (2, True, 4),
        (3, False, 4),
        (3, True, 5),
        (5, False, 7),
        (5, True, 8),
    ],
)
async def test_a_fork_has_what_was_said_up_to_its_point(
    place: int, inclusive: bool, sent: int, desk: Desk, model_server: ModelServer
) -> None:
    messages = await conversation(desk, model_server)
    fork = await forked(desk, messages[place], inclusive=inclusive)
    assert len(fork.context.messages) == sent
    assert fork.context.messages == desk.session.context.messages[:sent]
    assert (desk.folder / "a").read_text() == "1"  # files stay as they are


async def test_a_fork_before_a_message_goes_on_as_if_it_had_not_been_said(
    desk: Desk, model_server: ModelServer
) -> None:
    messages = await conversation(desk, model_server)
    fork = await forked(desk, messages[3], inclusive=False)
    desk._session = fork
    model_server.add(answer("Yes."))
    await desk.say("Something else")
    assert "stopped" not in str(desk.sent())
    assert [words.splitlines()[0] for words in desk.words()] == ["Look", "Something else"]


async def test_a_fork_can_go_back_to_the_checkpoints_of_its_source_also_when_that_is_deleted(
    desk: Desk, model_server: ModelServer
) -> None:
    await conversation(desk, model_server)
    fork = await desk.manager.fork(desk.session.session, str(desk.folder), [], desk.editor)
    await desk.manager.delete(desk.session.session)
    await fork.workbench.rewinder.go("2", "files")
    assert not (desk.folder / "a").exists()


async def test_an_unknown_message_is_refused_and_there_is_no_fork(
    desk: Desk, model_server: ModelServer
) -> None:
    await conversation(desk, model_server)
    with pytest.raises(InvalidInputError, match="no message 'msg_x'"):
        await forked(desk, "msg_x", inclusive=True)
    page = await desk.services.store.list(with_empty=True)
    assert len(page.sessions) == 1
