"""Agents that are other programs: what they are given, may do, show, and how they end."""

from __future__ import annotations

import asyncio
import json
import shlex
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from acp_agent.agent.resources import PermissionRequest
from acp_agent.errors import StoreError
from acp_agent.events import (
    AgentText,
    ChildWorked,
    ModelAnswered,
    PlanChanged,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    UsageReported,
)
from acp_agent.permissions.access import Ask
from tests.session.agent_and_skill import USE, write_skill
from tests.support.model_server import Call, ModelServer, answer
from tests.support.open_session import SECRET, Decide, Desk, EventT, open_desk, presses
from tests.support.orphans import child_processes
from tests.support.scripted_agent import scripted_agent

TASK = Call("task", {"agent": "other", "title": "Fix it", "task": "Fix the greeting."})


def configured(command: str | Sequence[str], more: str = "") -> str:
    """The configuration of an agent that is another program."""
    program, *arguments = shlex.split(command) if isinstance(command, str) else command
    return f'[agents.other]\ncommand = "{program}"\nargs = {json.dumps(arguments)}\n{more}\n'


def did(desk: Desk, kind: type[EventT]) -> list[EventT]:
    """What child sessions did, of one type."""
    return [one.did for one in desk.editor.of(ChildWorked) if isinstance(one.did, kind)]


async def given(tmp_path: Path, server: ModelServer, script: str, more: str = "") -> Desk:
    """A session whose model gives its task to an agent that follows a script."""
    command = scripted_agent(tmp_path, script)
    desk = await Desk.open(tmp_path, server, config=configured(command, more))
    server.add(answer(TASK), answer("Done."))
    return desk


def presses_first(first: str, *, then: str) -> Decide:
    """A user who presses one button at the first question and another one from then on."""
    kinds = [first]

    async def decide(asking: PermissionRequest, ask: Ask) -> str | None:
        return kinds.pop() if kinds else then

    return decide


