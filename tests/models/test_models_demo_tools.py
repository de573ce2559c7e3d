"""The demo model's calls fit the parameters of the real tools."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from acp_agent.ids import CallId
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    Message,
    ModelInfo,
    ModelRequest,
    ModelSide,
    ToolResult,
    UserSide,
    UserText,
)
from acp_agent.models.demo.driver import next_step
from tests.support.tool_calls import ToolUser

REQUESTS = [
    "read a.py and b.py", "list", "list src", "search for x", "search for x in src", "find *.py",
    "run ls", "create a.txt with b", "replace a with b in c.py", "fetch https://example.com",
    "plan a; b", "ask Red? yes or no", "ask Why?", "tour",
]  # fmt: skip


@pytest.mark.parametrize("words", REQUESTS)
@pytest.mark.parametrize("listing", ["test_greeting.py", "other.py"])
def test_every_call_of_every_step_is_valid(words: str, listing: str, tmp_path: Path) -> None:
    tools = ToolUser(tmp_path).tools
    specs = tools.specs()
    messages: list[Message] = [UserSide((UserText(words),))]
    made = 0
    for _ in range(20):
        request = ModelRequest(
            model=ModelInfo(provider="demo", id="demo"), system="", messages=messages, tools=specs
        )
        step = next_step(request)
        calls = [
            AnswerCall(
                call=CallId(f"{len(messages)}-{index}"),
                name=call.tool,
                arguments=msgspec.json.encode(call.arguments).decode(),
            )
            for index, call in enumerate(step.calls)
        ]
        if not calls:
            break
        for call in calls:
            tools.resolve(call.name, call.arguments)
            made += 1
        messages.append(ModelSide((AnswerText(step.text), *calls)))
        messages.append(UserSide(tuple(ToolResult(call=call.call, text=listing) for call in calls)))
    assert made > 0
