"""A client's trace in the log, and in what the agent asks the client."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from acp_agent.config.paths import find_paths
from acp_agent.server.trace_context import TraceContext, trace_context
from tests.server.server_session import EDIT, MODELS, OPENAI, READ
from tests.support.agent_process import StartAgent, config_file
from tests.support.editor import Editor
from tests.support.framing import Json
from tests.support.model_server import Call, ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"
META: Json = {"traceparent": PARENT, "tracestate": "vendor=a,other=b", "baggage": "user=ada"}
MARK = f" trace={TRACE} span={SPAN}"


def prompt_params(session: str, **meta: Any) -> Json:
    params: Json = {"sessionId": session, "prompt": [{"type": "text", "text": "do it"}]}
    return params | ({"_meta": meta} if meta else {})


async def log_lines(home: Path, running: Any) -> list[str]:
    await running.close_stdin()
    await running.wait()
    log = find_paths({"ACP_AGENT_HOME": str(home / "acp-agent")}).log_file
    return (await asyncio.to_thread(log.read_text)).splitlines()


async def test_the_log_of_a_traced_turn_has_the_trace_and_that_of_others_has_not(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path
) -> None:
    config_file(home, MODELS)
    running = await agent(*OPENAI, environ=model_server.environ())
    await running.initialize()
    session = await running.new_session(workspace_repo)
    # An answer that cannot be used is logged where the question was asked.
    ask = answer(Call("ask_user", {"question": "Which?"}))
    model_server.add(ask, answer("Well."), ask, answer("Well."))
    await running.initialize(clientCapabilities={"elicitation": {"form": {}}})
    running.editor.well_behaved = False
    running.editor.answer = lambda _: {"action": "accept", "content": {"answer": 7}}
    for meta in (META, {}):
        await running.result(running.post("session/prompt", prompt_params(session, **meta)))
    lines = await log_lines(home, running)
    declined = [line for line in lines if "counts as declined" in line]
    assert len(declined) == 2
    assert declined[0].endswith(MARK)
    assert TRACE not in declined[1]


@pytest.mark.parametrize("version", [1, 2])
async def test_requests_of_the_agent_in_a_turn_carry_the_trace(
    agent: StartAgent, home: Path, model_server: ModelServer, workspace_repo: Path, version: int
) -> None:
    config_file(home, MODELS)
    ask = Call("ask_user", {"question": "Which?"})
    model_server.add(answer(READ), answer(EDIT), answer(ask), answer("Done."))
    model_server.add(answer(READ), answer(ask), answer("Again."))
    offers: Any = frozenset({"elicitation", "read", "write"})
    editor = Editor(offers=offers) if version == 1 else EditorV2(offers=offers)
    running = await agent(*OPENAI, editor=editor, environ=model_server.environ())
    if version == 1:
        await running.initialize()
        session = await running.new_session(workspace_repo)
        await running.result(running.post("session/prompt", prompt_params(session, **META)))
        await running.prompt(session, "again")
    else:
        client = V2Client(running)
        await client.initialize()
        session = await client.new_session(workspace_repo)
        prompt = running.post("session/prompt", prompt_params(session, **META))
        await client.idle(session, await client.said(prompt))
        await client.prompt(session, "again")
    request_ids = [
        message for message in running.messages if "id" in message and "method" in message
    ]
    last = 2 if version == 1 else 1  # of the second turn: a file and a question, or this alone
    traced, untraced = request_ids[:-last], request_ids[-last:]
    methods = {message["method"] for message in traced}
    assert methods >= {"session/request_permission", "elicitation/create"}
    assert ("fs/read_text_file" in methods) == (version == 1)
    for message in traced:
        assert message["params"]["_meta"] == META
    assert untraced[-1]["method"] == "elicitation/create"
    for message in untraced:
        assert "_meta" not in message["params"]


@pytest.mark.parametrize(
    "parent",
    [
        PARENT.upper(),
        PARENT[:-1],
        PARENT + "-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-0g",
        f"00-{TRACE}-{SPAN}-01\n",
        "",
        7,
        None,
        [PARENT],
    ],
    ids=repr,
)
def test_a_parent_that_is_not_as_the_specification_says_is_no_trace(parent: object) -> None:
    assert trace_context({**META, "traceparent": parent}) is None


def test_malformed_or_too_long_state_and_baggage_are_dropped() -> None:
    def parsed(**meta: object) -> tuple[str | None, str | None]:
        context = trace_context({"traceparent": PARENT, **meta})
        assert isinstance(context, TraceContext)
        return context.tracestate, context.baggage

    assert parsed(tracestate="a=1, b@c=2,", baggage="k=v;p=1,l=w") == ("a=1, b@c=2,", "k=v;p=1,l=w")
    for state in (
        "nothing",
        "A=1",
        "a=1,=2",
        "a=" + "x" * 600,
        ",".join(["a=1"] * 33),
        3,
        "a=\x00",
    ):
        assert parsed(tracestate=state, baggage="k=v") == (None, "k=v")
    for baggage in ("", "k=\n", "k=" + "v" * 9_000, {"k": "v"}, "k=ü"):
        assert parsed(tracestate="a=1", baggage=baggage) == ("a=1", None)