def leaves_running(folder: Path) -> list[str]:
    """The command lines of processes that a scripted agent of a folder left."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            line = (process / "cmdline").read_bytes().decode("utf-8", "replace")
            if str(folder / "scripted_agent.py") in line:
                found.append(line)
    return found


async def test_another_agent_does_a_task_and_its_last_message_is_the_result(
    tmp_path: Path, model_server: ModelServer
) -> None:
    before = child_processes()
    desk = await given(
        tmp_path,
        model_server,
        """
        def turn(say):
            assert say.prompt[0]["text"] == "Fix the greeting."
            say.speak("Let me ")
            say.speak("see.")
            say.update({"sessionUpdate": "plan", "entries": [
                {"content": "Look", "priority": "high", "status": "pending"}]})
            say.update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Look at it",
                        "kind": "read", "status": "in_progress"})
            say.update({"sessionUpdate": "tool_call_update", "toolCallId": "1",
                        "status": "completed", "content": [
                        {"type": "content", "content": say.text("Hello")}]})
            say.speak("It is fixed.")
            return "end_turn"
        """,
    )
    assert await desk.say("Go") == "end_turn"
    assert desk.results() == ["It is fixed."]
    assert [one.text for one in did(desk, AgentText)][-1] == "It is fixed."
    (called,) = did(desk, ToolCalled)
    assert (called.title, called.kind) == ("Look at it", "read")
    assert did(desk, PlanChanged)
    assert [one.stop_reason for one in did(desk, TurnEnded)] == ["end_turn"]
    assert desk.editor.of(SubagentChanged)[-1].state == "idle"
    assert "other: " in str(model_server.requests[0].json["tools"])
    await desk.aclose()
    assert set(child_processes()) <= set(before)


async def test_usage_of_another_agent_counts_in_the_budgets(
    tmp_path: Path, model_server: ModelServer
) -> None:
    desk = await given(
        tmp_path,
        model_server,
        """
        def turn(say):
            for amount in (0.5, 0.75):
                say.update({"sessionUpdate": "usage_update", "used": 150, "size": 1000,
                            "cost": {"amount": amount, "currency": "USD"}})
            say.speak("Done.")
            return {"stopReason": "end_turn", "usage": {
                "totalTokens": 150, "inputTokens": 100, "outputTokens": 30, "cachedReadTokens": 20}}
        """,
        "[budget]\nsession_cost = 0.6\n",
    )
    before = desk.session.core.state.spent.cost
    assert await desk.say("Go") == "max_tokens", "nothing is left for the answer"
    (took,) = [one for one in did(desk, ModelAnswered) if one.usage]
    assert (took.usage.input, took.usage.output, took.usage.cache_read) == (120, 30, 20)
    assert took.cost == 0.75
    assert desk.session.core.state.spent.cost - before >= 0.75
    rows = await desk.services.store.usage_since(0)
    assert [row.cost for row in rows if row.model == "other"] == [0.75]
    assert (desk.editor.of(UsageReported)[-1].cost or 0.0) >= 0.75
    await desk.aclose()


SERVERS = """
[mcp_servers.plain]
command = "cat"
env = { KEY = "value" }
[mcp_servers.web]
url = "http://127.0.0.1:9/mcp"
[mcp_servers.limited]
command = "cat"
denied_tools = ["delete"]
"""


@pytest.mark.parametrize(
    ("named", "http", "passed"),
    [
        ([], True, []),
        (["plain", "web"], True, ["plain", "web"]),
        (["*"], True, ["plain", "web"]),
        (["*"], False, ["plain"]),
    ],
)
async def test_another_agent_gets_the_servers_that_the_user_names_and_can_be_passed_on(
    tmp_path: Path, model_server: ModelServer, named: list[str], http: bool, passed: list[str]
) -> None:
    desk = await given(
        tmp_path,
        model_server,
        f"""
        INITIALIZE = {{"agentCapabilities": {{"mcpCapabilities": {{"http": {http}}}}}}}
        def new(say):
            say.servers = say.params["mcpServers"]
        def turn(say):
            say.speak(json.dumps(say.servers))
            return "end_turn"
        """,
        f"mcp_servers = {json.dumps(named)}\n{SERVERS}",
    )
    await desk.say("Go")
    (told,) = desk.results()
    servers = {one["name"]: one for one in json.loads(told)}
    assert list(servers) == passed
    if passed:
        assert servers["plain"]["env"] == [{"name": "KEY", "value": "value"}]
    await desk.aclose()


async def test_a_server_with_limits_is_passed_on_to_no_other_agent(
    tmp_path: Path, model_server: ModelServer
) -> None:
    more = f'mcp_servers = ["limited"]\n{SERVERS}'
    desk = await given(tmp_path, model_server, "", more)
    await desk.say("Go")
    assert "cannot get the MCP server 'limited'" in desk.results()[0]
    await desk.aclose()


WRITES = """
import os
def turn(say):
    path = os.path.join(os.getcwd(), "greeting.txt")
    call = {"toolCallId": "1", "title": "Edit greeting.txt", "kind": "edit",
            "content": [{"type": "diff", "path": path, "oldText": "Hello", "newText": "Goodbye"}]}
    say.update({"sessionUpdate": "tool_call", **call})
    if SHOWS:
        chosen = say.ask("session/request_permission", {"toolCall": call, "options": [
            {"optionId": "no", "name": "No way", "kind": "reject_once"},
            {"optionId": "yes", "name": "Go ahead", "kind": "allow_once"}]})
        say.speak(json.dumps(chosen["outcome"]) + "\\n")
        if chosen["outcome"].get("optionId") != "yes":
            return "end_turn"
    text = say.ask("fs/read_text_file", {"path": path})["content"]
    written = say.ask("fs/write_text_file", {"path": path, "content": text.replace(*CHANGE)})
    say.speak("written" if written is not None else "not written")
    return "end_turn"
