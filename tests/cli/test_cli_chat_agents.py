"""`acp-agent chat` with agents that do what a real one hardly does, each a program of its own."""

from __future__ import annotations

import asyncio
import json
import os
import re
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.cli.chat_person import READY, in_pipes, quit_chat
from tests.support.agent_process import environment
from tests.support.scripted_agent import scripted_agent
from tests.support.terminal_screen import CTRL_C, CTRL_J, ENTER, ESCAPE, terminal
from tests.support.warm_parent import shared_parent


@pytest.mark.parametrize(
    ("script", "message"),
    [
        (None, "cannot start no-such-agent: No such file or directory"),
        (
            "import sys; sys.stderr.write('boom: no licence\\n'); sys.exit(3)",
            "the agent exited while starting: exit status 3 boom: no licence",
        ),
        (
            "say.raw(b'Hello!\\n' * 3)\nsys.stdin.readline()\nsys.exit(0)",
            (
                "the agent exited while starting: exit status 0 "
                "its output is not a protocol message: Hello!"
            ),
        ),
        (
            "INITIALIZE = {'protocolVersion': 7}",
            "the agent speaks version 7 of the protocol, the chat version 1",
        ),
        (
            "say.raw(b'Thinking\\n'); sys.stdin.read()",
            (
                "the agent did not answer within 0.7 s "
                "its output is not a protocol message: Thinking"
            ),
        ),
        ("def new(say): sys.stdin.read()  # is Thinking", "the agent does not answer"),
    ],
)
async def test_an_agent_that_cannot_be_used_is_reported_with_the_reason(
    home: Path, tmp_path: Path, script: str | None, message: str
) -> None:
    agent = "no-such-agent" if script is None else scripted_agent(tmp_path, script)
    timeout = "0.7" if script and "Thinking" in script else "30"
    status, out, err = await in_pipes(home, agent, "", "--timeout", timeout)
    assert status == 1
    assert out == ""
    assert message in re.sub(r"\s*(acp-agent:)?\s+", " ", err).strip()
    assert "Traceback" not in err


@pytest.mark.parametrize("seconds", ["nan", "-1", "0", "inf", "soon"])
async def test_a_timeout_that_is_no_time_is_wrong_use(home: Path, seconds: str) -> None:
    status, out, err = await in_pipes(home, "no-such-agent", "", f"--timeout={seconds}")
    assert (status, out) == (2, "")
    assert "--timeout" in err


async def test_an_agent_without_a_name_is_wrong_use(home: Path) -> None:
    for agent in ("", "''", "'unclosed"):
        status, _, err = await in_pipes(home, agent)
        assert (status, err) == (2, "acp-agent: --command needs the command line of an agent\n")


async def test_without_a_terminal_each_line_is_a_prompt_and_permissions_are_refused(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        INITIALIZE = {"_meta": {"steering": {"supported": True}}}

        def turn(say):
            words = say.prompt[0]["text"]
            say.speak(f"heard {words}\\n")
            if words == "two":
                say.update({"sessionUpdate": "tool_call", "toolCallId": "c", "title": "Do harm"})
                asked = {"toolCallId": "c"}, [
                    {"optionId": "ok", "name": "Allow", "kind": "allow_once"},
                    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
                ]
                said = say.ask("session/request_permission",
                               {"toolCall": asked[0], "options": asked[1]})
                say.speak(f"answer {said['outcome']['optionId']}")
            return "end_turn"
        """,
    )
    status, out, err = await in_pipes(home, agent, "one\ntwo\n")
    assert (status, err) == (0, "")
    assert out.index("heard one") < out.index("heard two")
    assert "answer no" in out
    assert "\x1b" not in out


async def test_prompts_wait_in_line_where_the_agent_cannot_be_steered(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        import subprocess

        def start(say):  # what it leaves behind is ended, too, as `terminal` looks
            subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)

        def turn(say):
            lines = len(say.prompt[0]["text"].splitlines())
            links = [b["uri"].rsplit("/")[-1] for b in say.prompt[1:]]
            say.speak(f"prompt {say.prompts} of {lines} lines {links}")
            return say.wait_cancelled() if say.prompts == 1 else "end_turn"
        """,
    )
    (tmp_path / "a file.txt").write_text("x")
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("begin" + ENTER)
        await person.see("prompt 1 of 1 lines []")
        person.type(f"one{CTRL_J}two {ESCAPE}{ENTER}")
        person.paste(f"{tmp_path}/a\\ file.txt")
        person.paste("three\nfour")
        person.type(ENTER)
        await person.see("(waits for the turn to end)", "1 queued")
        person.type(CTRL_C)
        await person.see("The turn was cancelled.", "prompt 2 of 4 lines ['a%20file.txt']")
        await person.miss("1 queued")
        await quit_chat(person)


