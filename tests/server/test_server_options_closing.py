"""An option that changes while its session is being closed hides nothing of what follows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from acp_agent.config.localization import ENGLISH
from acp_agent.errors import SessionNotFoundError
from acp_agent.events import ConfigChanged, TitleChanged
from acp_agent.ids import SessionId
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.v1.editor import EditorV1
from acp_agent.server.v2.editor import EditorV2

NAME = SessionId("sess_a")


class Closing:
    """The sessions of a process in which the one that is asked for is being closed."""

    def find(self, session: SessionId) -> None:
        assert session == NAME

    def get(self, session: SessionId, _: object) -> None:
        raise SessionNotFoundError(session)


@pytest.mark.covers("S3", "T6")
@pytest.mark.parametrize("editor", [EditorV1, EditorV2])
async def test_updates_after_an_option_are_shown_while_the_session_closes(
    editor: type[EditorV1 | EditorV2],
) -> None:
    updates: list[Any] = []

    async def drain() -> None:
        return

    connection: Any = SimpleNamespace(
        notify=lambda _, params: updates.append(params.update), drain=drain
    )
    handshake: Any = SimpleNamespace(client=ClientProfile())
    core: Any = SimpleNamespace(active_manager=Closing(), translate=ENGLISH)
    changed = ConfigChanged(option="model", value="demo/demo")
    client_editor = editor(connection, handshake, core, lambda *_: None)
    await client_editor.show(NAME, [changed, TitleChanged(title="After it")])
    assert [update.title for update in updates] == ["After it"]