"""


@pytest.mark.parametrize(
    ("shows", "change", "titles"),
    [
        (False, ("Hello", "Goodbye"), ["other: Write greeting.txt"]),
        (True, ("Hello", "Goodbye"), ["other: Edit greeting.txt"]),
        (
            True,
            ("Hello", "Something else"),
            ["other: Edit greeting.txt", "other: Write greeting.txt"],
        ),
    ],
    ids=["not shown before", "as shown before", "other than shown before"],
)
async def test_a_write_of_another_agent_is_asked_about_once_and_can_be_undone(
    tmp_path: Path,
    model_server: ModelServer,
    shows: bool,
    change: tuple[str, str],
    titles: list[str],
) -> None:
    script = WRITES.replace("SHOWS", str(shows)).replace("CHANGE", str(change))
    desk = await given(tmp_path, model_server, script)
    file = desk.folder / "greeting.txt"
    file.write_text("Hello, world\n")
    start = "other: Fix it"
    assert await desk.say("Go") == "end_turn"
    assert [one.title for one in desk.editor.asked] == [start, *titles]
    assert file.read_text() == f"{change[1]}, world\n"
    assert "written" in desk.results()[0]
    await desk.say("/rewind 1 both")
    assert file.read_text() == "Hello, world\n"
    await desk.aclose()


async def test_the_users_refusal_reaches_another_agent_as_its_own_option(
    tmp_path: Path, model_server: ModelServer
) -> None:
    script = WRITES.replace("SHOWS", "True").replace("CHANGE", "('a', 'b')")
    desk = await given(tmp_path, model_server, script)
    labels: list[str] = []

    async def decide(asking: PermissionRequest, ask: Ask) -> str | None:
        labels.extend(one.label for one in ask.choices)
        return "allow_once" if len(desk.editor.asked) == 1 else "reject_once"

    desk.editor.decide = decide
    await desk.say("Go")
    assert labels[-2:] == ["Go ahead", "No way"]
    assert '"optionId": "no"' in desk.results()[0]
    await desk.aclose()


@pytest.mark.parametrize(
    ("mode", "asked", "result"),
    [("full", 0, "written"), ("plan", 0, "plan mode"), ("accept-edits", 2, "written")],
)
async def test_the_mode_decides_about_another_agent_as_about_a_tool_that_nobody_knows(
    tmp_path: Path, model_server: ModelServer, mode: str, asked: int, result: str
) -> None:
    script = WRITES.replace("SHOWS", "True").replace("CHANGE", "('Hello', 'Goodbye')")
    desk = await given(tmp_path, model_server, script)
    (desk.folder / "greeting.txt").write_text("Hello\n")
    await desk.session.set_option("mode", mode)
    await desk.say("Go")
    assert len(desk.editor.asked) == asked
    assert result in desk.results()[0]
    await desk.aclose()


TRUSTS = """
def turn(say):
    call = {"toolCallId": "1", "title": "Use the files of this folder?", "kind": "other"}
    say.update({"sessionUpdate": "tool_call", **call})
    chosen = say.ask("session/request_permission", {"toolCall": call, "options": [
        {"optionId": "trust_for_now", "name": "For now", "kind": "allow_once"},
        {"optionId": "trust_never", "name": "No", "kind": "reject_once"}]})
    say.speak(json.dumps(chosen["outcome"]))
    return "end_turn"