@pytest.mark.parametrize("end", ["Ctrl-C", "SIGTERM"])
async def test_a_second_ctrl_c_or_a_signal_ends_an_agent_that_listens_to_nothing(
    home: Path, tmp_path: Path, end: str
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        import signal, subprocess, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)

        def turn(say):
            subprocess.Popen(["sleep", "600"])
            say.speak("I do not listen.")
            time.sleep(600)
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("go" + ENTER)
        await person.see("I do not listen.")
        if end == "Ctrl-C":
            person.type(CTRL_C)
            await person.see("Cancelling the turn; press Ctrl-C again to quit")
            person.type(CTRL_C)
        else:
            person.process.terminate()
        assert await person.status() == (130 if end == "Ctrl-C" else 143)
        # And nothing of it is left, as `terminal` looks.


async def test_forms_pages_and_options_are_answered_by_keys(home: Path, tmp_path: Path) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        import json
        OPTION = {"type": "boolean", "id": "fast", "name": "Fast", "currentValue": False}
        SESSION = {"configOptions": [OPTION]}

        def turn(say):
            said = say.ask("elicitation/create", {"mode": "form", "message": "About you",
                "requestedSchema": {"type": "object", "required": ["age", "colour"], "properties": {
                    "age": {"type": "integer", "minimum": 18, "title": "Your age"},
                    "colour": {"type": "string", "enum": ["red", "green", "blue"]},
                    "sure": {"type": "boolean", "default": True}}}})
            say.speak(json.dumps(said) + "\\n\\n")
            said = say.ask("elicitation/create", {"mode": "url", "message": "Log in there",
                "elicitationId": "e", "url": "https://example.com/login?a=1"})
            say.line({"method": "elicitation/complete", "params": {"elicitationId": "e"}})
            say.speak("page " + said["action"])
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("go" + ENTER)
        await person.see("? About you", "? Your age", "Enter answers, Esc declines")
        person.type("12" + ENTER)
        await person.see("! at least 18")
        person.type("\x7f\x7f42" + ENTER)
        await person.see("? colour", "arrows select")
        person.type("gre" + ENTER)
        await person.see("? sure", "> Yes *")
        person.type(ENTER)
        await person.see(
            '{"action": "accept", "content": {"age": 42, "colour": "green", "sure": true}}'
        )
        await person.see("https://example.com/login?a=1", "I will open it myself")
        person.type("myself" + ENTER)
        await person.see("page accept", "Done: Log in there")
        person.type("/options fast on" + ENTER)
        await person.miss("Working")
        await quit_chat(person)


