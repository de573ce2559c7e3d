"""Mode, model and thought level, as config options and as the older modes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import DEMO, EDIT, MODELS, READ, OpenSession
from tests.support.agent_process import AgentProcess, StartAgent, config_file
from tests.support.editor import Editor
from tests.support.model_server import ModelServer, answer
from tests.support.wire_client import AnswerError

MODES = ["ask", "accept-edits", "plan", "draft", "full"]


def current_value(options: list[dict[str, Any]], option: str) -> str:
    """The current value of an option."""
    return next(str(one["currentValue"]) for one in options if one["id"] == option)


async def state(running: AgentProcess, session: str, cwd: Path) -> dict[str, Any]:
    """The modes and options of a session as a client that opens it is told."""
    params = {"sessionId": session, "cwd": str(cwd)}
    result = await running.request("session/resume", params)
    assert isinstance(result, dict)
    return result


@pytest.mark.covers("S3")
async def test_a_new_session_has_its_options_and_modes(
    opened: OpenSession, home: Path, workspace_repo: Path
) -> None:
    config_file(home, MODELS)
    running, _ = await opened()
    result = await running.request("session/new", {"cwd": str(workspace_repo), "mcpServers": []})
    options = result["configOptions"]
    assert [(one["id"], one["category"], one["type"]) for one in options] == [
        ("mode", "mode", "select"),
        ("model", "model", "select"),
        ("thought_level", "thought_level", "select"),
        ("agent", "_agent", "select"),
    ]
    assert [one["value"] for one in options[0]["options"]] == MODES
    assert [mode["id"] for mode in result["modes"]["availableModes"]] == MODES
    assert current_value(options, "mode") == result["modes"]["currentModeId"] == "ask"
    assert current_value(options, "model") == "openai/gpt-5"
    for option in options:
        assert option["currentValue"] in [one["value"] for one in option["options"]]


@pytest.mark.covers("S3")
async def test_setting_either_form_sets_both_and_tells_both(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    mode = {"sessionId": session, "modeId": "plan"}
    assert await running.request("session/set_mode", mode) == {}
    assert running.updates(session, "current_mode_update")[-1]["currentModeId"] == "plan"
    options = running.updates(session, "config_option_update")[-1]["configOptions"]
    assert current_value(options, "mode") == "plan"

    option = {"sessionId": session, "configId": "mode", "value": "full"}
    result = await running.request("session/set_config_option", option)
    assert current_value(result["configOptions"], "mode") == "full"
    assert len(result["configOptions"]) == len(options)
    assert running.updates(session, "current_mode_update")[-1]["currentModeId"] == "full"

    second_state = await state(running, session, workspace_repo)
    assert second_state["modes"]["currentModeId"] == "full"
    assert current_value(second_state["configOptions"], "mode") == "full"


@pytest.mark.covers("S3", "T4")
async def test_an_invalid_option_is_refused_and_changes_nothing(
    agent: StartAgent, workspace_repo: Path
) -> None:
    running = await agent(*DEMO)
    await running.initialize()
    session = await running.new_session(workspace_repo)
    for option, value, field in (
        ("mode", "yolo", "value"),
        ("mode", 7, "value"),
        ("mode", True, "value"),
        ("model", "nobody/nothing", "value"),
        ("colour", "red", "configId"),
    ):
        with pytest.raises(AnswerError) as caught:
            await running.request(
                "session/set_config_option",
                {"sessionId": session, "configId": option, "value": value},
            )
        assert caught.value.code == -32602, option
        assert field in caught.value.message
    with pytest.raises(AnswerError) as caught:
        await running.request("session/set_mode", {"sessionId": session, "modeId": "yolo"})
    assert caught.value.code == -32602
    assert "yolo" in caught.value.message
    assert running.updates(session, "current_mode_update") == []
    assert (await state(running, session, workspace_repo))["modes"]["currentModeId"] == "ask"


@pytest.mark.covers("S3")
async def test_model_and_thought_level_go_to_the_next_request(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    config_file(home, MODELS)
    model_server.otherwise = answer("Yes.")
    running, session = await opened()
    await running.prompt(session, "hi")
    assert model_server.requests[-1].json["model"] == "gpt-5"
    for option, value in (("model", "openai/small"), ("thought_level", "high")):
        result = await running.request(
            "session/set_config_option",
            {"sessionId": session, "configId": option, "value": value},
        )
        assert current_value(result["configOptions"], option) == value
        options = running.updates(session, "config_option_update")[-1]["configOptions"]
        assert options == result["configOptions"]
    await running.prompt(session, "and now")
    request = model_server.requests[-1].json
    assert request["model"] == "small"
    assert request["reasoning_effort"] == "high"
    assert "hi" in str(request["messages"])  # the conversation goes along to the other model


@pytest.mark.covers("S3", "S4")
async def test_options_survive_a_restart(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, MODELS)
    environ = model_server.environ("openai")
    first = await agent(environ=environ)
    await first.initialize()
    session = await first.new_session(workspace_repo)
    chosen = {"mode": "accept-edits", "model": "openai/small", "thought_level": "low"}
    for option, value in chosen.items():
        await first.request(
            "session/set_config_option",
            {"sessionId": session, "configId": option, "value": value},
        )
    await first.stop()
    config_file(
        home, 'mode = "plan"\n' + MODELS
    )  # the default of new sessions does not move old ones
    second = await agent(environ=environ)
    await second.initialize()
    result = await state(second, session, workspace_repo)
    assert result["modes"]["currentModeId"] == "accept-edits"
    assert {one["id"]: one["currentValue"] for one in result["configOptions"]} == {
        **chosen,
        "agent": "default",
    }
    fresh = await second.request("session/new", {"cwd": str(workspace_repo), "mcpServers": []})
    assert fresh["modes"]["currentModeId"] == "plan"


@pytest.mark.covers("S3", "P6")
async def test_a_mode_switched_during_a_turn_applies_at_once(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    running: AgentProcess

    async def switch(request: dict[str, Any]) -> dict[str, Any]:
        params = {"sessionId": request["sessionId"], "modeId": "accept-edits"}
        await running.request("session/set_mode", params)
        return {"outcome": "selected", "optionId": "allow_once"}

    second_edit = {"path": "greeting.py", "old": "Good day", "new": "Good night"}
    model_server.add(
        answer(READ), answer(EDIT), answer(type(EDIT)("edit", second_edit)), answer("Both done.")
    )
    editor = Editor(permission=switch)
    running, session = await opened(editor=editor)
    assert (await running.prompt(session, "edit twice"))["stopReason"] == "end_turn"
    assert len(editor.asked) == 1
    assert "Good night" in (workspace_repo / "greeting.py").read_text()


@pytest.mark.covers("I6", "S3")
async def test_boolean_options_are_not_sent_to_a_client_that_cannot_show_them(
    opened: OpenSession, workspace_repo: Path
) -> None:
    for offers in (frozenset(), frozenset({"boolean"})):
        running, session = await opened(editor=Editor(offers=offers))  # type: ignore[arg-type]  # a set of offers
        options = (await state(running, session, workspace_repo))["configOptions"]
        kinds = {option["type"] for option in options}
        assert kinds == {"select"}
