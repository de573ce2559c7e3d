"""The agent's terminals over version 2: the bytes of commands, how they end, and their snapshots.

Source: Agent Client Protocol v2, Tool Calls, Display-only Terminals.
"""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.server.v2_session import OpenV2, connect
from tests.support.agent_process import StartAgent
from tests.support.model_server import Call, ModelServer, answer
from tests.support.v2_client import V2Client
from tests.support.v2_view import Terminal


async def ran(client: V2Client, session: str, server: ModelServer, command: str) -> Terminal:
    """The terminal of a command that the model ran."""
    server.add(answer(Call("shell", {"command": command})), answer("I see."))
    assert (await client.prompt(session, "Go"))["stopReason"] == "end_turn"
    return list(client.view(session).terminals.values())[-1]


OUTPUTS = {
    "printf 'one\\ntwo\\n'": b"one\r\ntwo\r\n",
    "printf '\\303'; sleep 0.1; printf '\\251'": "é".encode(),
    "printf '\\360\\237'; sleep 0.15; printf '\\230\\200!'": "😀!".encode(),
    "printf '\\377\\303'; sleep 0.1; printf '\\251'": b"\xff\xc3\xa9",
    "printf 'a\\200b\\377'": b"a\x80b\xff",
    "printf '\\303'": b"\xc3",
    "printf '\\357\\277\\275\\377'": "\ufffd".encode() + b"\xff",
    "printf '\\033[31mred\\033[0m'": b"red",  # nothing that steers a terminal
    "true": b"",
}


@pytest.mark.covers("P5")
async def test_the_bytes_of_commands_are_shown_live_and_replayed_as_they_were(
    opened_v2: OpenV2, agent: StartAgent, model_server: ModelServer, workspace_repo: Path
) -> None:
    client, session = await opened_v2()
    for command, output_bytes in OUTPUTS.items():
        terminal = await ran(client, session, model_server, command)
        assert terminal.output == output_bytes, command
        assert terminal.exit_status == {"exitCode": 0}
    await client.wire.stop()
    second_client = await connect(agent, model_server)
    view = await second_client.resume(session, workspace_repo, replay=True)
    replayed = [terminal.output for terminal in view.terminals.values()]
    assert replayed == list(OUTPUTS.values())
    assert second_client.wire.updates(session, "terminal_output_chunk") == []  # a snapshot instead


@pytest.mark.covers("P5")
async def test_the_exit_status_or_signal_of_a_command_is_reported(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    for command, status in (
        ("exit 3", {"exitCode": 3}),
        ("kill -9 $$", {"signal": "SIGKILL"}),
        ("kill -TERM $$", {"signal": "SIGTERM"}),
        ("no_such_program_at_all", {"exitCode": 127}),
    ):
        terminal = await ran(client, session, model_server, command)
        assert terminal.exit_status == status, command
        assert terminal.capabilities is None
        *_, call = client.view(session).calls.values()
        assert call["status"] == "failed"


@pytest.mark.covers("P5")
async def test_a_terminal_is_announced_with_its_command_and_folder_before_it_is_referred_to(
    opened_v2: OpenV2, model_server: ModelServer, workspace_repo: Path
) -> None:
    client, session = await opened_v2()
    terminal = await ran(client, session, model_server, "echo hello")
    assert terminal.command == "echo hello"
    assert terminal.cwd == str(workspace_repo)
    first, *_ = client.wire.updates(session, "terminal_update")
    assert first["capabilities"] == {"cancel": {}}
    ((name, call),) = client.view(session).calls.items()
    assert call["content"][0] == {"type": "terminal", "terminalId": first["terminalId"]}
    updates = [update["sessionUpdate"] for update in client.wire.updates(session)]
    running = next(
        index
        for index, update in enumerate(client.wire.updates(session))
        if update.get("toolCallId") == name and update.get("status") == "in_progress"
    )
    assert updates.index("terminal_update") < running


@pytest.mark.covers("P5", "T9")
async def test_a_flood_comes_in_pieces_of_bounded_size_each_decoded_by_itself(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2()
    terminal = await ran(client, session, model_server, "yes 0123456789 | head -n 20000")
    assert terminal.output == b"0123456789\r\n" * 20000
    chunks = client.wire.updates(session, "terminal_output_chunk")
    assert max(len(base64.b64decode(chunk["data"], validate=True)) for chunk in chunks) <= 1 << 18


@pytest.mark.covers("P5")
async def test_a_key_that_a_command_prints_is_not_shown(
    opened_v2: OpenV2, model_server: ModelServer
) -> None:
    client, session = await opened_v2(environ={"OPENAI_API_KEY": "sk-test-0123456789abcdef"})
    printing = "printf 'key: sk-test-01234'; printf '56789abcdef\\377\\n'"
    terminal = await ran(client, session, model_server, printing)
    assert b"0123456789abcdef" not in terminal.output
    assert terminal.output.startswith(b"key: [secret]")
