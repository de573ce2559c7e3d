"""`acp-agent chat` with the real agent in a real terminal, whose screen an emulator reads."""

from __future__ import annotations

import os
import re
import signal
import sys
from pathlib import Path

from tests.cli.chat_person import READY, quit_chat
from tests.support.model_server import ModelServer, Stall, answer
from tests.support.terminal_screen import (
    CTRL_C,
    ENTER,
    ESCAPE,
    TAB,
    terminal,
)

DOWN, UP = f"{ESCAPE}[B", f"{ESCAPE}[A"
DEMO = ("chat", "--model", "demo/demo")


async def test_a_turn_is_shown_with_its_calls_and_the_session_continues_later(
    home: Path, workspace_repo: Path
) -> None:
    environ = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    async with terminal(home, workspace_repo, *DEMO, environ=environ) as person:
        await person.see(READY)
        person.type("read README.md" + ENTER)
        await person.see("> read README.md", "✔ Read README.md read, done", "│ # Sample", "Done.")
        await person.see("context ")  # the toolbar
        await quit_chat(person)
        await person.see("Continue with: acp-agent chat --resume sess_")
    async with terminal(home, workspace_repo, *DEMO, "--resume") as person:
        await person.see("> read README.md", "✔ Read README.md", "Done.", READY)
        assert person.text.count("✔ Read README.md") == 1
        person.type(f"{ESCAPE}[A")  # the arrow brings back what was typed before
        await person.see_row("> read README.md")
        person.type(CTRL_C)
        await person.see_row(">")
        await quit_chat(person)


async def test_a_permission_is_given_by_its_letter_and_by_no_other_single_key(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO) as person:
        await person.see(READY)
        person.type("replace Hello with Goodbye in greeting.py" + ENTER)
        await person.see("[y] Allow once", "[n] Reject", '-    return f"Hello {name}"')
        person.type(ENTER + " ?")
        await person.see('"new": "Goodbye"', "[y] Allow once")
        assert "Hello" in (workspace_repo / "greeting.py").read_text()
        person.type("y")
        await person.see("-> Allow once", '+    return f"Goodbye {name}"')
        await person.miss("[y] Allow once")
        await person.miss("Working")
        assert "Goodbye" in (workspace_repo / "greeting.py").read_text()
        await quit_chat(person)


async def test_a_permission_is_given_by_arrow_keys_and_enter(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO, rows=40) as person:
        await person.see(READY)
        person.type("replace Hello with Goodbye in greeting.py" + ENTER)
        await person.see("  [y] Allow once", "  [n] Reject")
        person.type(UP)
        await person.see("[?] details > [i] reject and say what to do instead")
        person.type(DOWN)
        await person.see("> [y] Allow once")
        person.type(UP * 3)
        await person.see("> [n] Reject")
        assert "Hello" in (workspace_repo / "greeting.py").read_text()
        person.type(ENTER)
        await person.see("-> Reject")
        await person.miss("Working")
        assert "Hello" in (workspace_repo / "greeting.py").read_text()
        person.type("replace Hello with Goodbye in greeting.py" + ENTER)
        await person.count("[y] Allow once", 1)
        await person.see("  [y] Allow once")
        person.type(DOWN)
        await person.see("> [y] Allow once")
        person.type(ENTER)
        await person.see("-> Allow once")
        await person.miss("Working")
        assert "Goodbye" in (workspace_repo / "greeting.py").read_text()
        await quit_chat(person)


async def test_a_message_steers_the_turn_and_ctrl_c_cancels_it_then_quits(
    home: Path, workspace_repo: Path, model_server: ModelServer
) -> None:
    stalls = Stall(), Stall()
    model_server.add(
        answer("The **first** words ", stalls[0], "end."),
        answer("Both heard. ", stalls[1], "never said"),
    )
    async with terminal(home, workspace_repo, "chat", environ=model_server.environ()) as person:
        await person.see(READY)
        person.type("begin" + ENTER)
        await person.see("The first words")
        person.type("and this too" + ENTER)
        await person.see("> and this too (added to the running turn)")
        person.type("/status" + ENTER)
        await person.see("Session sess_", "Working")  # answered while the turn runs
        stalls[0].release()
        await person.see("Both heard.")
        assert "and this too" in model_server.requests[1].body.decode()
        person.type(CTRL_C)
        await person.see("The turn was cancelled.")
        await person.miss("Working")
        person.type(CTRL_C * 2)
        assert await person.status() == 0
        assert "never said" not in person.text