"""


async def test_whether_another_agent_may_trust_a_folder_is_answered_by_the_user_alone(
    tmp_path: Path, model_server: ModelServer
) -> None:
    desk = await given(tmp_path, model_server, TRUSTS)
    offered: list[str] = []

    async def decide(asking: PermissionRequest, ask: Ask) -> str | None:
        offered.extend(one.id for one in ask.choices)
        return "reject_once"

    desk.editor.decide = decide
    await desk.session.set_option("mode", "full")
    await desk.say("Go")
    # By this id `--allow all` and the agent as an MCP server know a question that is not theirs.
    assert offered == ["trust_for_now", "reject_once_1"]
    assert '"optionId": "trust_never"' in desk.results()[0]
    await desk.aclose()


async def test_another_agent_gets_no_file_outside_and_none_that_a_rule_refuses(
    tmp_path: Path, model_server: ModelServer
) -> None:
    (tmp_path / "outside.txt").write_text("private")
    script = """
    import os
    def turn(say):
        inside = os.getcwd()
        for path in [inside + "/../outside.txt", inside + "/hidden.txt", inside + "/none.txt"]:
            say.speak(str(say.ask("fs/read_text_file", {"path": path})))
        for path in [inside + "/../outside.txt", inside + "/.git/hooks/pre-commit"]:
            say.speak(str(say.ask("fs/write_text_file", {"path": path, "content": "x"})))
        return "end_turn"
    """
    more = '[permissions]\ndeny = ["Read(hidden.txt)"]\n'
    desk = await given(tmp_path, model_server, script, more)
    (desk.folder / "hidden.txt").write_text("hidden")
    desk.editor.decide = presses_first("allow_once", then="reject_once")
    await desk.say("Go")
    assert desk.results() == ["None" * 5]
    assert (tmp_path / "outside.txt").read_text() == "private"
    await desk.aclose()


FAILURES = {
    "needs a login": (
        "def new(say): return {'code': -32000, 'message': 'Authentication required'}",
        "other needs a login, which acp-agent cannot do for it (Authentication required)",
    ),
    "another version": ("INITIALIZE = {'protocolVersion': 2}", "speaks version 2"),
    "crashes": (
        "def turn(say):\n    sys.stderr.write('no more memory')\n    sys.exit(3)",
        "other ended with exit status 3 before it answered session/prompt: no more memory",
    ),
    "is killed": ("def turn(say): os.kill(os.getpid(), 9)", "other was ended by SIGKILL"),
    "garbage": (
        "def start(say):\n    while True: say.raw(b'usage: other [-h]\\n')",
        "writes output that is no message of the Agent Client Protocol: usage: other [-h]",
    ),
    "some garbage, then a crash": (
        "def start(say):\n    say.raw(b'usage: other [-h]\\n')\n    sys.exit(2)",
        "ended with exit status 2 before it answered initialize: usage: other [-h]",
    ),
    "a line without end": (
        "def turn(say):\n    while True: say.raw(b'x' * 1_000_000)",
        "wrote a line of more than 16,000,000 bytes",
    ),
    "an answer of its own": (
        "def turn(say): return {'not': 'a reason'}",
        "other answered session/prompt with an error: the answer to session/prompt is malformed",
    ),
    "hangs": ("def turn(say): time.sleep(60)", "other was not done within 0.5 s, and was ended"),
    "does not end": (
        "def turn(say):\n    if not os.fork(): time.sleep(60)\n    sys.exit(1)",
        "other ended with exit status 1",
    ),
}


@pytest.mark.parametrize(("script", "why"), FAILURES.values(), ids=FAILURES)
async def test_an_agent_that_fails_ends_its_task_with_the_reason_and_nothing_else(
    tmp_path: Path, model_server: ModelServer, script: str, why: str
) -> None:
    timeout = "timeout = 0.5" if "60" in script and "fork" not in script else ""
    desk = await given(tmp_path, model_server, script, timeout)
    assert await desk.say("Go") == "end_turn"
    (result,) = desk.results()
    assert why in result
    assert desk.editor.of(SubagentChanged)[-1].state == "idle"
    assert did(desk, TurnEnded)[-1].error
    assert not leaves_running(tmp_path)
    await desk.aclose()


async def test_a_program_that_is_missing_or_in_the_project_is_not_started(
    tmp_path: Path, model_server: ModelServer
) -> None:
    project = tmp_path / "project"
    (project / "bin").mkdir(parents=True)
    (project / "bin" / "other").write_text("#!/bin/sh\ntouch started\n")
    (project / "bin" / "other").chmod(0o755)
    for command in ("other", "./bin/other", "bin/other", "/nowhere/other"):
        environ = {"PATH": f"{project / 'bin'}:/usr/bin:/bin"}
        config = configured([command])
        async with open_desk(tmp_path, model_server, config=config, environ=environ) as desk:
            model_server.add(answer(TASK), answer("Done."))
            assert await desk.say("Go") == "end_turn"
            assert "other cannot be started" in desk.results()[0]
    assert not (project / "started").exists()


async def test_stopping_the_turn_cancels_another_agent_and_ends_its_processes(
    tmp_path: Path, model_server: ModelServer
) -> None:
    desk = await given(
        tmp_path,
        model_server,
        f"""
        def turn(say):
            say.update({{"sessionUpdate": "tool_call", "toolCallId": "1", "title": "Wait"}})
            if not os.fork():
                time.sleep(60)
            say.wait_cancelled()
            open({str(tmp_path / "cancelled")!r}, "w").close()
            return "cancelled"
        """,
    )
    turn = await desk.begin("Go")
    async with asyncio.timeout(60):
        while not did(desk, ToolCalled):
            await desk.editor.until(ChildWorked, len(desk.editor.of(ChildWorked)) + 1)
    assert await desk.cancel(turn) == "cancelled"
    assert (tmp_path / "cancelled").exists()
    (ended,) = did(desk, ToolEnded)
    assert ended.cancelled
    assert not leaves_running(tmp_path)
    await desk.aclose()


async def test_another_agent_gets_a_message_of_the_user_after_its_turn(
    tmp_path: Path, model_server: ModelServer
) -> None:
    desk = await given(
        tmp_path,
        model_server,
        f"""
        def turn(say):
            if say.prompts == 1:
                say.speak("Working.")
                wait_for({str(tmp_path / "go")!r})
            else:
                say.speak("Heard: " + say.prompt[0]["text"])
            return "end_turn"
        """,
    )
    turn = await desk.begin("Go")
    async with asyncio.timeout(60):
        while not did(desk, AgentText):
            await desk.editor.until(ChildWorked, len(desk.editor.of(ChildWorked)) + 1)
    await desk.begin("/agents message 1 Mind the tests")
    (tmp_path / "go").touch()
    await turn.result()
    assert desk.results() == ["Heard: Mind the tests"]
    await desk.aclose()


async def test_no_secret_in_another_agents_output_is_saved_even_in_pieces(
    tmp_path: Path, model_server: ModelServer
) -> None:
    desk = await given(
        tmp_path,
        model_server,
        f"""
        def turn(say):
            for piece in ("Key: {SECRET[:9]}", "{SECRET[9:]}", " end"):
                say.speak(piece)
                say.ask("fs/read_text_file", {{"path": "/none"}})
            call = {{"toolCallId": "1", "title": "Use {SECRET}", "rawInput": {{"k": "{SECRET}"}}}}
            say.update({{"sessionUpdate": "tool_call", **call}})
            say.speak("Done with it.")
            return "end_turn"
        """,
        f'env = {{ OTHER = "{SECRET}" }}',
    )
    await desk.say("Go")
    assert desk.results() == ["Done with it."]
    assert SECRET not in str(await desk.journal())
    assert "Key: [secret] end" in "".join(one.text for one in did(desk, AgentText))
    await desk.aclose()


async def test_credentials_of_the_environment_are_passed_on_only_by_name(
    tmp_path: Path, model_server: ModelServer
) -> None:
    script = """
    def turn(say):
        names = ["HOME", "OPENAI_API_KEY", "GITHUB_TOKEN", "OTHER_TOKEN", "LOG"]
        say.speak(" ".join(name for name in names if name in os.environ))
        return "end_turn"
    """
    more = 'env_vars = ["OTHER_TOKEN"]\nenv = { LOG = "1" }'
    environ = {"GITHUB_TOKEN": "ghx", "OTHER_TOKEN": "otx"}
    command = scripted_agent(tmp_path, script)
    config = configured(command, more)
    async with open_desk(tmp_path, model_server, config=config, environ=environ) as desk:
        model_server.add(answer(TASK), answer("Done."))
        await desk.say("Go")
        assert desk.results() == ["HOME OTHER_TOKEN LOG"]


MODES = """
SESSION = {"modes": {"currentModeId": "auto", "availableModes": [
    {"id": "auto", "name": "Auto"}, {"id": "careful", "name": "Careful"}]}}
