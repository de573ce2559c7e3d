"""What servers ask and report: folders, answers of models, log messages, changed resources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.extensions.mcp_session import Json, OpenWithServers, call, program, results
from tests.support.editor import EVERYTHING, Editor, selected
from tests.support.model_server import ModelServer, answer
from tests.support.waiting import until

SAMPLING = """
[mcp_servers.memo]
command = {command}
args = {args}
sampling = {sampling}
"""


def configured(sampling: str, behaviour: str = "uses-client") -> str:
    """A configuration with the server that uses what the client offers."""
    server = program(behaviour)
    return SAMPLING.format(
        command=json.dumps(server["command"]), args=json.dumps(server["args"]), sampling=sampling
    )


def user_parts(server: ModelServer) -> list[str]:
    """The kinds and texts of the last message of the user's side."""
    content = server.requests[-1].json["messages"][-1]["content"]
    if isinstance(content, str):
        return [content]
    return [part.get("text", part["type"]) for part in content]


async def test_a_server_gets_the_folders_and_is_notified_of_a_new_one(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path, tmp_path: Path
) -> None:
    record, other = tmp_path / "record", tmp_path / "other folder"
    other.mkdir()
    server = program("uses-client", env={"MCP_RECORD": str(record)})
    model_server.add(answer(call("roots")), answer("Done."))
    running, session = await with_servers(server)
    await running.prompt(session, "go")
    assert results(model_server) == [workspace_repo.as_uri()]
    assert "capabilities ['elicitation', 'roots']\n" in record.read_text()
    params = {"sessionId": session, "cwd": str(workspace_repo), "mcpServers": [server]}
    await running.request("session/resume", params | {"additionalDirectories": [str(other)]})
    expected = f"roots {[workspace_repo.as_uri(), other.as_uri()]}"
    await until(lambda: expected in record.read_text())


async def test_log_messages_are_in_the_log_and_in_the_list_of_the_server(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path, home: Path
) -> None:
    record = tmp_path / "record"
    server = program("uses-client", env={"MCP_RECORD": str(record), "SERVER_TOKEN": "s3cr3t-value"})
    model_server.add(answer(call("log", data="the disk is full of s3cr3t-value")), answer("Done."))
    running, session = await with_servers(server)
    await running.prompt(session, "go")
    assert "level info" in record.read_text()
    await running.prompt(session, "/mcp memo")
    shown = running.text(session)
    assert "warning: disk: the disk is full of" in shown
    log = "".join(file.read_text() for file in (home / "acp-agent").rglob("*.log*"))
    assert "warning: disk: the disk is full of" in log
    assert "s3cr3t-value" not in shown + log


@pytest.mark.parametrize("behaviour", ["uses-client", "uses-newer-client"])
async def test_a_changed_resource_that_was_attached_is_named_in_the_next_request(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path, behaviour: str
) -> None:
    record = tmp_path / "record"
    model_server.add(answer("Read."))
    running, session = await with_servers(program(behaviour, env={"MCP_RECORD": str(record)}))
    await running.prompt(session, "compare @memo:memo://one")
    await until(lambda: "subscribed memo://one" in record.read_text())
    touched = [call("touch", uri="memo://other"), call("touch", uri="memo://one")]
    model_server.add(answer(*touched), answer("Seen."), answer("Nothing new."))
    await running.prompt(session, "go on")
    sent = json.dumps(model_server.requests[-1].json["messages"])
    assert sent.count("Resources that were attached have changed") == 1
    assert "@memo:memo://one]" in sent
    assert "@memo:memo://other" not in sent
    await running.prompt(session, "and now?")
    sent = json.dumps(model_server.requests[-1].json["messages"])
    assert sent.count("Resources that were attached have changed") == 1


async def test_a_picture_of_a_resource_is_attached(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer("A pixel."))
    running, session = await with_servers(program("uses-client"))
    await running.prompt(session, "look at @memo:memo://pixel")
    assert "image_url" in user_parts(model_server)


async def test_a_server_gets_a_models_answer_that_the_user_approves(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    model_server.add(answer(call("sample")), answer("A pixel."), answer("Done."))
    running, session = await with_servers(config=configured("true"), editor=editor)
    await running.prompt(session, "go")
    assert "asks the model" in editor.asked[1]["toolCall"]["title"]
    assert "What is it?" in json.dumps(editor.asked[1])
    asked = model_server.requests[1].json
    assert [message["content"] for message in asked["messages"]] == ["Be brief.", "What is it?"]
    assert "tools" not in asked
    got = json.loads(results(model_server)[-1])
    assert got["content"] == {"type": "text", "text": "A pixel."}
    assert got["stopReason"] == "endTurn"
    assert "temperature" not in asked


async def test_an_answer_has_the_servers_temperature_and_ends_where_the_server_says(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    editor = Editor(offers=EVERYTHING, permission="allow_once")
    sample = call("sample", stop="END")
    model_server.add(answer(sample), answer("A pixel. END of the rest END"), answer("Done."))
    running, session = await with_servers(config=configured("true"), editor=editor)
    await running.prompt(session, "go")
    assert model_server.requests[1].json["temperature"] == 0.3
    got = json.loads(results(model_server)[-1])
    assert got["content"] == {"type": "text", "text": "A pixel. "}
    assert got["stopReason"] == "stopSequence"


@pytest.mark.parametrize(
    ("sampling", "ask", "rounds", "why"),
    [
        ("true", "What is it?", 1, "the user rejected the request"),
        ("true", "x" * 100_001, 1, "more than 100,000 characters"),
        ("false", "What is it?", 1, "Sampling not supported"),
        ("true", "What is it?", 11, "more than 10 requests in one turn"),
    ],
)
async def test_no_model_is_asked_without_consent_and_within_limits(
    with_servers: OpenWithServers,
    model_server: ModelServer,
    sampling: str,
    ask: str,
    rounds: int,
    why: str,
) -> None:
    async def decide(params: Json) -> Json:
        kinds = {option["kind"]: option["optionId"] for option in params["options"]}
        asks_model = "asks the model" in params["toolCall"]["title"]
        return selected(kinds["reject_once" if asks_model else "allow_once"])

    editor = Editor(offers=EVERYTHING, permission=decide)
    calls = [call("sample", ask=ask) for _ in range(rounds)]
    model_server.add(answer(*calls), answer("Done."))
    running, session = await with_servers(config=configured(sampling), editor=editor)
    await running.prompt(session, "go")
    assert why in "\n".join(results(model_server))
    assert len(model_server.requests) == 2


async def test_the_budget_covers_the_answers_that_servers_ask_for(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    config = configured("true") + "\n[budget]\nturn_tokens = 20_000\n"
    model_server.add(answer(call("sample", ask="words " * 16_000)), answer("Done."))
    running, session = await with_servers(config=config)
    await running.prompt(session, "go")
    assert len(model_server.requests) == 1  # the text is in the conversation, too
    ends = [one for one in running.updates(session) if one.get("status") in {"completed", "failed"}]
    assert "budget" in json.dumps(ends)


async def test_a_server_of_the_newer_version_asks_within_its_answer(
    with_servers: OpenWithServers, model_server: ModelServer, workspace_repo: Path
) -> None:
    calls = answer(call("roots"), call("sample"))
    model_server.add(calls, answer("A pixel."), answer("Done."))
    running, session = await with_servers(config=configured("true", "uses-newer-client"))
    await running.prompt(session, "go")
    roots, sampled = map(json.loads, results(model_server))
    assert [root["uri"] for root in roots["roots"]] == [workspace_repo.as_uri()]
    assert sampled["content"]["text"] == "A pixel."