async def test_typed_input_is_saved_without_secrets_and_readable_only_by_its_owner(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(tmp_path, "")
    key = "sk-ant-api03-" + "a1B2" * 24
    await in_pipes(home, agent, f"my key is {key}\n not this one\nand this\n")
    [history_file] = home.rglob("chat_history")
    assert history_file.stat().st_mode & 0o777 == 0o600
    entries = [json.loads(line) for line in history_file.read_text().splitlines()]
    assert entries == ["my key is [secret]", "and this"]


async def test_a_dumb_terminal_gets_plain_lines_and_is_asked_by_letters(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        def turn(say):
            say.raw(b"[INFO] turn begins\\n")
            say.update({"sessionUpdate": "agent_message_chunk", "content":
                {"type": "resource_link", "name": "notes", "uri": "file:///notes.txt"}})
            said = say.ask("session/request_permission", {"toolCall":
                {"toolCallId": "c", "title": "Do it \\u202etxt.exe"}, "options":
                [{"optionId": "o", "name": "Sure", "kind": "allow_once"},
                 {"optionId": "n", "name": "No", "kind": "reject_once"}]})
            say.speak("outcome " + said["outcome"]["optionId"])
            return "end_turn"
        """,
    )
    async with terminal(
        home, tmp_path, "chat", "--command", agent, environ={"TERM": "dumb"}
    ) as person:
        await person.see(">")
        person.type("go\n")
        await person.see("[notes](file:///notes.txt)")
        await person.see("? Permission: Do it \\u202etxt.exe", "[y] Sure", "[n] No")
        person.type("x\n")
        person.type("y\n")
        await person.see("outcome o", "not a protocol message: [INFO] turn begins")
        await person.see("stop reason: end_turn >")
        await quit_chat(person)
        assert b"\x1b" not in person.raw


@pytest.mark.parametrize("tells", [True, False])
async def test_the_reason_of_a_stopped_turn_is_shown_once_by_the_agent_or_the_chat(
    home: Path, tmp_path: Path, tells: bool
) -> None:
    agent = scripted_agent(
        tmp_path,
        f"""
INITIALIZE = {{"agentCapabilities": {{"_meta": {{"acp-agent": {{"tellsStopReasons": {tells}}}}}}}}}

def turn(say):
    say.speak("Half of it, as the agent says.")
    return "max_tokens" if say.prompts == 1 else "end_turn"
""",
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        for answers in (1, 2):
            person.type("go" + ENTER)
            await person.count("as the agent says.", answers)
            await person.miss("Working")
        count = person.text.count("The answer reached the token limit.")
        assert count == (0 if tells else 1)
        await quit_chat(person)


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
async def test_a_login_in_the_terminal_has_it_for_itself(
    home: Path, tmp_path: Path, term: str
) -> None:
    agent = scripted_agent(
        tmp_path,
        f"KEY = {str(tmp_path / 'key')!r}\n"
        """
INITIALIZE = {"authMethods": [{"id": "t", "name": "Type a key", "type": "terminal",
    "args": ["--login"], "env": {"GREETING": "Your key, please:"}}]}

def start(say):
    if "--login" in sys.argv:
        import termios
        waits_for_lines = termios.tcgetattr(0)[3] & termios.ICANON
        print(os.environ["GREETING"] if waits_for_lines else "Keys are taken away", flush=True)
        open(KEY, "w").write(sys.stdin.readline())
        sys.exit(0)

def new(say):
    if not os.path.exists(KEY):
        return {"code": -32000, "message": "no key yet"}
""",
    )
    pick = ENTER if term != "dumb" else "1\n"
    async with terminal(
        home, tmp_path, "chat", "--command", agent, environ={"TERM": term}
    ) as person:
        await person.see("no key yet", "How do you want to log in?", "Type a key")
        person.type(pick)
        await person.see("Your key, please:")
        person.type(CTRL_C)  # ends the login, and not the chat
        await person.see("The login failed.")
        await (person.count("number:", 2) if term == "dumb" else person.see("arrows select"))
        person.type(pick)
        await person.count("Your key, please:", 2)
        person.type("abc" + CTRL_J)
        await person.see(READY if term != "dumb" else "abc >")
        assert (tmp_path / "key").read_text() == "abc\n"
        await quit_chat(person)


async def test_two_simultaneous_restarts_start_one_agent(home: Path, tmp_path: Path) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        import os, time

        def start(say):  # every one but the first takes its time
            if os.path.exists("begun"):
                time.sleep(0.5)
            open("begun", "w").close()
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("/restart" + ENTER + "/restart" + ENTER)
        await person.count("restarted with a new session", 2)
        agents = [line for line in person.processes().values() if "--command" not in line]
        assert len(agents) == 1
        await quit_chat(person)


async def test_an_agent_that_crashes_repeatedly_is_restarted_only_on_request(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        INITIALIZE = {"agentCapabilities": {"loadSession": True}}

        def load(say):
            say.speak("shown before")

        def turn(say):
            say.speak("I fall.")
            sys.stderr.write("out of luck\\n")
            os._exit(9)
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        for times in range(1, 5):
            person.type("go" + ENTER)
            await person.count("I fall.", times)
            if times < 4:
                await person.count("The agent was restarted; the session continues.", times)
        await person.see("out of luck", "The agent crashed too often; restart it with /restart.")
        person.type("/restart" + ENTER)
        await person.count("The agent was restarted; the session continues.", 4)
        assert "shown before" not in person.text
        await quit_chat(person)


async def test_session_commands_that_an_agent_lacks_are_not_offered(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        INITIALIZE = {"agentCapabilities": {"sessionCapabilities": {"title": {}}}}

        def turn(say):
            say.speak("heard " + say.prompt[0]["text"])
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent, rows=30) as person:
        await person.see(READY)
        person.type("/help" + ENTER)
        await person.see("/rename rename this session", "/quit end the chat")
        assert not re.search("/fork|/delete", person.text)
        person.type("/fork it" + ENTER)  # the agent may know what that is
        await person.see("heard /fork it")
        person.type(" /quit it" + ENTER)  # the space sends the chat's own commands, too
        await person.see("heard /quit it")
        await quit_chat(person)


async def test_an_unreadable_question_is_answered_and_reported(home: Path, tmp_path: Path) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        def turn(say):
            for _ in range(50):
                say.ask("session/request_permission", {"toolCall": {"title": "no id"}})
            say.ask("fs/read_text_file", {"path": "/etc/passwd"})
            say.speak("Went on.")
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        for times in (1, 2):
            person.type("go" + ENTER)
            await person.count("Went on.", times)
            await person.miss("Working")
        assert person.text.count("The agent's permission request could not be read:") == 2
        await person.count("The agent's request fs/read_text_file failed: method", 2)
        await quit_chat(person)


async def test_a_closed_output_ends_the_chat_like_any_command(home: Path, tmp_path: Path) -> None:
    agent = scripted_agent(
        tmp_path,
        f"""
        def turn(say):
            say.speak("begun\\n")
            wait_for({str(tmp_path / "go")!r})
            say.speak("ended\\n")
            return "end_turn"
        """,
    )
    command = [*shared_parent().command(), "chat", "--command", agent]
    read_end, write_end = os.pipe()
    chat = await asyncio.create_subprocess_exec(
        *command, cwd=home, env=environment(home), stdin=PIPE, stdout=write_end, stderr=PIPE
    )
    os.close(write_end)
    assert chat.stdin is not None
    chat.stdin.write(b"one\n")  # and no end of the input
    with open(read_end, "rb") as reader:
        while b"begun" not in await asyncio.to_thread(reader.readline):
            pass
    (tmp_path / "go").touch()
    async with asyncio.timeout(60):
        assert await chat.wait() == 0
    chat.stdin.close()
    assert chat.stderr is not None
    assert await chat.stderr.read() == b""


async def test_a_chat_that_cannot_be_written_says_so_and_fails(home: Path, tmp_path: Path) -> None:
    command = [*shared_parent().command(), "chat", "--command", scripted_agent(tmp_path, "")]
    with open("/dev/full", "wb") as full:
        chat = await asyncio.create_subprocess_exec(
            *command, cwd=home, env=environment(home), stdin=PIPE, stdout=full, stderr=PIPE
        )
        async with asyncio.timeout(60):
            _, err = await chat.communicate(b"one\ntwo\n")
    message = b"acp-agent: cannot write the output: No space left on device\n"
    assert (chat.returncode, err) == (1, message)


async def test_input_typed_before_the_agent_is_ready_waits_for_it(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        f"""
        wait_for({str(tmp_path / "go")!r})

        def turn(say):
            say.speak("heard " + say.prompt[0]["text"])
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see("Starting the agent")
        person.type(f"early{ENTER}")
        await person.see("> early (waits for the agent)")
        (tmp_path / "go").touch()
        await person.see("heard early")
        await quit_chat(person)
