"""MCP servers that die, hang, flood and lie: the session goes on, and the user is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acp_agent.content import escaped
from tests.extensions.mcp_program import HIDDEN
from tests.extensions.mcp_session import (
    OpenWithServers,
    call,
    echo,
    notices,
    offered,
    program,
    results,
)
from tests.server.server_session import calls_by_id
from tests.support.agent_process import AgentProcess
from tests.support.editor import Editor
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import is_alive
from tests.support.process_memory import peak_memory
from tests.support.waiting import until

# The second server stays in its connection for longer than the test takes.
HANGING = "[limits]\nmcp_ready_timeout = 2\nmcp_connect_timeout = 600\n"
QUICK = "[limits]\nmcp_connect_timeout = 1.0\nmcp_call_timeout = 0.5\n"


async def told(running: AgentProcess, session: str, words: str) -> str:
    """The first notice with these words."""
    update = await running.expect_update(
        session, "notice", lambda notice: words in f"{notice['title']} {notice.get('description')}"
    )
    return f"{update['title']} {update.get('description') or ''}".strip()


def recorded_processes(record: Path) -> list[int]:
    return [int(line.split()[1]) for line in record.read_text().splitlines() if "pid" in line]


@pytest.mark.covers("S1")
async def test_a_server_that_dies_at_start_is_reported_with_its_last_line_and_no_secret(
    with_servers: OpenWithServers, model_server: ModelServer, home: Path
) -> None:
    password = "hunter-green-1234"
    running, session = await with_servers(
        program("dies-at-start", env={"SERVER_TOKEN": password, "PLAIN": "plain-value-1234"})
    )
    notice = await told(running, session, "memo")
    assert notice == (
        "The MCP server 'memo' could not be connected. "
        "it ended with exit code 3: cannot log in with [secret]."
    )
    model_server.add(answer("Hello."))
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    await running.stop()
    logs = [file.read_text() for file in (home / "acp-agent").rglob("*.log*")]
    assert logs
    assert not any(password in log for log in logs)


@pytest.mark.covers("S1", "T8")
async def test_a_server_that_hangs_delays_no_session_and_leaves_no_process(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    server = program("hangs-at-initialize", env={"MCP_RECORD": str(record)})
    running, session = await with_servers(server, config=QUICK)
    notice = await told(running, session, "memo")
    assert "it did not answer within 1 s" in notice
    processes = recorded_processes(record)
    assert len(processes) == 2
    assert not any(map(is_alive, processes))
    model_server.add(answer("Hello."))
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"


async def test_the_first_request_waits_a_moment_for_a_server_that_hangs_and_later_ones_do_not(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path, home: Path
) -> None:
    record, connected = tmp_path / "record", tmp_path / "connected"
    hanging = program("hangs-at-initialize", name="slow", env={"MCP_RECORD": str(record)})
    model_server.add(answer(echo("fine")), answer("Done."))
    good = program("echo", env={"MCP_RECORD": str(connected)})
    running, session = await with_servers(good, hanging, config=HANGING)
    await until(lambda: connected.exists() and record.exists())
    assert (await running.prompt(session, "hi"))["stopReason"] == "end_turn"
    assert results(model_server) == ["echo: fine"]
    model_server.add(answer("Hello."))
    await running.prompt(session, "and again")
    await running.close_stdin()
    assert await running.wait() == 0
    log = (home / "acp-agent" / "logs" / "agent.log").read_text()
    assert log.count("a turn begins without MCP servers that still connect") == 1
    assert not any(map(is_alive, recorded_processes(record)))


async def test_a_server_that_dies_in_a_call_fails_the_call_and_is_started_again(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(call("die")), answer("It died."))
    running, session = await with_servers(program("dies-in-a-call"))
    assert (await running.prompt(session, "go"))["stopReason"] == "end_turn"
    assert "it ended with exit code 7" in results(model_server)[0]
    assert "is being restarted. it ended with exit code 7." in await told(running, session, "memo")
    model_server.add(answer(echo("back")), answer("Done."))
    await running.prompt(session, "go on")  # waits a moment until it is back
    assert results(model_server)[-1] == "echo: back"


async def test_a_server_that_dies_repeatedly_is_not_restarted_again(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    running, session = await with_servers(
        program("always-dies", env={"MCP_RECORD": str(record)}),
        config="[limits]\nmcp_restart_delay = 0.01\n",
    )
    await told(running, session, "ended repeatedly")
    assert sum("is being restarted" in notice for notice in notices(running, session)) == 3
    assert record.read_text().count("started") == 4
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    assert offered(model_server) == []


async def test_noise_on_stdout_and_stderr_is_passed_over(
    with_servers: OpenWithServers, model_server: ModelServer, home: Path
) -> None:
    model_server.add(answer(echo("heard")), answer("Done."))
    running, session = await with_servers(program("floods"))
    await running.prompt(session, "go")
    assert results(model_server) == ["echo: heard"]
    await running.stop()
    log = "".join(file.read_text() for file in (home / "acp-agent").rglob("*.log*"))
    assert log.count("noise") < 30_000  # of a million


async def test_a_server_that_writes_only_garbage_is_ended(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    running, session = await with_servers(program("only-garbage"))
    assert "it writes to stdout what is no message" in await told(running, session, "memo")


async def test_a_result_of_a_hundred_megabytes_fails_and_the_server_stays(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    model_server.add(answer(echo("huge")), answer(echo("small")), answer("Done."))
    running, session = await with_servers(program("huge"))
    before = peak_memory(running.process.pid)
    assert (await running.prompt(session, "go", timeout=60))["stopReason"] == "end_turn"
    huge, small = results(model_server)
    assert "the answer is longer than 16 MB" in huge
    assert small == "small again"
    assert peak_memory(running.process.pid) - before < 120_000_000


async def test_more_tools_than_allowed_are_searched_and_fill_no_request(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    search = Call("search_mcp_tools", {"query": "say it again"})
    called = Call("call_mcp_tool", {"name": "mcp__echo__echo", "arguments": {"text": "found"}})
    model_server.add(answer(search), answer(called), answer("So many."))
    running, session = await with_servers(program("echo", name="echo"), program("many-tools"))
    await running.prompt(session, "hi")
    assert offered(model_server) == ["search_mcp_tools", "call_mcp_tool"]
    first, *others = [request.json["tools"] for request in model_server.requests]
    assert all(tools == first for tools in others)  # what a request begins with stays the same
    assert len(json.dumps(first[-2:])) < 20_000
    found, said = results(model_server)
    assert found.startswith("# mcp__echo__echo")
    assert '"required":["text"]' in found
    assert said == "echo: found"
    (asked,) = running.editor.asked
    assert asked["toolCall"]["title"] == "echo: Say it again (echo)"
    notice = await told(running, session, "left out")
    assert "tools of the MCP server 'memo' are left out" in notice


async def test_tools_with_invalid_schemas_are_skipped_and_the_others_work(
    with_servers: OpenWithServers, model_server: ModelServer
) -> None:
    deep = call("slow_pattern", a="a" * 40 + "!")
    model_server.add(answer(echo("fine", tool="good"), deep), answer("Done."))
    running, session = await with_servers(program("lies-about-schemas"))
    await running.prompt(session, "go")
    assert {name.removeprefix("mcp__memo__") for name in offered(model_server)} == {
        "good",
        "elsewhere",
        "recursive",
        "slow_pattern",
        "odd_parameter",
    }
    assert results(model_server)[0] == "echo: fine"
    notice = await told(running, session, "left out")
    assert notice.startswith("5 tools of the MCP server 'memo' are left out.")


@pytest.mark.covers("P7")
async def test_cancelling_the_turn_cancels_the_call_at_the_server(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    model_server.add(answer(call("slow")))
    running, session = await with_servers(program("echo", env={"MCP_RECORD": str(record)}))
    asked = running.post_prompt(session, "go")
    await until(lambda: record.is_file() and "slow" in record.read_text())
    running.cancel(session)
    assert (await running.result(asked))["stopReason"] == "cancelled"
    (updates,) = calls_by_id(running.updates(session)).values()
    assert updates[-1]["status"] == "failed"
    await until(lambda: "cancelled" in record.read_text())


async def test_a_call_that_takes_too_long_ends_and_is_cancelled_at_the_server(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    model_server.add(answer(call("slow")), answer("Too slow."))
    server = program("echo", env={"MCP_RECORD": str(record)})
    running, session = await with_servers(server, config="[limits]\nmcp_call_timeout = 0.5\n")
    assert (await running.prompt(session, "go"))["stopReason"] == "end_turn"
    assert "did not answer within 0.5 s; the call was cancelled" in results(model_server)[0]
    await until(lambda: "cancelled" in record.read_text())


def hidden_in(value: object) -> list[str]:
    """The texts of a JSON value in which something is hidden."""
    match value:
        case str():
            return [value] if set(value) & set(HIDDEN.replace("[31m", "")) else []
        case list():
            return [text for item in value for text in hidden_in(item)]
        case dict():
            return hidden_in([*value, *value.values()])
        case _:
            return []


async def test_hidden_characters_of_a_server_are_shown_to_the_user_and_the_model(
    with_servers: OpenWithServers, model_server: ModelServer, tmp_path: Path
) -> None:
    record = tmp_path / "record"
    running, session = await with_servers(
        program("hides-things", env={"MCP_RECORD": str(record)}),
        editor=Editor(permission="allow_once"),
    )
    model_server.add(answer("Hello."))
    await running.prompt(session, "hi")
    (tool,) = (name for name in offered(model_server) if "echo" in name)
    commands = running.updates(session, "available_commands_update")[-1]["availableCommands"]
    (command,) = (one["name"] for one in commands if one["name"].startswith("memo:"))
    uri = "memo://one" + escaped(HIDDEN)
    model_server.add(
        answer(Call(tool, {"text": "hi"}), Call(tool, {"text": "fail"})),
        answer(Call("read_mcp_resource", {"server": "memo", "uri": uri})),
        answer(Call("list_mcp_resources", {})),
        answer("Done."),
        answer("Asked."),
    )
    await running.prompt(session, "go")
    await running.prompt(session, f"/{command} this")
    # The server is asked by the names that it gave.
    asked = [json.loads(line) for line in record.read_text().splitlines() if line[0] == '"']
    assert asked == [f"echo{HIDDEN}"] * 2 + [f"memo://one{HIDDEN}", f"ask{HIDDEN}"]
    shown = [json.loads(line) for line in running.lines]
    assert "\\u202e" in json.dumps([update for update in shown if "permission" in str(update)])
    assert hidden_in(shown) == []
    sent = [request.json for request in model_server.requests]
    assert hidden_in(sent) == []
    assert "result \\\\x1b[31m" in json.dumps(sent)
