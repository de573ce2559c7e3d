"""The user's own shell in `acp-agent chat`: real commands in a real terminal."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import re
import signal
import sys
import termios
from pathlib import Path

import pytest

from acp_agent.cli.chat.standard_streams import keep_typeahead
from tests.cli.chat_person import READY, in_pipes, quit_chat
from tests.support.scripted_agent import scripted_agent
from tests.support.terminal_screen import CTRL_C, CTRL_D, ENTER, TAB, Person, terminal

CTRL_X = "\x18"
ECHO = """
def turn(say):
    for block in say.prompt:
        say.speak("[heard " + block["text"] + "]\\n\\n")
    return "end_turn"
"""


async def its_process(person: Person, words: str) -> int:
    """The id of a process of the terminal's, once it is there; its command line is a pattern."""
    async with asyncio.timeout(60):
        while True:
            for pid, line in person.processes().items():
                if re.fullmatch(words, line):
                    return pid
            await asyncio.sleep(0.02)


async def test_a_line_behind_an_exclamation_mark_runs_in_the_users_shell(
    home: Path, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    async with terminal(
        home, tmp_path / "work", "chat", "--command", scripted_agent(tmp_path, ECHO)
    ) as person:
        await person.see(READY)
        person.type("!!test -t 0 && pwd && stty size; printf 'no end'; exit 3" + ENTER)
        await person.see(f"{tmp_path}/work 24 80 no end exit status 3")
        person.type("hello" + ENTER)
        await person.see("[heard hello]")  # and nothing of what was printed
        await person.miss("Working")
        assert "no end]" not in person.text
        person.type("!!kill -9 $$" + ENTER)
        await person.see("signal SIGKILL")
        person.type("\x1b[A")
        await person.see_row("> !!kill -9 $$")
        person.type(CTRL_C)
        await quit_chat(person)


async def test_a_command_is_sent_with_the_next_prompt_without_keys_unless_the_user_says_no(
    home: Path, tmp_path: Path
) -> None:
    key = "sk-ant-api03-" + "a1B2" * 24
    async with terminal(
        home, tmp_path, "chat", "--command", scripted_agent(tmp_path, ECHO), rows=40
    ) as person:
        await person.see(READY)
        person.type("!echo first" + ENTER)
        await person.see("exit status 0 Sent with your next prompt: output of echo first")
        person.type("/unshare" + ENTER)
        await person.see("Your commands will not be sent to the agent.")
        await person.miss("Sent with")
        person.type("!false" + ENTER)
        await person.see("exit status 1 Sent with your next prompt: output of false")
        person.type("/slash" + ENTER)
        await person.see("[heard /slash]")
        await person.miss("Working")
        assert "[heard I ran" not in person.text  # commands are not for the model
        person.type("what now" + ENTER)
        await person.see("(with the output of your commands)", "[heard what now]")
        await person.see("[heard I ran a command myself,", "It ended with status 1", "$ false")
        await person.miss("Sent with")
        person.type(f"!printf '\\033[31mred\\033[0m 10%%\\r20%% {key}'" + ENTER)
        await person.see("output of printf")
        person.type("!date +%%" + ENTER)
        await person.see("output of date +%%, printf")
        person.type("and this" + ENTER)
        await person.see("[heard and this]", "20% [secret]", "$ date +%% %")
        assert "first" not in person.text.split("will not be sent")[1]
        await quit_chat(person)


async def test_ctrl_x_turns_to_the_shell_and_back(home: Path, tmp_path: Path) -> None:
    (tmp_path / "a file.txt").write_text("its text\n")
    async with terminal(
        home, tmp_path, "chat", "--command", scripted_agent(tmp_path, ECHO)
    ) as person:
        await person.see(READY)
        person.type(CTRL_X)
        await person.see("Your shell; Ctrl-X returns")
        person.type("cat a" + TAB)
        await person.see_row("$ cat 'a file.txt'")
        person.type(ENTER + ENTER)
        await person.see("its text exit status 0")
        person.type("/bin/echo by path" + ENTER)
        await person.see("$ /bin/echo by path by path exit status 0")
        person.type("/unshare" + ENTER)  # the chat's own commands go on working
        await person.see("will not be sent to the agent")
        for end in (CTRL_X, CTRL_D, CTRL_C, "exit" + ENTER):
            await person.see("Your shell;")
            person.type(end)
            await person.see_row(">")
            person.type("!" + ENTER)
        person.type(CTRL_X + "go" + ENTER)
        await person.see("[heard go]")
        await quit_chat(person)


async def test_ctrl_c_is_for_the_command_and_three_end_one_that_ignores_it(
    home: Path, tmp_path: Path
) -> None:
    async with terminal(
        home, tmp_path, "chat", "--command", scripted_agent(tmp_path, ECHO)
    ) as person:
        await person.see(READY)
        person.type("!sleep 611 & sleep 612; echo never" + ENTER)
        await its_process(person, "sleep 612")
        person.type(CTRL_C)
        await person.see("signal SIGINT")
        assert "sleep 611" not in person.processes().values()
        person.type("!trap '' INT; sleep 613 & sleep 614" + ENTER)
        await its_process(person, "sleep 614")
        person.type(CTRL_C * 3)
        await person.see("signal SIGKILL")
        person.type("!trap '' HUP; sleep 620 & echo left" + ENTER)
        await person.see("left exit status 0")
        assert "sleep 620" not in person.processes().values()
        person.type('!read name; echo "<$name>"' + ENTER)
        await person.see_row('$ read name; echo "<$name>"')
        person.type("bob" + ENTER)
        await person.see("<bob>")
        await person.count("exit status 0", 2)
        await quit_chat(person)


async def test_a_command_that_runs_ends_with_the_chat(home: Path, tmp_path: Path) -> None:
    for number in (signal.SIGTERM, signal.SIGHUP):
        async with terminal(
            home, tmp_path, "chat", "--command", scripted_agent(tmp_path, ECHO)
        ) as person:
            await person.see(READY)
            person.type("!trap '' TERM HUP; sleep 615 & sleep 616; sleep 617" + ENTER)
            await its_process(person, "sleep 616")
            person.process.send_signal(number)
            assert await person.status() == 128 + number
            # And nothing of it is left, as `terminal` looks.


async def test_a_turn_continues_while_a_command_has_the_terminal(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(
        tmp_path,
        """
        def turn(say):
            wait_for("go")
            say.speak("Meanwhile.")
            return "end_turn"
        """,
    )
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("begin" + ENTER)
        await person.see("Working")
        person.type("!touch go; sleep 618" + ENTER)
        sleeps = await its_process(person, "sleep 618")
        assert "Meanwhile." not in person.text
        os.kill(sleeps, signal.SIGINT)
        await person.see("Meanwhile.")
        await person.miss("Working")
        await quit_chat(person)


async def test_lines_that_are_piped_in_or_pasted_are_never_commands(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(tmp_path, ECHO)
    status, out, _ = await in_pipes(home, agent, "!touch made\n")
    assert status == 0
    assert "[heard !touch made]" in out
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.paste("!touch made\nand more")
        person.type(ENTER)
        await person.see("[heard !touch made and more]")
        person.type("![a picture](made.png)" + ENTER)
        await person.see("[heard !a picture (made.png)]")
        await person.miss("Working")
        await quit_chat(person)
    assert not list(home.rglob("made"))
    assert not list(tmp_path.rglob("made"))


async def test_a_dumb_terminal_runs_commands_and_keeps_them_as_history(
    home: Path, tmp_path: Path
) -> None:
    agent = scripted_agent(tmp_path, ECHO)
    async with terminal(
        home, tmp_path, "chat", "--command", agent, environ={"TERM": "dumb"}
    ) as person:
        await person.see(">")
        person.type('!read name; echo "<$name>"\n')
        await its_process(person, ".*bash -c read name; .*")
        person.type("bob\n")
        await person.see("<bob> exit status 0 Sent with your next prompt: output of read name")
        person.type("!\n")
        person.type("sleep 619; echo never\n")
        await its_process(person, "sleep 619")
        person.type(CTRL_C)
        await person.see("signal SIGINT")
        person.type("exit\nhello\n")
        await person.see("[heard hello]", "[heard I ran a command myself,", "<bob>")
        await person.see("stop reason: end_turn")
        await quit_chat(person)
        assert b"\x1b" not in person.raw
    [history_file] = home.rglob("chat_history")
    entries = [json.loads(line) for line in history_file.read_text().splitlines()]
    assert entries[0] == '!read name; echo "<$name>"'
    assert "!sleep 619; echo never" in entries


@pytest.mark.parametrize("shell", ["/no/such/shell", ""])
async def test_a_missing_shell_is_no_error(home: Path, tmp_path: Path, shell: str) -> None:
    agent = scripted_agent(tmp_path, ECHO)
    async with terminal(
        home, tmp_path, "chat", "--command", agent, environ={"SHELL": shell}
    ) as person:
        await person.see(READY)
        person.type("!echo there" + ENTER)
        await person.see("there exit status 0")
        await quit_chat(person)


def test_enter_while_the_chat_starts_stays_enter_and_is_not_echoed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    master_fd, slave_fd = pty.openpty()
    os.set_blocking(master_fd, False)
    try:
        with os.fdopen(slave_fd, closefd=False) as stdin:
            monkeypatch.setattr(sys, "stdin", stdin)
            before = termios.tcgetattr(slave_fd)
            with keep_typeahead():
                os.write(master_fd, b"early\r")
                assert os.read(slave_fd, 100) == b"early\r"
                with pytest.raises(BlockingIOError):
                    os.read(master_fd, 100)
            assert termios.tcgetattr(slave_fd) == before
    finally:
        os.close(master_fd)
        os.close(slave_fd)


async def test_a_command_finds_the_terminal_as_usual(home: Path, tmp_path: Path) -> None:
    agent = scripted_agent(tmp_path, ECHO)
    async with terminal(home, tmp_path, "chat", "--command", agent) as person:
        await person.see(READY)
        person.type("!stty -a | tr -s ' ;' '\\n' | grep -cx 'icanon\\|echo\\|icrnl\\|isig'" + ENTER)
        await person.see("4 exit status 0")
        await quit_chat(person)
