"""A fork from any message, with what was said before it or up to it."""

from __future__ import annotations

import pytest

from acp_agent.errors import InvalidInputError
from acp_agent.events import ModelAnswered, ModelAsked, UserMessage
from acp_agent.ids import MessageId
from acp_agent.session.history.fork import ForkPoint, sound_length
from acp_agent.session.session import Session
from tests.support import child_work
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
    await desk.session.resources.checkpoints.wait_saved()
    return [
        event.message
        for event in await desk.journal()
        if isinstance(event, UserMessage | ModelAsked)
    ]


async def forked(desk: Desk, message: str, *, inclusive: bool) -> Session:
    point = ForkPoint(message=MessageId(message), inclusive=inclusive)
    return await desk.manager.fork(
        desk.session.id, str(desk.folder), [], RecordingEditor(), point=point
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
async def test_a_fork_has_all_messages_up_to_its_point(
    place: int, inclusive: bool, sent: int, desk: Desk, model_server: ModelServer
) -> None:
    messages = await conversation(desk, model_server)
    fork = await forked(desk, messages[place], inclusive=inclusive)
    assert len(fork.core.context.messages) == sent
    assert fork.core.context.messages == desk.session.core.context.messages[:sent]
    assert (desk.folder / "a").read_text() == "1"  # files stay as they are


async def test_a_fork_before_a_message_continues_without_that_message(
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
    fork = await desk.manager.fork(desk.session.id, str(desk.folder), [], desk.editor)
    await desk.manager.delete(desk.session.id)
    await fork.resources.rewinder.rewind("2", "files")
    assert not (desk.folder / "a").exists()


async def test_an_unknown_message_is_refused_and_there_is_no_fork(
    desk: Desk, model_server: ModelServer
) -> None:
    await conversation(desk, model_server)
    with pytest.raises(InvalidInputError, match="no message 'msg_x'"):
        await forked(desk, "msg_x", inclusive=True)
    page = await desk.services.store.list(with_empty=True)
    assert len(page.sessions) == 1


def test_a_fork_point_includes_the_childs_work_of_its_call() -> None:
    asked = MessageId("msg_1")  # the message that has the call
    events = [*child_work.begun(), *child_work.whole()[4:]]
    events.insert(2, ModelAsked(message=asked, model="m"))
    events.insert(4, ModelAnswered(message=asked, model="m"))
    events[-1:] = [ModelAsked(message=MessageId("msg_2"), model="m"), events[-1]]
    through = ForkPoint(message=asked, inclusive=True).length(events)
    assert events[through - 1] == child_work.done()[-1]
    assert sound_length(events[:through]) == through
    with pytest.raises(InvalidInputError):
        ForkPoint(message=child_work.SAID, inclusive=True).length(events)
