"""A session whose opening is cancelled in the very moment in which it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, cast

import pytest

from acp_agent.ids import SessionId
from acp_agent.server.core import Core
from acp_agent.server.editor import ClientEditor
from acp_agent.server.operations import Operations
from acp_agent.session.client import AttachedClient

NAME = SessionId("sess_a")


class Open:
    """A session whose seat is the real one, and all that `Operations` sees around it."""

    def __init__(self) -> None:
        self.id = NAME
        self.core = self.journal = self
        self.turn = None
        self.client = AttachedClient(NAME, on_timeout=lambda: None)
        self.abandoned = False

    def attach(self, editor: ClientEditor[Any], _left: object = ()) -> None:
        self.client.attach(editor)

    async def run_exclusively(self, action: Callable[[], Awaitable[None]]) -> None:
        await action()
        raise asyncio.CancelledError

    async def open(self, session: SessionId, *_: object, **__: object) -> Open:
        assert session == NAME
        return self

    def close_when_idle(self, session: Open) -> None:
        assert session is self
        self.abandoned = True

    async def manager(self) -> Open:
        return self


class Editor:
    """A connection's end of its sessions."""

    def __init__(self) -> None:
        self.forgotten: list[SessionId] = []

    def find_parent(self, session: SessionId) -> None:
        assert session == NAME

    def forget(self, session: SessionId) -> None:
        self.forgotten.append(session)


@pytest.mark.covers("T5")
@pytest.mark.parametrize("is_again", [False, True])
async def test_a_client_whose_request_was_cancelled_has_the_session_only_if_it_had_it_before(
    is_again: bool,
) -> None:
    opened_session, editor = Open(), cast("Any", Editor())
    if is_again:
        opened_session.attach(editor)
    operations = Operations(cast("Core", opened_session), editor)

    async def nothing(_: object) -> None:
        return None

    with pytest.raises(asyncio.CancelledError):
        await operations.open(NAME, "/", (), then=nothing)
    assert (opened_session.client.current is editor) is is_again
    assert opened_session.abandoned is not is_again
    assert editor.forgotten == ([] if is_again else [NAME])