def turn(say):
    say.speak("Done.")
    return "end_turn"
"""


@pytest.mark.parametrize(
    ("mode", "result"),
    [("careful", "Done."), ("bold", "its modes are: auto, careful")],
)
async def test_another_agent_works_in_its_own_mode_that_the_user_chose(
    tmp_path: Path, model_server: ModelServer, mode: str, result: str
) -> None:
    desk = await given(tmp_path, model_server, MODES, f'mode = "{mode}"')
    await desk.say("Go")
    assert result in desk.results()[0]
    await desk.aclose()


async def test_calls_with_one_id_are_distinguished_and_a_written_file_is_not_asked_about(
    tmp_path: Path, model_server: ModelServer
) -> None:
    script = """
    def turn(say):
        for title in ("First", "Second"):
            say.update({"sessionUpdate": "tool_call", "toolCallId": "1", "title": title})
            say.update({"sessionUpdate": "tool_call_update", "toolCallId": "1",
                        "status": "completed"})
        path = os.path.join(os.getcwd(), "made.txt")
        with open(path, "w") as file:
            file.write("made")
        say.speak(str(say.ask("fs/write_text_file", {"path": path, "content": "made"})))
        return "end_turn"
    """
    desk = await given(tmp_path, model_server, script)
    await desk.say("Go")
    assert [one.title for one in did(desk, ToolCalled)] == ["First", "Second"]
    assert desk.results() == ["{}"]
    assert len(desk.editor.asked) == 1  # whether it may start
    await desk.aclose()


async def test_the_user_gives_another_agent_a_task_which_reads_lines_of_a_file(
    tmp_path: Path, model_server: ModelServer
) -> None:
    script = """
    def turn(say):
        path = os.path.join(os.getcwd(), "a.txt")
        say.speak(str(say.ask("fs/read_text_file", {"path": path, "line": 2, "limit": 1})))
        return "end_turn"
    """
    config = configured(scripted_agent(tmp_path, script), 'description = "Reads."')
    async with open_desk(tmp_path, model_server, config=config) as desk:
        (desk.folder / "a.txt").write_text("one\ntwo\nthree\n")
        await desk.say("/agents")
        assert "`other`: Reads." in desk.editor.of(AgentText)[-1].text
        model_server.add(answer("It is two."))
        await desk.say("/agents start other Read the second line")
        assert "{'content': 'two\\n'}" in str(desk.editor.of(ToolEnded)[-1].result)
        assert len(desk.editor.asked) == 1


async def test_a_failed_journal_ends_another_agent_with_the_turn(
    tmp_path: Path, model_server: ModelServer
) -> None:
    desk = await given(
        tmp_path,
        model_server,
        """
        def turn(say):
            say.speak("Hello.")
            time.sleep(60)
        """,
    )
    desk.store.full = lambda events: any(
        isinstance(one, ChildWorked) and isinstance(one.did, AgentText) for one in events
    )
    with pytest.raises(StoreError):
        await desk.say("Go")
    assert not leaves_running(tmp_path)
    desk.store.full = False
    await desk.aclose()


@pytest.mark.parametrize("mode", ["ask", "plan"])
async def test_a_task_that_is_named_by_its_number_starts_no_program_without_a_question(
    tmp_path: Path, model_server: ModelServer, mode: str
) -> None:
    script = """
    def turn(say):
        open("started", "a").write("x")
        say.speak("Done.")
        return "end_turn"
    """
    desk = await given(tmp_path, model_server, script)
    await desk.say("Go")
    await desk.session.set_option("mode", mode)
    again = Call("task", {"agent": "#1", "title": "Again", "task": "Once more."})
    model_server.add(answer(again), answer("Done."))
    desk.editor.decide = presses("reject_once")
    await desk.say("Again")
    assert (desk.folder / "started").read_text() == "x"
    await desk.aclose()


async def test_a_skill_that_the_user_chooses_is_followed_by_another_program(
    tmp_path: Path, model_server: ModelServer
) -> None:
    script = """
        def turn(say):
            assert "Look at the diff first." in say.prompt[0]["text"]
            say.speak("Looked.")
            return "end_turn"
        """
    config = configured(scripted_agent(tmp_path, script))
    desk = await Desk.open(tmp_path, model_server, config=config)
    write_skill(desk.folder, "agent: other\ncontext: fork")
    model_server.add(answer("Said."))
    assert await desk.say("/skill:review it") == "end_turn"
    assert desk.results() == ["Looked."]
    model_server.add(answer(USE), answer("No."))
    await desk.say("Review it")
    assert "give the agent other a task" in desk.results()[-1]
    await desk.aclose()


async def test_a_skill_with_limits_is_followed_by_no_other_program(
    tmp_path: Path, model_server: ModelServer
) -> None:
    config = configured(scripted_agent(tmp_path, "def turn(say): return 'end_turn'"))
    desk = await Desk.open(tmp_path, model_server, config=config)
    write_skill(desk.folder, "agent: other\ncontext: fork\ntools: read")
    model_server.add(answer("No."))
    await desk.say("/skill:review it")
    assert "limits its tools" in desk.results()[-1]
    await desk.aclose()
