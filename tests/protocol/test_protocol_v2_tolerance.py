"""What decoding version 2 keeps apart, what it preserves, what it lets pass and what it refuses."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from protocol.codec import typed_json
from protocol.codec.tolerance import UnknownVariant
from protocol.codec.typed_json import InvalidValueError
from protocol.v2 import types as t, unstable as u, unstable_subagents as subagents

TEXT = {"type": "text", "text": "x"}


def decode(value: object, kind: type) -> Any:
    return typed_json.decode(msgspec.json.encode(value), kind)


def again(value: object, kind: type) -> object:
    return msgspec.json.decode(typed_json.encode(decode(value, kind)))


def update(kind: str, /, **fields: object) -> dict[str, object]:
    return {"sessionUpdate": kind, **fields}


@pytest.mark.parametrize(
    ("head", "patches"),
    [
        (update("tool_call_update", toolCallId="c"), [
            {"title": "T"}, {"name": "n"}, {"kind": "edit"}, {"status": "completed"},
            {"content": [{"type": "content", "content": TEXT}]}, {"content": []},
            {"locations": [{"path": "/a", "line": 1}]}, {"locations": []}, {"rawInput": {"a": 1}},
            {"rawOutput": [1]}, {"capabilities": {"cancel": {}}}, {"capabilities": {}},
        ]),
        (update("user_message", messageId="m"), [{"content": [TEXT]}, {"content": []}]),
        (update("agent_message", messageId="m"), [{"content": [TEXT]}, {"content": []}]),
        (update("agent_thought", messageId="m"), [{"content": [TEXT]}, {"content": []}]),
        (update("terminal_update", terminalId="t"), [
            {"command": "ls"}, {"cwd": "/"}, {"output": {"data": ""}}, {"exitStatus": {}},
            {"exitStatus": {"exitCode": -1}}, {"size": {"cols": 80, "rows": 24}},
            {"capabilities": {"cancel": {}}},
        ]),
        (update("session_info_update"), [{"title": "T"}, {"updatedAt": "2026-01-01T00:00:00Z"}]),
        (update("usage_update", used=1, size=2), [{"cost": {"amount": 0.5, "currency": "EUR"}}]),
        (update("compaction_update", compactionId="c", status="failed"), [
            {"summary": [TEXT]}, {"error": "e"},
        ]),
        (update("subagent_update", sessionId="s"), [
            {"title": "T"}, {"description": "d"}, {"capabilities": {"cancel": {}}},
            {"state": {"state": "running"}}, {"cwd": "/"}, {"additionalDirectories": []},
        ]),
        (update("session_message", messageId="m"), [
            {"senderSessionId": "s"}, {"recipientSessionId": "s"}, {"senderMessageId": "m"},
            {"recipientMessageId": "m"}, {"content": [TEXT]},
        ]),
    ],
    ids=lambda value: value["sessionUpdate"] if isinstance(value, dict) else "",
)  # fmt: skip
def test_omitted_null_and_a_value_are_three_things_in_an_upsert(
    head: dict[str, object], patches: list[dict[str, object]]
) -> None:
    assert again(head, t.SessionUpdate) == head
    if head["sessionUpdate"] != "usage_update":
        patches = [*patches, {"_meta": {"k": None}}]
    for patch in patches:
        assert again(head | patch, t.SessionUpdate) == head | patch
        nothing = dict.fromkeys(patch)
        assert again(head | nothing, t.SessionUpdate) == head | nothing


def test_a_patch_is_read_as_unset_none_or_the_value() -> None:
    head = update("tool_call_update", toolCallId="c")
    assert decode(head, t.SessionUpdate).title is UNSET
    assert decode(head | {"title": None}, t.SessionUpdate).title is None
    assert decode(head | {"title": "T"}, t.SessionUpdate).title == "T"
    assert decode(head, t.SessionUpdate).meta is UNSET


def test_an_empty_list_of_background_work_is_not_the_same_as_none_reported() -> None:
    for state in ({"state": "running"}, {"state": "idle", "stopReason": "end_turn"}):
        assert again(state, t.StateUpdate) == state
        assert again(state | {"background": []}, t.StateUpdate) == state | {"background": []}
        assert decode(state, t.StateUpdate).background is None
    assert b'"background":[]' in typed_json.encode(t.RunningStateUpdate(background=()))


OWN = {"type": "_later", "more": {"a": [1, None]}}


@pytest.mark.parametrize(
    ("value", "kind", "variant"),
    [
        (OWN, t.ContentBlock, t.OtherContentBlock),
        (OWN, t.ToolCallContent, t.OtherToolCallContent),
        (OWN, t.BackgroundWork, t.OtherBackgroundWork),
        (OWN, t.McpServer, t.OtherMcpServer),
        (OWN, t.ReplayFrom, t.OtherReplayFrom),
        (OWN, t.AvailableCommandInput, t.OtherCommandInput),
        (OWN, t.RequestPermissionSubject, t.OtherPermissionSubject),
        (OWN, t.ElicitationPropertySchema, t.OtherPropertySchema),
        (OWN, t.MultiSelectItems, t.OtherMultiSelectItems),
        (OWN | {"methodId": "i", "name": "n"}, t.AuthMethod, t.OtherAuthMethod),
        (OWN | {"name": "n", "description": "d"}, t.AvailableCommand, t.OtherCommand),
        (OWN | {"configId": "i", "name": "n"}, t.SessionConfigOption, t.OtherConfigOption),
        (OWN | {"planId": "p"}, t.PlanUpdateContent, t.OtherPlan),
        (
            OWN | {"sessionId": "s", "configId": "c", "value": None},
            t.SetSessionConfigOptionRequest,
            t.OtherSetSessionConfigOption,
        ),
        ({"operation": "_chmod", "path": 5}, t.DiffChange, t.OtherDiffChange),
        ({"outcome": "_later", "x": 1}, t.RequestPermissionOutcome, t.OtherPermissionOutcome),
        ({"action": "_shrug", "x": 1}, t.CreateElicitationResponse, t.OtherElicitationAction),
        (
            {"mode": "_dream", "message": "m", "requestId": 0},
            t.CreateElicitationRequest,
            t.OtherElicitationMode,
        ),
        ({"state": "_asleep", "x": 1}, t.StateUpdate, t.OtherStateUpdate),
        ({"state": "idle", "stopReason": "_bored", "x": 1}, t.StateUpdate, t.OtherIdleStateUpdate),
        (update("_later", x=1), t.SessionUpdate, t.OtherSessionUpdate),
        (update("state_update", state="_asleep"), t.SessionUpdate, t.OtherSessionStateUpdate),
        (
            update("state_update", state="idle", stopReason="_bored"),
            t.SessionUpdate,
            t.OtherSessionIdleUpdate,
        ),
    ],
)
def test_unknown_variants_stay_unchanged(
    value: dict[str, object], kind: type, variant: type[UnknownVariant]
) -> None:
    got = decode(value, kind)
    assert type(got) is variant
    assert got == variant(value)
    assert again(value, kind) == value


def test_unknown_variants_survive_deep_inside_of_a_known_message() -> None:
    change = {"operation": "_chmod", "path": "/a"}
    content = [{"type": "diff", "changes": [change]}, {"type": "content", "content": OWN}]
    request = {
        "sessionId": "s",
        "title": "T",
        "options": [{"optionId": "o", "name": "O", "kind": "_ask_again"}],
        "subject": {"type": "tool_call", "toolCall": {"toolCallId": "c", "content": content}},
    }
    assert again(request, t.RequestPermissionRequest) == request
    notification = {"sessionId": "s", "update": update("agent_message_chunk", messageId="m")}
    notification["update"]["content"] = OWN  # type: ignore[index]  # a dictionary
    assert again(notification, t.UpdateSessionNotification) == notification


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({"type": "text"}, t.ContentBlock, "text: is required"),
        ({"text": "x"}, t.ContentBlock, "type: is required"),
        ({"type": 5, "text": "x"}, t.ContentBlock, "type: expected string"),
        ([], t.ContentBlock, "expected object"),
        ({"type": "diff"}, t.ToolCallContent, "changes: is required"),
        ({"type": "diff", "changes": {}}, t.ToolCallContent, "changes: expected array, got object"),
        ({"operation": "move", "path": "/a"}, t.DiffChange, "oldPath: is required"),
        ({"type": "http", "name": "n"}, t.McpServer, "url: is required"),
        ({"name": "n", "command": "/c"}, t.McpServer, "type: is required"),
        ({"type": "subagent"}, t.BackgroundWork, "sessionId: is required"),
        ({"type": "command"}, t.RequestPermissionSubject, "command: is required"),
        ({"type": "items"}, t.PlanUpdateContent, "planId: is required"),
        ({"type": "_x"}, t.PlanUpdateContent, "planId: is required"),
        ({"type": "_x", "name": "n"}, t.AuthMethod, "methodId: is required"),
        ({"type": "_x", "name": "n"}, t.AvailableCommand, "description: is required"),
        ({"type": "_x", "name": "n"}, t.SessionConfigOption, "configId: is required"),
        (
            {"type": "_x", "sessionId": "s", "configId": "c"},
            t.SetSessionConfigOptionRequest,
            "value: is required",
        ),
        (
            {"type": "id", "sessionId": "s", "configId": "c", "value": True},
            t.SetSessionConfigOptionRequest,
            "value: expected string, got boolean",
        ),
        ({"mode": "_x", "message": "m"}, t.CreateElicitationRequest,
         "sessionId: is required where there is no requestId"),
        ({"outcome": "selected"}, t.RequestPermissionOutcome, "optionId: is required"),
        ({"state": 1}, t.StateUpdate, "state: expected string"),
        ({"sessionId": "s", "prompt": []}, t.PromptRequest,
         "prompt: expected array of length >= 1"),
        ({"sessionId": "s", "prompt": [TEXT, {"type": "image", "data": ""}]}, t.PromptRequest,
         "prompt[1].mimeType: is required"),
        ({"protocolVersion": 2}, t.InitializeRequest, "info: is required"),
        ({"cwd": "/", "mcpServers": [{"type": "stdio", "name": "n"}]}, t.NewSessionRequest,
         "mcpServers[0].command: is required"),
        ({"sessionId": "s", "update": update("user_message")}, t.UpdateSessionNotification,
         "update.messageId: is required"),
        ({"sessionId": "s", "cwd": "/", "replayFrom": {}}, t.ResumeSessionRequest,
         "replayFrom.type: is required"),
        ({"sessionId": "s", "cwd": "/", "systemPrompt": "x"}, t.ResumeSessionRequest,
         "systemPrompt: expected object or null, got string"),
    ],
)  # fmt: skip
def test_malformed_variants_that_are_known_are_refused_and_named(
    value: object, kind: type, message: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        decode(value, kind)
    assert str(caught.value) == message


def test_only_values_that_the_schema_lets_a_receiver_ignore_are_ignored() -> None:
    got = decode(
        {
            "protocolVersion": 2,
            "info": {"name": "n", "version": "v", "title": 7, "_meta": []},
            "capabilities": {"auth": {"terminal": True}, "elicitation": {"form": {}, "url": 7}},
        },
        t.InitializeRequest,
    )
    assert got == t.InitializeRequest(
        protocol_version=2,
        info=t.Implementation(name="n", version="v"),
        capabilities=t.ClientCapabilities(
            auth=t.ClientAuthCapabilities(),
            elicitation=t.ElicitationCapabilities(form=t.ElicitationFormCapabilities()),
        ),
    )
    diff = {"type": "diff", "changes": [{"operation": "add"}, {"operation": "add", "path": "/a"}]}
    content = [{"type": "content", "content": {"type": "text"}}, diff, {"type": "diff"}, OWN]
    call = update("tool_call_update", toolCallId="c", kind=5, title=5, content=content)
    assert decode(call, t.SessionUpdate) == t.ToolCallProgress(
        tool_call_id="c",
        content=[t.Diff(changes=[t.DiffAddChange(path="/a")]), t.OtherToolCallContent(OWN)],
    )
    new = decode(
        {"cwd": "/", "mcpServers": None, "additionalDirectories": None}, t.NewSessionRequest
    )
    assert new == t.NewSessionRequest(cwd="/")


def test_an_idle_state_has_its_reason_and_an_error() -> None:
    head = update("state_update", state="idle")
    assert decode(head, t.SessionUpdate) == t.SessionIdleUpdate()
    assert decode(head | {"stopReason": 5}, t.SessionUpdate) == t.SessionIdleUpdate()
    refusal = decode(head | {"stopReason": "refusal", "error": 1}, t.SessionUpdate)
    assert refusal == t.SessionIdleUpdate(stop_reason="refusal")
    error = {"code": -32603, "message": "m"}
    failed = decode(head | {"stopReason": "error", "error": error}, t.SessionUpdate)
    assert failed == t.SessionErrorUpdate(error=t.Error(-32603, "m"))
    assert again(head | {"stopReason": "error", "error": error}, t.SessionUpdate) == (
        head | {"stopReason": "error", "error": error}
    )
    assert decode(head | {"stopReason": "error", "error": "x"}, t.SessionUpdate) == (
        t.SessionErrorUpdate()
    )


def test_a_state_has_the_same_fields_by_itself_and_as_an_update() -> None:
    for state in ({"state": "running"}, {"state": "requires_action"}, {"state": "unknown"},
                  {"state": "idle", "stopReason": "cancelled"},
                  {"state": "idle", "stopReason": "error"}):  # fmt: skip
        assert again(state, t.StateUpdate) == state
        assert again(update("state_update", **state), t.SessionUpdate) == (
            update("state_update", **state)
        )
    status = decode({"status": "open", "state": {"state": 5}}, u.SessionStatusResponse)
    assert status == u.SessionStatusResponse(status="open")
    child = decode(update("subagent_update", sessionId="s", state=7), t.SessionUpdate)
    assert child == subagents.SubagentUpdate(session_id="s")


def test_an_error_of_an_mcp_server_keeps_all_its_fields() -> None:
    failure = {"error": {"code": 5, "message": "m", "data": None, "more": [1]}}
    assert again(failure, u.MessageMcpResponse) == failure
    both = decode({"result": None} | failure, u.MessageMcpResponse)
    assert both == u.MessageMcpResult(result=None)
    for wrong in ({}, {"error": None}, {"error": {"code": 2**31, "message": "m"}},
                  {"error": {"code": 1}}):  # fmt: skip
        with pytest.raises(InvalidValueError):
            decode(wrong, u.MessageMcpResponse)
