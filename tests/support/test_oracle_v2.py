"""The oracle of version 2 lets pass what a conforming agent writes, and names each fault."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.support.framing import ClientFaultError, ViolationError
from tests.support.oracle_steps import END, OPTIONS, Step, agent, client, elicitation, play, update


def ask(number: int, method: str, **params: Any) -> Step:
    return client(id=number, method=method, params={"sessionId": "s"} | params)


def done(number: int, **result: Any) -> Step:
    return agent(id=number, result=result)


def failed(number: int, code: int = -32602) -> Step:
    return agent(id=number, error={"code": code, "message": "it is not so"})


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def said(message: str, words: str = "go") -> Step:
    return update("user_message", messageId=message, content=[text(words)])


def chunk(message: str = "a1", words: str = "hi") -> Step:
    return update("agent_message_chunk", messageId=message, content=text(words))


def call(status: str | None = None, **fields: Any) -> Step:
    state = {} if status is None else {"status": status}
    return update("tool_call_update", toolCallId="c", **state, **fields)


def terminal(**fields: Any) -> Step:
    return update("terminal_update", terminalId="t", **fields)


def output(data: str = base64.b64encode(b"\xc3").decode()) -> Step:
    return update("terminal_output_chunk", terminalId="t", data=data)


def state(name: str, **fields: Any) -> Step:
    return update("state_update", state=name, **fields)


def permission(**params: Any) -> Step:
    subject = {"type": "tool_call", "toolCall": {"toolCallId": "c"}}
    whole = {"sessionId": "s", "title": "Edit a.py?", "subject": subject, "options": OPTIONS}
    return agent(id="p", method="session/request_permission", params=whole | params)


NAME = {"name": "test", "version": "1"}
LOGIN = {"methodId": "demo", "type": "agent", "name": "Demo"}
INITIALIZE = client(
    id=0, method="initialize", params={"protocolVersion": 2, "info": NAME, "capabilities": {}}
)
HELLO = [INITIALIZE, done(0, protocolVersion=2, info=NAME, authMethods=[LOGIN])]
NEW = [*HELLO, client(id=1, method="session/new", params={"cwd": "/"}), done(1, sessionId="s")]
PROMPT = ask(2, "session/prompt", prompt=[text("go")])
ACCEPTED = [done(2, messageId="u1"), said("u1")]
RUNNING = state("running")
BEGUN = [*NEW, PROMPT, *ACCEPTED, RUNNING]
IDLE = state("idle", stopReason="end_turn")
CHILD = update("subagent_update", sessionId="child")
OTHER = update("subagent_update", sessionId="t")
TASK = update("session_message", messageId="m", senderSessionId="s", recipientSessionId="child")
CHILD_RUNS = update("state_update", "child", state="running")
CHILD_SAYS = update("agent_message_chunk", "child", messageId="x", content=text("hm"))
CANCEL = client(method="session/cancel", params={"sessionId": "s"})
CANCELLED = state("idle", stopReason="cancelled")
CALL = call("pending", title="Edit a.py", kind="edit")
ENDED = call("completed")
ANSWER = client(id="p", result={"outcome": {"outcome": "selected", "optionId": "yes"}})
WITHDRAWN = agent(method="$/cancel_request", params={"requestId": "p"})
TERMINAL = terminal(command="make", cwd="/", capabilities={"cancel": {}})
EXIT = terminal(exitStatus={"exitCode": 0}, capabilities=None)
RESUME = ask(3, "session/resume", cwd="/")
REPLAY = ask(3, "session/resume", cwd="/", replayFrom={"type": "start"})
CLOSE = ask(4, "session/close")
PLAN = update("plan_update", plan={"type": "items", "planId": "p", "entries": []})
STEER = ask(5, "session/prompt", prompt=[text("and this")])
BATCH = (
    "client",
    [
        {"jsonrpc": "2.0", "id": 7, "method": "session/list", "params": {}},
        {"jsonrpc": "2.0", "id": 8, "method": "session/list", "params": {}},
        {"jsonrpc": "2.0", "method": "session/cancel", "params": {"sessionId": "s"}},
        7,
    ],
)
LISTED: list[dict[str, Any]] = [
    {"jsonrpc": "2.0", "id": number, "result": {"sessions": []}} for number in (7, 8)
]
REFUSED = {"jsonrpc": "2.0", "id": None, "error": {"code": -32600, "message": "not a request"}}


GOOD: dict[str, list[Step]] = {
    "a turn with a question": [
        *BEGUN, chunk(), CALL, permission(), state("requires_action"), ANSWER, RUNNING,
        call("in_progress"),
        update("tool_call_content_chunk", toolCallId="c", content={
            "type": "content", "content": text("x"),
        }),
        ENDED, chunk("a2"), IDLE,
    ],
    "a command with its terminal": [
        *BEGUN, CALL, call(content=[{"type": "terminal", "terminalId": "t"}]), TERMINAL,
        call("in_progress"), output(), output(), EXIT, ENDED, IDLE,
    ],
    "a command that goes on in the background": [
        *BEGUN, CALL, TERMINAL, ENDED,
        state("idle", stopReason="end_turn", background=[{"type": "terminal", "terminalId": "t"}]),
        output(), EXIT,
    ],
    "running before the message is in the conversation": [
        *NEW, PROMPT, RUNNING, said("u1"), done(2, messageId="u1"), chunk(), IDLE,
    ],
    "a second prompt that steers": [
        *BEGUN, chunk(), STEER, said("u2", "and this"), done(5, messageId="u2"), chunk("a2"), IDLE,
    ],
    "a prompt that is refused": [*NEW, PROMPT, failed(2)],
    "a cancel": [
        *BEGUN, CALL, permission(), CANCEL, WITHDRAWN, call("cancelled"), CANCELLED,
    ],
    "a cancel that comes too late": [*BEGUN, CANCEL, IDLE],
    "a failure": [
        *BEGUN,
        state("idle", stopReason="error", error={
            "code": -32603, "message": "no luck", "data": {"kind": "model"},
        }),
    ],
    "two turns": [
        *BEGUN, chunk(), IDLE, STEER, said("u2"), RUNNING, done(5, messageId="u2"), IDLE,
    ],
    "a resume": [*BEGUN, IDLE, CLOSE, done(4), RESUME, state("idle"), done(3)],
    "a replay": [
        *BEGUN, chunk(), CALL, ENDED, IDLE, CLOSE, done(4), REPLAY, said("u1"),
        update("agent_message", messageId="a1", content=[text("hi")]),
        call("completed", title="Edit a.py"), state("idle", stopReason="end_turn"), done(3),
    ],
    "a replay while it works": [
        *BEGUN, CALL, REPLAY, said("u1"), call("pending", title="Edit a.py"), RUNNING, done(3),
        ENDED, IDLE,
    ],
    "a close while it works": [*BEGUN, chunk(), CLOSE, CANCELLED, done(4)],
    "plans": [*BEGUN, PLAN, update("plan_removed", planId="p"), IDLE],
    "notices at any time": [*NEW, update("notice", severity="info", title="x")],
    "a batch": [*NEW, BATCH, ("agent", [LISTED[1], REFUSED, LISTED[0]])],
    "a subagent": [
        *BEGUN, CHILD, TASK, CHILD_RUNS, CHILD_SAYS,
        update("state_update", "child", state="idle", stopReason="end_turn"), IDLE,
    ],
    "a subagent in a replay": [
        *BEGUN, CHILD, REPLAY, CHILD, TASK, CHILD_SAYS, RUNNING, done(3), IDLE,
    ],
    "a compaction": [
        *BEGUN, update("compaction_update", compactionId="k", status="in_progress"),
        update("compaction_summary_chunk", compactionId="k", content=text("short")),
        update("compaction_update", compactionId="k", status="completed"), IDLE,
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", GOOD)
def test_what_a_conforming_agent_writes_passes(name: str) -> None:
    play([*GOOD[name], END])


BAD: list[tuple[str, list[Step]]] = [
    ("schema: session/prompt: PromptResponse", [*NEW, PROMPT, done(2)]),
    ("schema: session/update", [*BEGUN, update("agent_message_chunk", content=text("x"))]),
    ("schema: session/update", [*BEGUN, update("chunk", messageId="a")]),
    ("schema: session/update", [*BEGUN, state("thinking")]),
    ("schema: session/update", [*BEGUN, state("idle", stopReason="done")]),
    ("schema: session/update", [*BEGUN, CALL, call("done")]),
    ("schema: session/request_permission", [*BEGUN, CALL, permission(title=None)]),
    ("schema: initialize", [INITIALIZE, done(0, protocolVersion=2, authMethods=[LOGIN])]),
    ("I2", [INITIALIZE, RUNNING]),
    ("I4: no login", [INITIALIZE, done(0, protocolVersion=2, info=NAME)]),
    ("fs/read_text_file is no request", [
        *BEGUN, agent(id=1, method="fs/read_text_file", params={"sessionId": "s", "path": "/a"}),
    ]),
    ("terminal/create is no request", [
        *BEGUN, agent(id=1, method="terminal/create", params={"sessionId": "s", "command": "ls"}),
    ]),
    ("session/load is no response", [*NEW, ask(3, "session/load"), done(3)]),
    ("session/set_mode is no response", [*NEW, ask(3, "session/set_mode"), done(3)]),
    ("I6: elicitation/create form", [
        *BEGUN,
        elicitation("form", requestedSchema={"type": "object", "properties": {}}),
    ]),
    ("I6: elicitation/create url", [
        *BEGUN, elicitation("url", elicitationId="e", url="https://example.com/"),
    ]),
    ("I6: an MCP server", [
        *BEGUN,
        agent(id="m", method="mcp/message", params={
            "serverId": "x", "requestId": "1", "method": "ping",
        }),
    ]),
    ("S2", [*NEW, update("session_info_update", "other", title="x")]),
    ("S2", [*NEW, CLOSE, done(4), update("session_info_update", title="x")]),
    ("S2", [*BEGUN, TASK]),
    ("S2", [*BEGUN, CHILD_SAYS]),
    ("T6", [*BEGUN, CHILD, CHILD_SAYS]),
    (
        "P13: child has a parent",
        [*BEGUN, CHILD, OTHER, update("subagent_update", "t", sessionId="child")],
    ),
    ("S2", [*NEW, ask(4, "session/delete"), done(4), RUNNING]),
    ("S4: resumed without", [*NEW, CLOSE, done(4), RESUME, done(3)]),
    ("S4: user_message is replayed", [*BEGUN, IDLE, CLOSE, done(4), RESUME, said("u1")]),
    ("S4: after the replay calls", [
        *NEW, CLOSE, done(4), REPLAY, call("in_progress", title="x"), state("idle"), done(3),
    ]),
    ("S5: closed before", [*BEGUN, CLOSE, done(4)]),
    ("S5: a listed session does not", [
        INITIALIZE,
        done(0, protocolVersion=2, info=NAME, authMethods=[LOGIN], capabilities={
            "session": {"archive": {}},
        }),
        ask(3, "session/list"),
        done(3, sessions=[{"sessionId": "s", "cwd": "/"}]),
    ]),
    ("P9: user_message u1 came twice", [*BEGUN, said("u1")]),
    ("P9: never shown", [*NEW, PROMPT, done(2, messageId="u1"), RUNNING, IDLE, END]),
    ("P9: never shown", [
        *NEW, PROMPT, done(2, messageId="u1"), RUNNING, IDLE, RUNNING, IDLE,
    ]),
    ("P9: no prompt was answered", [*NEW, PROMPT, said("u1"), RUNNING, IDLE, failed(2), END]),
    ("P1: two prompts", [*BEGUN, STEER, done(5, messageId="u1")]),
    ("P2: u1 is of user and now of agent", [*BEGUN, chunk("u1")]),
    ("T6: agent_message_chunk while idle", [*NEW, PROMPT, *ACCEPTED, chunk()]),
    ("T6: agent_message_chunk while idle", [*BEGUN, IDLE, chunk()]),
    ("T6: agent_message_chunk while requires_action", [
        *BEGUN, CALL, permission(), state("requires_action"), ANSWER, chunk(),
    ]),
    ("T6: tool_call_update while idle", [*BEGUN, IDLE, CALL]),
    ("T6: plan_update while idle", [*BEGUN, IDLE, PLAN]),
    ("P8: idle twice", [*BEGUN, IDLE, IDLE]),
    ("P8: idle twice", [*NEW, PROMPT, *ACCEPTED, IDLE]),
    ("P8: work ended without", [*BEGUN, state("idle")]),
    ("P7: end_turn after session/cancel", [
        *BEGUN, CALL, permission(), CANCEL, WITHDRAWN, call("cancelled"), IDLE,
    ]),
    ("P7: cancelled, which nobody", [*BEGUN, CANCELLED]),
    ("P7: the user is still asked", [
        *BEGUN, CALL, permission(), CANCEL, call("cancelled"), CANCELLED,
    ]),
    ("P7: c ended and can be cancelled", [*BEGUN, CALL, call(capabilities={"cancel": {}}), ENDED]),
    ("P7: terminal t exited and can", [*BEGUN, TERMINAL, terminal(exitStatus={"exitCode": 0})]),
    ("P7: a call was cancelled that is unknown", [
        *BEGUN, ask(6, "tool_call/cancel", toolCallId="x"), done(6),
    ]),
    ("P7: a terminal was cancelled that is unknown", [
        *BEGUN, ask(6, "terminal/cancel", terminalId="x"), done(6),
    ]),
    ("P3: when idle calls are open", [*BEGUN, CALL, IDLE]),
    ("P3: when idle terminals run", [*BEGUN, CALL, TERMINAL, ENDED, IDLE]),
    ("P3: when idle terminals are shown", [
        *BEGUN, CALL, call(content=[{"type": "terminal", "terminalId": "t"}]), ENDED, IDLE,
    ]),
    ("P3: c is announced without a title", [*BEGUN, call("pending")]),
    ("P3: c is updated after it ended", [*BEGUN, CALL, ENDED, ENDED]),
    ("P3: content for c, which is not", [
        *BEGUN,
        update("tool_call_content_chunk", toolCallId="c", content={
            "type": "content", "content": text("x"),
        }),
    ]),
    ("P3: permission for c, which is completed", [*BEGUN, CALL, ENDED, permission()]),
    ("P6: session/request_permission while nothing", [*BEGUN, CALL, ENDED, IDLE, permission()]),
    ("P6: asked for permission without a title", [*BEGUN, CALL, permission(title=" ")]),
    ("P6: options", [*BEGUN, CALL, permission(options=OPTIONS[:1] * 2)]),
    ("P6: allow_once is not first", [*BEGUN, CALL, permission(options=OPTIONS[::-1])]),
    ("P6: a command's cwd", [
        *BEGUN, permission(subject={"type": "command", "command": "ls", "cwd": "here"}),
    ]),
    ("P6: a call runs while", [
        *BEGUN, CALL, permission(), state("requires_action"), ANSWER, call("in_progress"),
    ]),
    ("P5: output of a terminal that", [*BEGUN, output()]),
    ("P5: output of a terminal after", [*BEGUN, TERMINAL, EXIT, output()]),
    ("P5: terminal t exits twice", [*BEGUN, TERMINAL, EXIT, EXIT]),
    ("P5: terminal t without", [*BEGUN, terminal(cwd="/")]),
    ("P5: a terminal's cwd", [*BEGUN, terminal(command="ls", cwd="here")]),
    ("P5: not base64", [*BEGUN, TERMINAL, output("ä")]),
    ("P5: not base64", [*BEGUN, TERMINAL, output("YQ")]),
    ("P5: the terminal x is listed", [
        *BEGUN,
        state("idle", stopReason="end_turn", background=[{"type": "terminal", "terminalId": "x"}]),
    ]),
    ("P10: a plan is removed", [*BEGUN, update("plan_removed", planId="p")]),
    ("P14", [
        *BEGUN, update("compaction_update", compactionId="k", status="completed"),
        update("compaction_summary_chunk", compactionId="k", content=text("short")),
    ]),
    ("T3: answered outside the array", [*NEW, BATCH, ("agent", LISTED[0])]),
    ("T3: an array without some", [*NEW, BATCH, ("agent", [LISTED[0]])]),
    ("T2: answers 9", [*NEW, ("agent", [LISTED[0] | {"id": 9}])]),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "steps"), BAD)
def test_a_fault_is_named(rule: str, steps: list[Step]) -> None:
    *before, last = steps
    oracle = play(before)
    if "schema" in rule and oracle.rules is not None and oracle.rules.schema is None:
        pytest.skip("the protocol's schema needs Node.js, which is not installed")
    with pytest.raises(ViolationError) as raised:
        play([last], oracle)
    assert str(raised.value).startswith(rule)


def test_work_that_ends_because_the_client_leaves_may_be_cancelled() -> None:
    oracle = play([*BEGUN, CALL, permission()])
    oracle.leaving()
    play([call("cancelled"), CANCELLED, END], oracle)


def test_a_client_of_version_2_is_held_to_its_own_schema() -> None:
    oracle = play(NEW)
    if oracle.rules is None or oracle.rules.schema is None:
        pytest.skip("the protocol's schema needs Node.js, which is not installed")
    oracle.vet(REPLAY[1])
    oracle.vet(CANCEL[1])
    for wrong in (
        ask(3, "session/load", cwd="/", mcpServers=[]),
        ask(3, "session/resume", cwd="/", replayFrom="start"),
        ask(3, "session/set_mode", modeId="ask"),
    ):
        with pytest.raises(ClientFaultError):
            oracle.vet(wrong[1])
