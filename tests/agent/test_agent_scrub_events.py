"""Secrets are removed from the events that hold what hooks and servers said."""

from __future__ import annotations

import base64

import msgspec

from acp_agent.agent.scrub_events import scrub_event
from acp_agent.events import HookAnswered, ServerTool, ServerToolsOffered
from acp_agent.ids import CallId

KEY = "sk-proj-Zq8mT3xW9pLd5RvB2nYc7KfH4sGj6QaE"
SPELLINGS = (KEY, base64.b64encode(KEY.encode()).decode(), KEY.encode().hex(), KEY[::-1])


def spelled_in(event: HookAnswered | ServerToolsOffered) -> list[str]:
    """The spellings of the key in an event without secrets."""
    text = msgspec.json.encode(scrub_event(event, [KEY])).decode()
    assert "[secret]" in text
    return [spelling for spelling in SPELLINGS if spelling in text]


def test_the_journal_has_no_secret_of_an_answer_of_hooks() -> None:
    for spelling in SPELLINGS:
        answer = {"context": spelling, "arguments": {"command": ["echo", spelling]}}
        event = HookAnswered(
            on="PreToolUse",
            subject=f'{{"prompt":"{spelling}"}}',
            call=CallId("call_1"),
            name=f"curl -H {spelling}",
            answer=answer,
        )
        assert spelled_in(event) == []


def test_the_journal_has_no_secret_of_a_tool_of_a_server() -> None:
    for spelling in SPELLINGS:
        tool = ServerTool(
            name="mcp__memo__echo",
            title=f"memo: {spelling}",
            description=f"Uses {spelling}.",
            parameters={"type": "object", "properties": {"a": {"default": spelling}}},
        )
        assert spelled_in(ServerToolsOffered(tools=(tool,))) == []
