"""Version 1's unstable types: what they keep apart, preserve and refuse; what a start pays."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from protocol.codec import typed_json
from protocol.codec.typed_json import InvalidValueError
from protocol.v1 import types as t, unstable as u, unstable_subagents as s


def decode(value: object, kind: type) -> Any:
    return typed_json.decode(msgspec.json.encode(value), kind)


def again(value: object, kind: type) -> object:
    return msgspec.json.decode(typed_json.encode(decode(value, kind)))


def test_a_system_prompt_is_accepted_with_any_mode_and_refused_if_malformed() -> None:
    content = [{"type": "text", "text": "x"}]
    for mode in ("append", "override", "_later"):
        request = {"cwd": "/", "mcpServers": [], "systemPrompt": {"mode": mode, "content": content}}
        got = decode(request, t.NewSessionRequest)
        assert got.system_prompt == t.GivenSystemPrompt(
            mode=mode, content=[t.TextContent(text="x")]
        )
        assert again(request, t.NewSessionRequest) == request
    for wrong, message in (
        ({"content": content}, "systemPrompt.mode: is required"),
        ({"mode": "append"}, "systemPrompt.content: is required"),
        ({"mode": "append", "content": [{"type": "text"}]},
         "systemPrompt.content[0].text: is required"),
        ("x", "systemPrompt: expected object"),
    ):  # fmt: skip
        with pytest.raises(InvalidValueError) as caught:
            decode({"cwd": "/", "mcpServers": [], "systemPrompt": wrong}, t.NewSessionRequest)
        assert str(caught.value) == message


def test_an_mcp_server_of_the_client_s_is_known_by_its_id() -> None:
    server = {"type": "acp", "name": "n", "serverId": "i"}
    request = {"sessionId": "s", "cwd": "/", "mcpServers": [server]}
    assert decode(request, u.ForkSessionRequest).mcp_servers == [
        t.McpServerAcp(name="n", server_id="i")
    ]
    assert again(request, u.ForkSessionRequest) == request
    with pytest.raises(InvalidValueError, match=r"^mcpServers\[0\]\.serverId: is required$"):
        decode({"cwd": "/", "mcpServers": [{"type": "acp", "name": "n"}]}, t.NewSessionRequest)


@pytest.mark.parametrize(
    "patch",
    [
        {},
        {"title": None, "description": "d"},
        {"capabilities": None, "state": None, "cwd": None, "additionalDirectories": None},
        {"capabilities": {}, "cwd": "/", "additionalDirectories": [], "_meta": None},
        {"state": {"state": "running"}},
        {"state": {"state": "idle", "stopReason": "cancelled"}},
        {"state": {"state": "idle", "stopReason": "error", "error": {"code": 1, "message": "m"}}},
        {"state": {"state": "idle", "stopReason": "_bored", "more": [1]}},
        {"state": {"state": "_asleep", "more": [1]}},
    ],
)
def test_changes_of_a_child_session_survive_a_round_trip(
    patch: dict[str, object],
) -> None:
    notification = {
        "sessionId": "s",
        "update": {"sessionUpdate": "subagent_update", "sessionId": "c"} | patch,
    }
    assert again(notification, t.SessionNotification) == notification


def test_a_malformed_state_of_a_child_counts_as_not_given() -> None:
    head = {"sessionUpdate": "subagent_update", "sessionId": "c"}
    for state in (5, {}, {"state": 5}):
        assert decode(head | {"state": state}, t.SubagentUpdate) == t.SubagentUpdate(session_id="c")
    idle = decode(head | {"state": {"state": "idle", "stopReason": 5}}, t.SubagentUpdate)
    assert idle.state == s.IdleStateUpdate()


def test_a_message_between_sessions_is_a_patch() -> None:
    head = {"sessionUpdate": "session_message", "messageId": "m"}
    for name in ("senderSessionId", "recipientMessageId", "content", "_meta"):
        assert again(head | {name: None}, t.SessionMessage) == head | {name: None}
    assert again(head, t.SessionMessage) == head


def test_an_mcp_result_wins_over_an_error_and_an_error_keeps_its_fields() -> None:
    failure = {"error": {"code": -1, "message": "m", "data": None, "more": [1]}}
    assert again(failure, u.MessageMcpResponse) == failure
    assert decode({"result": None} | failure, u.MessageMcpResponse) == u.MessageMcpResult(
        result=None
    )
    for wrong in ({}, {"error": None}, {"error": {"code": "1", "message": "m"}}):
        with pytest.raises(InvalidValueError):
            decode(wrong, u.MessageMcpResponse)


def test_values_of_later_versions_are_preserved() -> None:
    for value, kind in (
        ({"status": "_frozen"}, u.SessionStatusResponse),
        ({"state": "_expired"}, u.AuthStatusResponse),
        ({"providerId": "p", "apiType": "_own", "baseUrl": "https://example.org"},
         u.SetProviderRequest),
        ({"archived": "_some"}, t.ListSessionsRequest),
    ):  # fmt: skip
        assert again(value, kind) == value


@pytest.mark.parametrize(
    ("version", "needed"),
    [
        ("v1", {"content", "initialization", "sessions"}),
        ("v2", {"content", "initialization", "options", "sessions"}),
    ],
)  # fmt: skip
def test_a_start_imports_only_the_types_that_it_needs(version: str, needed: set[str]) -> None:
    code = (
        f"import sys; from protocol.{version} import methods, types\n"
        "for method in methods.AGENT_METHODS.values(): method.params, method.result\n"
        "types.SessionInfo, methods.SESSION_UPDATE.name, methods.CLIENT_METHODS\n"
        "print(*(name for name in sys.modules if name.startswith('protocol.v')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    every = {"methods", "types"} | needed
    assert set(done.stdout.split()) == {f"protocol.{version}"} | {
        f"protocol.{version}.{name}" for name in every
    }


def test_a_type_is_found_and_an_unknown_name_is_not() -> None:
    assert t.Notice.__module__ == "protocol.v1.updates"
    assert vars(t)["Notice"] is t.Notice
    for name in ("NoSuchType", "__path__", "_ConfigOption"):
        with pytest.raises(AttributeError, match=f"'protocol.v1.types' has no attribute '{name}'"):
            getattr(t, name)
