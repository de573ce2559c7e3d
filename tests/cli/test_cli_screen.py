"""What a turn shows in a terminal or a pipe, line by line."""

from __future__ import annotations

from pathlib import Path

import pytest

from acp_agent.cli.agent_client import PermissionRequest
from acp_agent.cli.output import escape_hidden
from acp_agent.cli.screen import Screen, Style
from protocol.v1 import types as acp

HIDDEN = "ls \u2028rm x\x0c\x85\x1c and more\nthe second line"


@pytest.fixture
def lines() -> list[str]:
    return []


@pytest.fixture
def screen(lines: list[str]) -> Screen:
    def paint(text: str, _: Style) -> None:
        lines.append(escape_hidden(text))

    return Screen(paint, cwd=Path("/w"))


def part(text: str) -> acp.Content:
    return acp.Content(content=acp.TextContent(text=text))


def test_unusual_line_separators_are_escaped_in_a_question(
    screen: Screen, lines: list[str]
) -> None:
    call = acp.ToolCallProgress(tool_call_id="call_1", content=[part(HIDDEN)])
    request = acp.RequestPermissionRequest(session_id="sess_1", tool_call=call, options=[])
    screen.permission(
        PermissionRequest(title="Run a command", kind="execute", options=(), request=request)
    )
    assert "".join(lines).endswith(
        "    ls \\u2028rm x\\x0c\\x85\\x1c and more\n    the second line\n"
    )


def test_unusual_line_separators_are_escaped_in_errors_and_output(
    screen: Screen, lines: list[str]
) -> None:
    screen.update(acp.ToolCall(tool_call_id="call_1", title="Run"))
    output = {"terminal_output": {"terminal_id": "call_1", "data": HIDDEN}}
    screen.update(acp.ToolCallProgress(tool_call_id="call_1", meta=output))
    screen.update(
        acp.ToolCallProgress(tool_call_id="call_1", status="failed", content=[part(HIDDEN)])
    )
    text = "".join(lines)
    first = "ls \\u2028rm x\\x0c\\x85\\x1c and more\n"
    assert f"    | {first}    | the second line\n" in text
    assert text.endswith(f"    {first}    the second line\n")


def test_a_notice_has_a_title_and_a_description(screen: Screen, lines: list[str]) -> None:
    screen.update(acp.Notice(severity="warning", title="Big answers instead", description="Why."))
    screen.update(acp.Notice(severity="info", title="Said"))
    screen.update(acp.Notice(severity="info", title="That is wrong.", description="So."))
    screen.update(acp.Notice(severity="info", title="不对。", description="因此"))
    assert "".join(lines).splitlines() == [
        "! Big answers instead: Why.",
        "! Said",
        "! That is wrong. So.",
        "! 不对。因此",
    ]
