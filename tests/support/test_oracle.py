"""The oracle notices what a conforming agent would not write, and lets pass what it would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.framing import ClientFaultError, ViolationError
from tests.support.oracle_steps import OPTIONS, Step, agent, client, elicitation, play, update


def chunk(text: str = "hi", session: str = "s") -> Step:
    return update("agent_message_chunk", session, content={"type": "text", "text": text})


LOGIN = [{"id": "demo", "name": "Demo"}]
INITIALIZE = client(
    id=0, method="initialize", params={"protocolVersion": 1, "clientCapabilities": {}}
)
HELLO = [INITIALIZE, agent(id=0, result={"protocolVersion": 1, "authMethods": LOGIN})]
NEW = [
    *HELLO,
    client(id=1, method="session/new", params={"cwd": "/", "mcpServers": []}),
    agent(id=1, result={"sessionId": "s"}),
]
PROMPTED = [*NEW, client(id=2, method="session/prompt", params={"sessionId": "s", "prompt": []})]
DONE = agent(id=2, result={"stopReason": "end_turn"})
CALL = update("tool_call", toolCallId="c", title="Read", kind="read", status="pending")
ENDED = update("tool_call_update", toolCallId="c", status="completed")
ANSWER = agent(id=1, result={})
SCHEMA = {"type": "object", "properties": {"x": {"type": "string"}}}
COMPACTION = update("compaction_update", compactionId="c", status="in_progress")
PLAN_UPDATE = update("plan_update", plan={"type": "items", "planId": "p", "entries": []})
MCP_MESSAGE = agent(
    id="m", method="mcp/message", params={"serverId": "x", "requestId": "1", "method": "ping"}
)
LOAD = client(id=3, method="session/load", params={"sessionId": "s", "cwd": "/", "mcpServers": []})


def hello(version: int) -> Step:
    return agent(id=0, result={"protocolVersion": version, "authMethods": LOGIN})


def offering(**capabilities: Any) -> list[Step]:
    """A session of a client with capabilities, and of an agent with all that is unstable."""
    params = {"protocolVersion": 1, "clientCapabilities": capabilities}
    result = {
        "protocolVersion": 1,
        "authMethods": LOGIN,
        "agentCapabilities": {"auth": {"status": {}}},
    }
    servers = [{"type": "acp", "name": "own", "serverId": "x"}]
    return [
        client(id=0, method="initialize", params=params),
        agent(id=0, result=result),
        client(id=1, method="session/new", params={"cwd": "/", "mcpServers": servers}),
        agent(id=1, result={"sessionId": "s"}),
        client(id=2, method="session/prompt", params={"sessionId": "s", "prompt": []}),
    ]


ARCHIVING = [
    INITIALIZE,
    agent(
        id=0,
        result={
            "protocolVersion": 1,
            "authMethods": LOGIN,
            "agentCapabilities": {"sessionCapabilities": {"archive": {}}},
        },
    ),
    client(id=1, method="session/list", params={}),
]
STATUS = agent(method="auth/status_update", params={"state": "authenticated"})
LISTED = agent(id=1, result={"sessions": [{"sessionId": "s", "cwd": "/"}]})


def completed(name: str) -> Step:
    return agent(method="elicitation/complete", params={"elicitationId": name})


def permission(**params: Any) -> Step:
    whole = {"sessionId": "s", "toolCall": {"toolCallId": "c"}, "options": OPTIONS} | params
    return agent(id="p", method="session/request_permission", params=whole)


def test_a_whole_turn_in_order_passes() -> None:
    answer = client(id="p", result={"outcome": {"outcome": "selected", "optionId": "yes"}})
    turn = [*PROMPTED, chunk(), CALL, permission(), answer, ENDED, chunk(), DONE]
    late = update("session_info_update", title="Hello")
    play([*turn, late]).finished()


def test_a_replay_passes_and_may_tell_the_same_calls_again() -> None:
    load = client(
        id=3, method="session/load", params={"sessionId": "s", "cwd": "/", "mcpServers": []}
    )
    words = update("user_message_chunk", content={"type": "text", "text": "x"})
    replay = [load, words, CALL, ENDED, agent(id=3, result={})]
    play([*PROMPTED, CALL, ENDED, DONE, *replay]).finished()


def test_the_unstable_part_passes_where_it_was_offered() -> None:
    steps = offering(plan={}, subagents={}, elicitation={"url": {}}, session={"compaction": {}})
    page = elicitation("url", elicitationId="e", url="https://example.com/")
    status = agent(method="auth/status_update", params={"state": "authenticated"})
    child = update("subagent_update", sessionId="child")
    usage = {"totalTokens": 3, "inputTokens": 1, "outputTokens": 2}
    done = agent(id=2, result={"stopReason": "end_turn", "usage": usage})
    play([*steps, PLAN_UPDATE, COMPACTION, page, completed("e"), MCP_MESSAGE, status, child])
    play([*steps, child, chunk(session="child"), done, chunk(session="child")]).finished()
    with pytest.raises(ViolationError, match="P13: a message names child"):
        play([*steps, update("session_message", messageId="m", recipientSessionId="child")])


def test_a_permission_that_was_withdrawn_is_no_longer_asked() -> None:
    withdrawn = agent(method="$/cancel_request", params={"requestId": "p"})
    play([*PROMPTED, CALL, permission(), withdrawn, ENDED, DONE]).finished()


def test_messages_before_the_version_is_known_count() -> None:
    prompt = client(id=2, method="session/prompt", params={"sessionId": "s", "prompt": []})
    new = client(id=1, method="session/new", params={"cwd": "/", "mcpServers": []})
    begun = [INITIALIZE, new, prompt, hello(1), agent(id=1, result={"sessionId": "s"})]
    play([*begun, chunk(), DONE]).finished()
    refused = agent(id=2, error={"code": -32600, "message": "initialize first"})
    play([prompt, refused, *NEW])
    with pytest.raises(ViolationError, match="T6"):
        play([prompt, refused, *NEW, chunk()])


def test_a_client_that_means_well_is_held_to_the_schema() -> None:
    oracle = play(HELLO)
    if oracle.rules is None or oracle.rules.schema is None:
        pytest.skip("the protocol's schema needs Node.js, which is not installed")
    good = {"method": "session/new", "id": 1, "params": {"cwd": "/", "mcpServers": []}}
    oracle.vet(good)
    for wrong in (
        good | {"params": {"cwd": "/"}},
        good | {"params": {"cwd": "/", "mcpServers": [], "folder": "/"}},
        good | {"method": "session/start"},
    ):
        with pytest.raises(ClientFaultError):
            oracle.vet(wrong)
    play([*NEW[2:], *PROMPTED[4:], CALL, permission()], oracle)
    with pytest.raises(ClientFaultError):
        oracle.vet({"id": "p", "result": {"outcome": "selected"}})


def test_bad_lines_may_be_answered_without_an_id_once_each() -> None:
    error = {"code": -32700, "message": "this is not JSON"}
    play([("client", b"{nonsense\n"), agent(id=None, error=error)])
    with pytest.raises(ViolationError, match="T2"):
        play([("client", b"{nonsense\n"), *[agent(id=None, error=error)] * 2])


@pytest.mark.parametrize(
    ("rule", "steps"),
    [
        ("T1: not a line of JSON", [("agent", b"Loading model...\n")]),
        ("T1: not a line of JSON", [("agent", b'{"jsonrpc":"2.0","id":1,"result":"\xff"}\n')]),
        ("T1: not a line of JSON", [("agent", b'{"jsonrpc":"2.0","id":1,"result":NaN}\n')]),
        ("T1: the line has no end", [("agent", b'{"jsonrpc":"2.0"}')]),
        ("T1: not a line of JSON", [("agent", b"\n")]),
        ("T1: space around", [("agent", b"{} \r\n")]),
        ("T3: a batch of nothing", [("agent", b"[]\n")]),
        ("T1: not one object", [("agent", b"[1]\n")]),
        ("T1: not one object", [("agent", b"7\n")]),
        ("T3: an array that answers no batch", [*NEW, ("agent", [ANSWER[1]])]),
        ("I1: 2 is higher than 1", [INITIALIZE, hello(2)]),
        ("I1: 3 is not a version", [INITIALIZE, hello(3)]),
        (
            "I1: the version changed",
            [*HELLO, client(id=0, method="initialize", params={}), hello(2)],
        ),
        ("I2: answered before", [client(id=1, method="session/new"), agent(id=1, result={})]),
        ("session/start is no response", [*HELLO, client(id=1, method="session/start"), ANSWER]),
        ("T2: jsonrpc is not 2.0", [("agent", b'{"id":1,"result":{}}\n')]),
        ("T2: not one of result and error", [INITIALIZE, agent(id=0)]),
        ("T2: answers 9", [*HELLO, agent(id=9, result={})]),
        ("T2: answers 1", [*NEW, agent(id=1, result={"sessionId": "s"})]),
        ('T2: answers "1"', [*HELLO, client(id=1, method="x"), agent(id="1", result={})]),
        (
            "T4: the message is more than one line",
            [*HELLO, client(id=1, method="x"), agent(id=1, error={"code": 1, "message": "a\nb"})],
        ),
        (
            "T4: a traceback",
            [
                *HELLO,
                client(id=1, method="x"),
                agent(id=1, error={"code": 1, "message": "Traceback (most recent call last)"}),
            ],
        ),
        ("I2", [INITIALIZE, update("session_info_update")]),
        ("I4: no login method", [INITIALIZE, agent(id=0, result={"protocolVersion": 1})]),
        (
            "I4: terminal login",
            [
                INITIALIZE,
                agent(
                    id=0,
                    result={
                        "protocolVersion": 1,
                        "authMethods": [*LOGIN, {"id": "t", "name": "T", "type": "terminal"}],
                    },
                ),
            ],
        ),
        (
            "I6: fs/read_text_file",
            [
                *PROMPTED,
                agent(id=1, method="fs/read_text_file", params={"sessionId": "s", "path": "/a"}),
            ],
        ),
        ("I6: session.notices", [*PROMPTED, update("notice", severity="info", title="x")]),
        ("I6: session.compaction", [*PROMPTED, COMPACTION]),
        ("I6: plan was", [*PROMPTED, update("plan_removed", planId="p")]),
        ("I6: plan was", [*PROMPTED, PLAN_UPDATE]),
        ("I6: subagents", [*PROMPTED, update("subagent_update", sessionId="child")]),
        ("I6: subagents", [*PROMPTED, update("session_message", messageId="m")]),
        ("I6: an MCP server nobody", [*PROMPTED, MCP_MESSAGE]),
        ("I6: elicitation/create form", [*PROMPTED, elicitation("form", requestedSchema=SCHEMA)]),
        ("P12: an elicitation is completed", [*PROMPTED, completed("e")]),
        (
            "I3: auth.status",
            [*NEW, agent(method="auth/status_update", params={"state": "authenticated"})],
        ),
        ("S2", [*PROMPTED, chunk(session="other")]),
        (
            "S2",
            [
                *HELLO,
                client(id=1, method="session/new", params={"cwd": "/", "mcpServers": []}),
                update("available_commands_update", availableCommands=[]),
            ],
        ),
        ("T6: agent_message_chunk outside a turn", [*PROMPTED, DONE, chunk()]),
        ("T6: plan outside a turn", [*NEW, update("plan", entries=[])]),
        ("P3: calls still open", [*PROMPTED, CALL, DONE]),
        ("P3: c is updated before", [*PROMPTED, ENDED]),
        ("P3: tool_call c came twice", [*PROMPTED, CALL, CALL]),
        ("P3: c is updated after it ended", [*PROMPTED, CALL, ENDED, ENDED]),
        ("P3: permission for c", [*PROMPTED, permission()]),
        ("P6: allow_once is not first", [*PROMPTED, CALL, permission(options=OPTIONS[::-1])]),
        ("P6: options", [*PROMPTED, CALL, permission(options=OPTIONS[:1] * 2)]),
        ("P6: asked for permission outside", [*PROMPTED, CALL, ENDED, DONE, permission()]),
        ("I4: the state of the login", [*offering(), STATUS, STATUS]),
        ("S5: a listed session does not", [*ARCHIVING, LISTED]),
        ("S4: replay left calls open", [*PROMPTED, DONE, LOAD, CALL, agent(id=3, result={})]),
        ("P7: a permission is still asked", [*PROMPTED, CALL, permission(), ENDED, DONE]),
        ("T2: the id is in use", [*PROMPTED, CALL, permission(), permission()]),
    ],
)
def test_a_fault_is_named(rule: str, steps: list[Step]) -> None:
    *before, last = steps
    oracle = play(before)
    with pytest.raises(ViolationError) as raised:
        play([last], oracle)
    assert str(raised.value).startswith(rule)


@pytest.mark.parametrize(
    ("names", "last"),
    [
        ("PromptResponse at stopReason", agent(id=2, result={"stopReason": "done"})),
        ("PromptResponse at", agent(id=2, result={})),
        ("PromptResponse at", agent(id=2, result={"stopReason": "end_turn", "stop": 1})),
        ("SessionNotification at update", update("agent_message_chunk", content="hi")),
        (
            "SessionNotification at update",
            update("agent_message_chunk", content={"type": "text", "text": "a"}, messageID="m"),
        ),
        ("SessionNotification at update", update("no_such_update")),
        ("session/updated is no notification", agent(method="session/updated", params={})),
    ],
)
def test_what_the_schema_refuses_is_named(names: str, last: Step) -> None:
    oracle = play(PROMPTED)
    if oracle.rules is None or oracle.rules.schema is None:
        pytest.skip("the protocol's schema needs Node.js, which is not installed")
    with pytest.raises(ViolationError) as raised:
        play([last], oracle)
    assert names in str(raised.value)
