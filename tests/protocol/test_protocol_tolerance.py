"""What decoding lets pass, what it refuses, and how it says so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from protocol.codec import typed_json
from protocol.codec.typed_json import InvalidValueError, MalformedJsonError
from protocol.v1 import types as t


def decode(value: object, kind: type) -> object:
    return typed_json.decode(msgspec.json.encode(value), kind)


def test_an_invalid_value_of_a_lenient_field_counts_as_not_given() -> None:
    got = decode(
        {
            "protocolVersion": 1,
            "clientInfo": {"name": 5},
            "clientCapabilities": {
                "fs": {"readTextFile": True, "writeTextFile": "yes"},
                "terminal": "yes",
                "elicitation": {"form": {}, "url": 7},
                "auth": None,
                "_meta": [],
            },
        },
        t.InitializeRequest,
    )
    assert got == t.InitializeRequest(
        protocol_version=1,
        client_capabilities=t.ClientCapabilities(
            fs=t.FileSystemCapabilities(read_text_file=True),
            elicitation=t.ElicitationCapabilities(form=t.ElicitationFormCapabilities()),
        ),
    )


def test_capabilities_of_the_wrong_type_are_no_capabilities() -> None:
    got = decode({"protocolVersion": 1, "clientCapabilities": "all"}, t.InitializeRequest)
    assert got == t.InitializeRequest(protocol_version=1)


def test_invalid_items_of_a_tolerant_list_are_dropped_and_others_repaired() -> None:
    got = decode(
        {
            "sessionUpdate": "tool_call",
            "toolCallId": "c",
            "title": "T",
            "kind": "levitate",
            "content": [
                {"type": "content", "content": {"type": "text", "text": "kept", "annotations": 3}},
                {"type": "hologram"},
                {"type": "content", "content": {"type": "text"}},
                7,
                {"type": "diff", "path": "/a", "newText": "n", "oldText": []},
            ],
            "locations": [{"path": "/a", "line": -1}, {"line": 2}],
        },
        t.ToolCall,
    )
    assert got == t.ToolCall(
        tool_call_id="c",
        title="T",
        content=[
            t.Content(content=t.TextContent(text="kept")),
            t.Diff(path="/a", new_text="n"),
        ],
        locations=[t.ToolCallLocation(path="/a")],
    )


def test_a_required_list_that_is_null_or_none_at_all_is_empty_where_the_schema_says_so() -> None:
    got = decode({"cwd": "/", "mcpServers": None}, t.NewSessionRequest)
    assert got == t.NewSessionRequest(cwd="/", mcp_servers=[])
    plan = decode({"sessionUpdate": "plan", "entries": "soon"}, t.Plan)
    assert plan == t.Plan(entries=[])
    server = {"name": "n", "command": "c", "args": None, "env": None}
    got = decode({"cwd": "/", "mcpServers": [server]}, t.NewSessionRequest)
    assert got == t.NewSessionRequest(
        cwd="/", mcp_servers=[t.McpServerStdio(name="n", command="c", args=[], env=[])]
    )


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        ({"cwd": "/"}, t.NewSessionRequest, "mcpServers: is required"),
        (
            {"cwd": "/", "mcpServers": "none"},
            t.NewSessionRequest,
            "mcpServers: expected array, got string",
        ),
        ({"entries": []}, t.PlanEntry, "content: is required"),
        (
            {"sessionId": "s", "path": "/a", "line": "1"},
            t.ReadTextFileRequest,
            "line: expected integer or null, got string",
        ),
        (
            {"sessionId": "s", "path": "/a", "line": 2**32},
            t.ReadTextFileRequest,
            "line: expected integer <= 4294967295",
        ),
        (
            {"sessionId": "s", "configId": "c", "value": True},
            t.SetSessionConfigOptionRequest,
            'value: expected string, got boolean without type "boolean"',
        ),
        (
            {"severity": "info", "title": "", "sessionUpdate": "notice"},
            t.Notice,
            "title: expected string of length >= 1",
        ),
        (
            {"message": "m", "mode": "form", "requestedSchema": {}},
            t.CreateElicitationRequest,
            "sessionId: is required where there is no requestId",
        ),
        ({"mode": "form"}, t.CreateElicitationRequest, "message: is required"),
        ({"action": 1}, t.CreateElicitationResponse, "action: expected string"),
        ([], t.CreateElicitationResponse, "expected object"),
        (
            {"message": "m", "mode": "form", "sessionId": "s", "requestedSchema": {
                "properties": {"a": {"type": "string", "minLength": -1}}}},
            t.CreateElicitationRequest,
            "requestedSchema.properties[...].minLength: expected integer >= 0",
        ),
    ],
)  # fmt: skip
def test_everything_else_that_is_malformed_is_refused_and_named(
    value: object, kind: type, message: str
) -> None:
    with pytest.raises(InvalidValueError) as caught:
        decode(value, kind)
    assert str(caught.value) == message


@pytest.mark.parametrize("data", [b'{"cwd":"\xff"}', b"{", b"[" * 100_000, b'{"cwd":"\\ud800"}'])
def test_bytes_that_are_no_json_are_distinguished_from_wrong_values(data: bytes) -> None:
    with pytest.raises(MalformedJsonError):
        typed_json.decode(data, t.NewSessionRequest)


def test_an_mcp_server_without_a_type_is_a_program() -> None:
    servers = [
        {"name": "a", "command": "run", "args": ["-x"], "env": [{"name": "K", "value": "V"}]},
        {"type": "http", "name": "b", "url": "https://example.org", "headers": []},
        {"type": "sse", "name": "c", "url": "https://example.org", "headers": []},
    ]
    got = decode({"cwd": "/", "mcpServers": servers}, t.NewSessionRequest)
    assert isinstance(got, t.NewSessionRequest)
    assert [type(server) for server in got.mcp_servers] == [
        t.McpServerStdio,
        t.McpServerHttp,
        t.McpServerSse,
    ]
    assert msgspec.json.decode(typed_json.encode(got))["mcpServers"] == servers


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (
            {"message": "m", "mode": "dream", "sessionId": "s", "pillow": [1]},
            t.CreateElicitationRequest,
        ),
        ({"action": "shrug", "why": None}, t.CreateElicitationResponse),
        ({"properties": {"a": {"type": "colour", "space": "lab"}}}, t.ElicitationSchema),
        (
            {"type": "array", "items": {"type": "colour", "of": ["red"]}},
            t.ElicitationPropertySchema,
        ),
        ({"id": "i", "name": "n", "type": "env_var"}, t.AuthMethod),
        (
            {"type": "select", "id": "i", "name": "n", "category": "mood", "currentValue": "v",
             "options": [{"group": "g", "name": "G", "options": [{"value": "v", "name": "V"}]}]},
            t.SessionConfigOption,
        ),
        ({"sessionUpdate": "notice", "severity": "fatal", "title": "t"}, t.Notice),
        (
            {"sessionUpdate": "compaction_update", "compactionId": "c", "status": "paused"},
            t.CompactionUpdate,
        ),
    ],
)  # fmt: skip
def test_values_that_later_versions_add_survive_a_round_trip(value: object, kind: type) -> None:
    again = msgspec.json.decode(typed_json.encode(decode(value, kind)))
    expected = {"type": "object"} | value if kind is t.ElicitationSchema else value  # type: ignore[operator]  # every value here is a dict
    assert again == expected


def test_a_question_in_a_mode_not_known_yet_still_says_whom_it_belongs_to() -> None:
    asked = {"mode": "hologram", "message": "Which?"}
    for whose in ({"sessionId": "s"}, {"requestId": 1}):
        assert decode(asked | whose, t.CreateElicitationRequest)
    with pytest.raises(InvalidValueError, match="sessionId"):
        decode(asked, t.CreateElicitationRequest)


def test_options_and_groups_of_options_are_not_mixed() -> None:
    option = {"value": "v", "name": "V"}
    group = {"group": "g", "name": "G", "options": [option]}
    select = {"type": "select", "id": "i", "name": "n", "currentValue": "v"}
    for options in ([option, option], [group], []):
        decode(select | {"options": options}, t.SessionConfigSelect)
    with pytest.raises(InvalidValueError, match=r"^options: must be all groups or none$"):
        decode(select | {"options": [option, group]}, t.SessionConfigSelect)


def test_omitted_null_and_a_value_are_three_things_in_a_patch() -> None:
    head = {"sessionUpdate": "session_info_update"}
    titles: tuple[dict[str, Any], ...] = ({}, {"title": None}, {"title": "T"})
    for patch in titles:
        got = decode(head | patch, t.SessionInfoUpdate)
        assert msgspec.json.decode(typed_json.encode(got)) == head | patch
    calls: tuple[dict[str, Any], ...] = (
        {},
        {"content": None},
        {"content": []},
        {"status": None, "rawInput": None},
    )
    for patch in calls:
        update = decode({"toolCallId": "c"} | patch, t.ToolCallUpdate)
        assert msgspec.json.decode(typed_json.encode(update)) == {"toolCallId": "c"} | patch


def test_numbers_beyond_64_bits_and_lone_surrogates_can_be_sent() -> None:
    call = t.ToolCall(tool_call_id="c", title="x\udfffy", raw_input={"n": 2**80, "\ud800": 1})
    plain = msgspec.json.decode(typed_json.encode(call))
    assert plain["title"] == "x\ufffdy"
    assert plain["rawInput"] == {"n": 2**80, "\ufffd": 1}
