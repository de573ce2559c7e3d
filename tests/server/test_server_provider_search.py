"""Searches of the web by the model's own provider: shown, asked about, replayed, sent back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.server.server_session import OpenSession
from tests.support.agent_process import config_file
from tests.support.editor import Editor
from tests.support.model_server import (
    Api,
    Call,
    Cite,
    ModelServer,
    Search,
    answer,
)

PAGES = [("The docs", "https://example.com/docs"), ("A blog", "https://example.org/blog")]
SEARCHING: list[Api] = ["anthropic", "openai_responses", "gemini"]
# What makes each provider's tool part of a request.
SEARCH_TOOL = {
    "anthropic": '"type":"web_search_20250305"',
    "openai_responses": '{"type":"web_search"}',
    "gemini": '{"googleSearch":{}}',
}
# What it wants back of a search, unchanged.
SENT_BACK = {
    "anthropic": '"encrypted_content":"sealed https://example.com/docs"',
    "openai_responses": '"type":"web_search_call","id":"ws_1","status":"completed"',
    "gemini": '"thoughtSignature":"answered what is new"',
}


def configure(home: Path, server: ModelServer, *, service: str = "provider") -> None:
    """Let each API's provider be the scripted server."""
    tables = [
        f'[providers.my_{api}]\napi = "{api}"\nbase_url = "{server.url}/v1"\n'
        f'[models."my_{api}/some-model"]\nvision = true\n'
        for api in SEARCHING
    ]
    config_file(home, f'[web_search]\nservice = "{service}"\n' + "".join(tables))


def search_call(updates: list[dict[str, Any]]) -> dict[str, Any]:
    """The updates of the one call that is shown, joined."""
    joined: dict[str, Any] = {}
    for update in updates:
        if update["sessionUpdate"] in {"tool_call", "tool_call_update"}:
            joined |= {key: value for key, value in update.items() if value is not None}
    return joined


@pytest.mark.parametrize("api", SEARCHING)
async def test_a_provider_s_search_is_shown_with_its_sources_replayed_and_sent_back(
    opened: OpenSession, home: Path, model_server: ModelServer, workspace_repo: Path, api: Api
) -> None:
    configure(home, model_server)
    model_server.add(
        answer("I look. ", Search("what is new", PAGES), "It is 4.2.", Cite(*PAGES[0])),
        answer("And more."),
    )
    running, session = await opened("--model", f"my_{api}/some-model")
    await running.prompt(session, "what is new?")
    first = model_server.requests[0].body.decode()
    assert SEARCH_TOOL[api] in first
    assert '"name":"web_search","description"' not in first  # ours is not offered beside it
    call = search_call(running.updates(session))
    assert call["title"] == "Search the web for what is new"
    assert (call["kind"], call["status"]) == ("search", "completed")
    text = running.text(session)
    assert text.startswith("I look. It is 4.2.")
    assert "Sources:\n- The docs: <https://example.com/docs>" in text
    if api != "gemini":  # which names its pages at the end of the answer alone
        assert "<https://example.org/blog>" in json.dumps(call["content"])

    live = running.updates(session)
    await running.stop()
    restarted, _ = await opened("--model", f"my_{api}/some-model")
    load = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": []}
    await restarted.request("session/load", load)
    replayed = restarted.updates(session)
    assert search_call(replayed) == search_call(live)
    await restarted.prompt(session, "more")
    second = model_server.requests[1].body.decode()
    assert SENT_BACK[api] in second
    assert "Sources:" not in second


async def test_another_provider_is_sent_a_search_as_plain_text(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    configure(home, model_server)
    running, session = await opened("--model", "my_anthropic/some-model")
    for number, api in enumerate((*SEARCHING, "anthropic")):
        model_server.add(answer(Search(f"search {number}", PAGES), f"Answer {number}."))
        chosen = {"configId": "model", "value": f"my_{api}/some-model"}
        await running.request(
            "session/set_config_option", {"sessionId": session, **chosen}, checked=True
        )
        await running.prompt(session, "go")
    last = json.dumps(model_server.requests[-1].json["messages"])
    assert '"id": "srvtoolu_search 0"' in last
    assert "[Search the web for search 1]" in last
    assert "ws_0" not in last
    assert "toolResponse" not in last


@pytest.mark.parametrize("api", SEARCHING)
async def test_a_search_that_needs_permission_is_a_call_of_its_own(
    opened: OpenSession, home: Path, model_server: ModelServer, api: Api
) -> None:
    """The question shows the query and says which host it goes to."""
    models = {"anthropic": "claude-x", "gemini": "gemini-3", "openai_responses": "gpt-6"}
    names = {"openai_responses": "openai"}
    provider = names.get(api, api)
    config_file(
        home, f'[providers.{provider}]\napi = "{api}"\nbase_url = "{model_server.url}/v1"\n'
    )
    model_server.add(
        answer(Call("web_search", {"query": "what is new"})),
        answer(Search("what is new", PAGES), "Version 4.2 is.", Cite(*PAGES[0])),
        answer("Done."),
    )
    editor = Editor(permission="allow_once")
    environ = {f"{provider.upper()}_API_KEY": "sk-test"}
    running, session = await opened(
        "--model", f"{provider}/{models[api]}", editor=editor, environ=environ
    )
    await running.prompt(session, "what is new?")
    (question,) = editor.asked
    assert question["toolCall"]["title"] == "Search the web for what is new"
    assert "127.0.0.1" in question["options"][1]["name"]
    main, side, after = (request.body.decode() for request in model_server.requests)
    assert SEARCH_TOOL[api] not in main
    assert SEARCH_TOOL[api] in side
    assert "what is new?" not in side  # the query goes out, and not the conversation
    assert "Version 4.2 is." in after
    assert "https://example.com/docs" in after
    call = search_call(running.updates(session))
    assert call["status"] == "completed"
    assert "<https://example.com/docs>" in json.dumps(call["content"])


async def test_a_paused_answer_continues_with_the_search_that_it_began(
    opened: OpenSession, home: Path, model_server: ModelServer
) -> None:
    configure(home, model_server)
    model_server.add(
        answer("I look. ", Search("slow", ended=False), stop="pause_turn"),
        answer(Search("slow", PAGES, began=False), "Found."),
        answer("Again."),
    )
    running, session = await opened("--model", "my_anthropic/some-model")
    await running.prompt(session, "go")
    paused = model_server.requests[1].json["messages"][-1]
    assert paused["role"] == "assistant"
    assert [block["type"] for block in paused["content"]] == ["text", "server_tool_use"]
    assert running.text(session) == "I look. Found."
    await running.prompt(session, "go on")
    content = model_server.requests[2].json["messages"][1]["content"]
    assert [block["type"] for block in content] == [
        "text", "server_tool_use", "web_search_tool_result", "text",
    ]  # fmt: skip


@pytest.mark.parametrize("end", ["max_tokens", "failed"])
async def test_a_search_that_did_not_end_is_shown_so_and_not_sent_back(
    opened: OpenSession, home: Path, model_server: ModelServer, end: str
) -> None:
    configure(home, model_server)
    search = Search("nothing", ended=end == "failed")
    model_server.add(answer("I look. ", search, stop="max_tokens" if end != "failed" else None))
    model_server.add(answer("More."), answer("Again."))
    running, session = await opened("--model", "my_anthropic/some-model")
    await running.prompt(session, "go")
    assert search_call(running.updates(session))["status"] == "failed"
    await running.prompt(session, "go on")
    request_text = model_server.requests[-1].body.decode()
    assert ("server_tool_use" in request_text) == (end == "failed")
