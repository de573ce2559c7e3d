"""A session that another connection has open: whoever did not open it can do nothing with it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.remote.conftest import StartListening
from tests.server.remote.remote_clients import websocket_client
from tests.support.editor import Editor
from tests.support.framing import Json
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2

WORDS: Json = {"prompt": [{"type": "text", "text": "and me?"}]}
REQUESTS: dict[int, dict[str, Json]] = {
    1: {
        "session/prompt": WORDS,
        "session/set_mode": {"modeId": "full"},
        "session/set_config_option": {"configId": "mode", "value": "full"},
        "_session/steering": WORDS,
    },
    2: {
        "session/prompt": WORDS,
        "session/set_config_option": {"configId": "mode", "type": "id", "value": "full"},
        "tool_call/cancel": {"toolCallId": "call_x"},
        "terminal/cancel": {"terminalId": "call_x"},
    },
}


@pytest.mark.covers("S6", "P7")
@pytest.mark.parametrize("version", [1, 2])
async def test_another_connection_neither_drives_nor_stops_a_turn(
    listening: StartListening, model_server: ModelServer, project: Path, version: int
) -> None:
    stall = Stall()
    model_server.add(answer("Half ", stall, "and half."))
    agent = listening("--model", "openai/gpt-5", environ=model_server.environ("openai"))
    editor = Editor() if version == 1 else EditorV2()
    async with websocket_client(agent) as owner, websocket_client(agent, editor=editor) as second:
        await owner.initialize()
        session = await owner.new_session(project)
        request_id = owner.post_prompt(session, "go")
        await owner.expect_update(session, "agent_message_chunk")

        starter = second if version == 1 else V2Client(second)
        await starter.initialize()
        for method, params in REQUESTS[version].items():
            error = (await second.answer(second.post(method, {"sessionId": session} | params)))[
                "error"
            ]
            assert error["code"] == -32002, method
            assert "not open here" in error["message"], method
        second.notify("session/cancel", {"sessionId": session})
        closed = await second.answer(second.post("session/close", {"sessionId": session}))
        assert ("error" in closed) == (version == 1)  # in version 2 what is not there is closed

        stall.release()
        assert (await owner.result(request_id))["stopReason"] == "end_turn"
        assert owner.text(session) == "Half and half."
        assert second.updates(session) == []
        assert len(model_server.requests) == 1
