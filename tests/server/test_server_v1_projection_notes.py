"""How version 1 shows a notice to a client that has none: on one line, as a thought."""

from __future__ import annotations

import pytest

from acp_agent.events import NoticeShown
from acp_agent.server.handshake import ClientProfile
from acp_agent.server.v1.projection import Projector
from protocol.v1 import types as acp


@pytest.mark.covers("P8", "P11")
@pytest.mark.parametrize(
    ("title", "description", "line"),
    [
        ("The turn waits.", "", "The turn waits."),
        (
            "gpt answers instead",
            "OpenAI is overloaded",
            "gpt answers instead: OpenAI is overloaded",
        ),
        ("The turn was cut…", "It is kept.", "The turn was cut…: It is kept."),
        ("The turn was cut.", "It is kept.", "The turn was cut. It is kept."),
        ("改由 gpt 回答", "OpenAI 过载", "改由 gpt 回答：OpenAI 过载"),
        ("本轮已中断。", "内容已保留。", "本轮已中断。内容已保留。"),
    ],
)
def test_a_title_and_its_description_form_one_line(title: str, description: str, line: str) -> None:
    projector = Projector(ClientProfile(), replay=False)
    event = NoticeShown(severity="info", title=title, description=description)
    (update,) = projector.project(event)
    assert isinstance(update, acp.AgentThoughtChunk)
    assert isinstance(update.content, acp.TextContent)
    assert update.content.text.strip() == f"_{line}_"
