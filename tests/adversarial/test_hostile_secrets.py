"""No key reaches the model, the editor, the journal or the log, whichever way it tries.

Besides what each test asserts, the fixture `unharmed` looks for the keys in all that the agent
wrote and in every file below its home.
"""

from __future__ import annotations

import base64
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.support.agent_process import AgentProcess
from tests.support.editor import EVERYTHING, Editor
from tests.support.hostile import (
    FOREIGN_KEY,
    KEY,
    MODEL,
    OpenSession,
    assert_goes_on,
    key_environ,
    leaky,
    one_line,
    outcomes,
)
from tests.support.model_server import Call, ModelServer, Raw, Status, answer
from tests.support.ordinary_user import POWERLESS
from tests.support.wire_client import AnswerError

# Not looked for by the fixture: what only looks like a key stays in the diff that the user reviews.
IN_A_DIFF = "ghp_" + "9zY8xW7vU6" * 4


def assert_model_never_saw(server: ModelServer, *keys: str) -> None:
    for request in server.requests:
        for key in keys:
            assert key.encode() not in request.body


async def test_the_agents_own_key_is_hidden_in_what_commands_print(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    half = len(KEY) // 2
    (workspace_repo / "first").write_text(KEY[:half])
    (workspace_repo / "second").write_text(KEY[half:])
    (workspace_repo / "both").write_text(KEY)
    commands = [
        'echo "it is <$OPENAI_API_KEY>"',
        "env",
        "printenv OPENAI_API_KEY || true",
        "tr '\\0' '\\n' < /proc/$PPID/environ || true",
        "cat first; sleep 0.2; cat second",  # in two pieces
        "cat first second >&2; exit 3",
        "for i in $(seq 20); do cat both; echo; done",
    ]
    agent, session = await opened(editor=Editor(permission="allow_once"))
    results = await outcomes(
        agent, session, model_server, *(Call("shell", {"command": line}) for line in commands)
    )
    told = [text for text, _ in results]
    assert "it is <>" in told[0]  # commands do not even get it
    assert told[4].startswith("[secret]")
    assert "[secret]" in told[5]
    assert told[6].count("[secret]") == 20
    assert_model_never_saw(model_server, KEY)
    await assert_goes_on(agent, session, model_server)


@pytest.mark.cold
@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere nothing shows it like /proc")
async def test_a_command_cannot_read_the_agents_environment_or_memory(
    unharmed: list[AgentProcess], model_server: ModelServer, home: Path, workspace_repo: Path
) -> None:
    running = await AgentProcess.start(
        *MODEL,
        home=home,
        environ=key_environ(model_server),
        editor=Editor(permission="allow_once"),
        command=(*POWERLESS, sys.executable, "-m", "acp_agent"),
    )
    unharmed.append(running)
    async with running:
        await running.initialize()
        session = await running.new_session(workspace_repo)
        tried = "cat /proc/$PPID/environ; : < /proc/$PPID/mem || echo closed"
        call = Call("shell", {"command": tried})
        ((text, _),) = await outcomes(running, session, model_server, call)
    assert text.count("Permission denied") == 2
    assert "\nclosed\n" in text


async def test_keys_in_files_are_hidden_from_every_tool_that_reads(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    text = f"OPENAI_API_KEY={KEY}\nGITHUB_TOKEN={FOREIGN_KEY}\nharmless=1\n"
    (workspace_repo / ".env").write_text(text)
    (workspace_repo / "bad.json").write_text('{"key": "' + KEY + '"')
    agent, session = await opened(editor=Editor(offers=EVERYTHING - {"terminal"}))
    results = await outcomes(
        agent,
        session,
        model_server,
        Call("read", {"path": ".env"}),
        Call("grep", {"pattern": "KEY|TOKEN"}),
        Call("shell", {"command": "cat .env; git diff --no-index /dev/null .env"}),
        Call("shell", {"command": "python3 -c 'import json; json.load(open(\"bad.json\"))'"}),
        Call("edit", {"path": ".env", "old": "no such text", "new": "x"}),
    )
    told = [text for text, _ in results]
    assert told[0].count("[secret]") == 2
    assert "harmless=1" in told[0]
    assert told[1].count("[secret]") == 2
    assert_model_never_saw(model_server, FOREIGN_KEY)
    await assert_goes_on(agent, session, model_server)


async def test_a_key_under_a_name_of_the_configurations_choice_is_hidden_too(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    agent, session = await opened(
        "--model",
        "mine/some-model",
        editor=Editor(permission="allow_once"),
        environ={"PLAIN_NAME": KEY, "OPENAI_API_KEY": ""},
        config=f"""
            [providers.mine]
            api = "openai"
            base_url = "{model_server.openai_url}"
            api_key_env = "PLAIN_NAME"
            """,
    )
    (workspace_repo / "notes.txt").write_text(f"the key is {KEY}")
    results = await outcomes(
        agent,
        session,
        model_server,
        Call("shell", {"command": 'echo "it is <$PLAIN_NAME>"'}),
        Call("read", {"path": "notes.txt"}),
    )
    assert "it is <>" in results[0][0]
    assert "the key is [secret]" in results[1][0]
    assert model_server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert_model_never_saw(model_server, KEY)


async def test_keys_in_linked_and_embedded_files_and_in_instructions_are_hidden(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    (workspace_repo / "AGENTS.md").write_text(f"Use {KEY} and {FOREIGN_KEY} to deploy.\n")
    linked = workspace_repo / "linked.txt"
    linked.write_text(f"first {KEY} second {FOREIGN_KEY}\n")
    agent, session = await opened()
    model_server.add(answer("Read."))
    link = {"type": "resource_link", "name": "linked.txt", "uri": linked.as_uri()}
    embedded = {"uri": "file:///elsewhere.env", "text": f"third {KEY} fourth {FOREIGN_KEY}"}
    await agent.prompt(session, "look at this", link, {"type": "resource", "resource": embedded})
    body = model_server.requests[0].body.decode()
    assert "to deploy" in body
    assert "first [secret] second [secret]" in body
    assert "third [secret] fourth [secret]" in body
    assert_model_never_saw(model_server, KEY, FOREIGN_KEY)


async def test_a_long_output_is_saved_without_its_keys(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path, home: Path
) -> None:
    (workspace_repo / "long.txt").write_text(
        "".join(f"{number} {KEY} {FOREIGN_KEY}\n" for number in range(5_000))
    )
    agent, session = await opened(editor=Editor(permission="allow_once"))
    ((told, _),) = await outcomes(
        agent, session, model_server, Call("shell", {"command": "cat long.txt"})
    )
    assert "[secret]" in told
    assert len(told) < 51_000
    kept = [path for path in (home / "acp-agent" / "outputs").rglob("*") if path.is_file()]
    assert len(kept) == 1
    assert kept[0].read_text().count("[secret]") == 10_000
    assert_model_never_saw(model_server, KEY, FOREIGN_KEY)


async def test_the_key_in_a_providers_error_is_shown_to_nobody(
    opened: OpenSession, model_server: ModelServer
) -> None:
    agent, session = await opened(
        editor=Editor(offers=frozenset({"notices"})),
        config="[limits]\nmax_retries = 1\n[log]\nlevel = 'debug'\n",
    )
    for code in (400, 401, 403, 404, 413, 418, 429, 500, 529):
        model_server.otherwise = leaky(code)
        with pytest.raises(AnswerError) as caught:
            await agent.prompt(session, "hello")
        assert one_line(caught.value.message)
        assert caught.value.data == {"provider": "openai", "status": code}
    assert len(agent.updates(session, "notice")) == 3  # those that were tried again
    await assert_goes_on(agent, session, model_server)


async def test_the_key_in_a_providers_stream_is_shown_to_nobody(
    opened: OpenSession, model_server: ModelServer
) -> None:
    error = f'data: {{"error": {{"message": "bad key {KEY}", "code": "weird"}}}}\n\n'
    model_server.add(answer("Well, ", Raw(error.encode()), ended=False))
    agent, session = await opened(config="[limits]\nmax_retries = 0\n")
    with pytest.raises(AnswerError) as caught:
        await agent.prompt(session, "hello")
    assert one_line(caught.value.message)
    await assert_goes_on(agent, session, model_server)


async def test_the_placeholder_of_a_hidden_key_never_overwrites_it(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    path = workspace_repo / "settings.env"
    before = f"token={IN_A_DIFF}\nname=old\n"
    path.write_text(before)
    agent, session = await opened(editor=Editor(permission="allow_once"))
    read, edit, write, old, good = await outcomes(
        agent,
        session,
        model_server,
        Call("read", {"path": path.name}),
        Call("edit", {"path": path.name, "old": "name=old", "new": "token=[secret]\nname=new"}),
        Call("write", {"path": path.name, "content": "token=[secret]\nname=new\n"}),
        Call("edit", {"path": path.name, "old": "token=[secret]\nname=old", "new": "name=new"}),
        Call("edit", {"path": path.name, "old": "name=old", "new": "name=new"}),
    )
    assert "token=[secret]" in read[0]
    for told, ended in (edit, write, old):
        assert ended["status"] == "failed"
        assert "[secret], which stands for a hidden value; edit around it" in told
        assert one_line(told)
    assert good[1]["status"] == "completed"
    assert path.read_text() == before.replace("old", "new")
    assert_model_never_saw(model_server, IN_A_DIFF)


async def test_a_file_that_hides_nothing_may_speak_of_secrets(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    agent, session = await opened(editor=Editor(permission="allow_once"))
    results = await outcomes(
        agent,
        session,
        model_server,
        Call("write", {"path": "docs.md", "content": "Keys are shown as [secret].\n"}),
        Call("edit", {"path": "docs.md", "old": "shown", "new": "shown ([secret], that is)"}),
        Call("edit", {"path": "docs.md", "old": "([secret], that is) ", "new": ""}),
    )
    assert [ended["status"] for _, ended in results] == ["completed"] * 3, results
    assert (workspace_repo / "docs.md").read_text() == "Keys are shown as [secret].\n"


def test_the_fixture_finds_a_key_that_got_out(home: Path) -> None:
    """The other tests rely on it."""
    from tests.support.hostile import assert_no_key_below, assert_unharmed

    (home / "agent.log").write_text(f"it is {KEY}")
    with pytest.raises(AssertionError, match=r"agent\.log"):
        assert_no_key_below(home, "the home")
    told = AgentProcess.__new__(AgentProcess)
    told.stderr, told.lines = f"it is {KEY}".encode(), []
    with pytest.raises(AssertionError, match="stderr"):
        assert_unharmed(told)


async def test_the_agents_own_key_is_in_no_diff_and_stays_in_the_file(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    file = workspace_repo / ".env"
    file.write_text(f"KEY={KEY}\nDEBUG=0\n")
    agent, session = await opened(editor=Editor(permission="allow_once"))
    await outcomes(
        agent,
        session,
        model_server,
        Call("read", {"path": ".env"}),
        Call("edit", {"path": ".env", "old": "DEBUG=0", "new": "DEBUG=1"}),
    )
    assert file.read_text() == f"KEY={KEY}\nDEBUG=1\n"
    diffs = [
        part
        for update in agent.updates(session, "tool_call_update")
        for part in update.get("content") or ()
        if part["type"] == "diff"
    ]
    assert [diff["newText"] for diff in diffs] == ["KEY=[secret]\nDEBUG=1\n"]


async def test_a_key_in_the_arguments_of_a_call_is_used_and_not_shown(
    opened: OpenSession, model_server: ModelServer, workspace_repo: Path
) -> None:
    asked = Editor(permission="allow_once")
    agent, session = await opened(editor=asked)
    encoded = base64.b64encode(f"{KEY}".encode()).decode()
    results = await outcomes(
        agent,
        session,
        model_server,
        Call("shell", {"command": f"printf %s '{KEY}' > whole"}),
        Call("shell", {"command": f"printf %s '{FOREIGN_KEY}' > foreign; : {encoded}"}),
        Call("todo", {"steps": [{"text": f"use {KEY}", "status": "pending"}]}),
        Call("no_such_tool", {KEY: [KEY]}),
    )
    assert len(results) == 4
    assert (workspace_repo / "whole").read_text() == KEY  # the command got it
    assert (workspace_repo / "foreign").read_text() == FOREIGN_KEY
    written = b"".join(agent.lines)
    assert written.count(b"[secret]") > 4
    assert encoded.encode() not in written
    # The calls that are in the conversation have none either.
    assert_model_never_saw(model_server, KEY, FOREIGN_KEY)


async def test_a_provider_that_repeats_a_part_of_the_key_in_its_error_is_not_quoted_with_it(
    opened: OpenSession, model_server: ModelServer
) -> None:
    agent, session = await opened()
    parts = (quote(KEY, safe=""), KEY[:14], f"{KEY[:6]}********{KEY[-4:]}")
    for part in parts:
        model_server.add(Status(code=400, message=f"this request with key {part} is not good"))
        with pytest.raises(AnswerError):
            await agent.prompt(session, "hi")
    written = b"".join(agent.lines)
    for part in parts:
        assert part.encode() not in written