async def test_an_agent_that_is_killed_is_started_again_with_its_session(
    home: Path, workspace_repo: Path
) -> None:
    cold = {"ACP_AGENT_TEST_COLD": "1"}  # with a process that can be told from the chat's
    async with terminal(home, workspace_repo, *DEMO, environ=cold) as person:
        await person.see(READY)
        person.type("read README.md" + ENTER)
        await person.see("Done.")
        [agent] = [pid for pid, line in person.processes().items() if " acp_agent acp " in line]
        os.kill(agent, signal.SIGKILL)
        await person.see("The agent exited unexpectedly: signal SIGKILL")
        await person.see("The agent was restarted; the session continues.")
        person.type("/status" + ENTER)
        await person.see("Session sess_", "Messages to the model so far: 4")
        await quit_chat(person)


async def test_the_first_run_without_a_key_offers_ways_to_log_in(
    home: Path, workspace_repo: Path
) -> None:
    nowhere = {"LOCAL_BASE_URL": "http://127.0.0.1:9/v1"}  # the discard service
    async with terminal(home, workspace_repo, "chat", environ=nowhere) as person:
        await person.see("How do you want to log in?", "Log in with a key in the browser")
        person.type("demo")
        await person.miss("Use the existing configuration")
        person.type(ENTER)
        await person.see(READY, "Demo (offline)")
        await quit_chat(person)


async def test_commands_and_files_are_completed_and_earlier_sessions_opened(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO) as person:
        await person.see(READY)
        person.type("look at @gre")
        await person.see_row(" greeting.py")
        person.type(TAB)
        await person.see_row("> look at @greeting.py")
        person.type(ENTER + ENTER)
        await person.see("Demo (offline) | look at")
        person.type("/sta")
        await person.see("/status Show the model")
        person.type(TAB + ENTER + ENTER)
        await person.see("> /status", "Session sess_")
        person.type("/help" + ENTER)
        await person.see("/quit end the chat", "/compact", "Esc or Ctrl-C cancels")
        assert person.text.count("  /mode  ") == 1  # the agent has one as well
        person.type("/new" + ENTER)
        await person.see("Started a new session.")
        person.type("/sessions" + ENTER)
        await person.see("Sessions of this folder", "arrows select")
        person.type(ENTER)
        await person.miss("Sessions of this folder")
        await person.see("Started a new session. > /sessions > look at @greeting.py")
        await quit_chat(person)


async def test_chinese_fits_into_forty_columns_without_colours(
    home: Path, workspace_repo: Path
) -> None:
    variables = {"LANG": "zh_CN.UTF-8", "NO_COLOR": "1"}
    async with terminal(
        home, workspace_repo, *DEMO, columns=40, rows=20, environ=variables
    ) as person:
        await person.see("询问")
        person.type("replace Hello with Goodbye in greeting.py" + ENTER)
        await person.see("[y] 允许一次", "+    return")
        person.type("y")
        await person.see("编辑、完成")
        await quit_chat(person)
        colours = re.findall(rb"\x1b\[[0-9;]*m", person.raw)
        assert not [c for c in colours if re.search(rb"[\[;](3[0-8]|4[0-8]|9[0-7]|10[0-7])[;m]", c)]


async def test_a_session_is_forked_renamed_and_deleted_permanently(
    home: Path, workspace_repo: Path
) -> None:
    async with terminal(home, workspace_repo, *DEMO, rows=40) as person:
        await person.see(READY)
        person.type("read README.md" + ENTER)
        await person.see("Done.")
        person.type("/fork" + ENTER)
        await person.see("Continuing in a copy; return with /sessions sess_")
        person.type("read greeting.py" + ENTER)
        await person.count("Done.", 2)
        person.type("/rename  The other way " + ENTER)
        await person.see("Renamed the session: The other way", "Demo (offline) | The other way")
        person.type("/sessions" + ENTER)
        await person.see("> The other way *", "  read README.md ", "arrows select")
        person.type(ESCAPE)
        await person.miss("arrows select")
        person.type("/delete" + ENTER)
        await person.see("> The other way *")
        person.type(ENTER)
        await person.see("Delete this session? (the open session)", "> Cancel *")
        person.type(ENTER)  # what is under the cursor deletes nothing
        await person.miss("Cancel")
        person.type("/delete" + ENTER)
        await person.see("> The other way *")
        person.type(ENTER)
        await person.see("Cancel")
        person.type("delete" + ENTER)
        await person.see("Deleted the session.", "Started a new session.")
        person.type("/sessions" + ENTER)
        await person.see_row("? Sessions of this folder")
        assert "The other way *" not in "\n".join(person.screen)
        person.type("README" + ENTER)
        await person.count("Done.", 3)  # the one that was forked from is whole
        await person.miss("arrows select")
        await quit_chat(person)
