"""The plugin for Neovim with the real agent: what takes longer than `make test` has time for."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from tests.editors.neovim import Neovim
from tests.editors.neovim_chat import AGENT, ANSWERING, DEMO, SCRIPTED, STRANGE, chat, idle
from tests.support.agent_process import environment
from tests.support.model_server import Call, ModelServer, Stall, answer

Opened = Callable[..., AbstractContextManager[Neovim]]

# For how many milliseconds Neovim looked at nothing, neither keys nor anything else, at most.
WATCHING = """
local last = vim.uv.hrtime()
_G.worst = 0
vim.uv.new_timer():start(0, 1, function()
  local now = vim.uv.hrtime()
  _G.worst, last = math.max(_G.worst, (now - last) / 1e6), now
end)
"""


def test_messages_sent_meanwhile_steer_the_turn(
    opened: Opened, model: ModelServer, workspace_repo: Path
) -> None:
    stall = Stall()
    model.add(answer("I begin.", stall, Call("read", {"path": "greeting.py"})), answer("Done."))
    with opened(*SCRIPTED, environ=model.environ("openai")) as nvim:
        nvim.type("ibegin<Esc><CR>")
        nvim.wait_for("I begin.")
        nvim.type("ialso this<Esc><CR>")
        nvim.wait_for("▍ also this")
        nvim.wait(
            "return not vim.iter(require('acp_agent.session').last.transcript.entries)"
            ":any(function(one) return one.noted end)"
        )
        stall.release()
        idle(nvim)
        assert chat(nvim).endswith("Done.")
    assert "also this" in model.requests[1].body.decode()


def test_a_cancel_ends_the_turn_and_the_next_one_works(opened: Opened, model: ModelServer) -> None:
    model.add(answer("I begin.", Stall()), answer("Well again."))
    with opened(*SCRIPTED, environ=model.environ("openai")) as nvim:
        nvim.type("ibegin<Esc><CR>")
        nvim.wait_for("I begin.")
        nvim.type("<C-c>")
        idle(nvim)
        assert "cancelled" in chat(nvim)
        nvim.type("iagain<Esc><CR>")
        nvim.wait_for("Well again.")


def test_a_killed_agent_is_started_again_and_the_conversation_continues(
    opened: Opened, model: ModelServer
) -> None:
    model.add(answer("Remember: 42."), answer("I do."))
    with opened(*SCRIPTED, environ=model.environ("openai")) as nvim:
        nvim.type("iremember<Esc><CR>")
        nvim.wait_for("Remember: 42.")
        idle(nvim)
        nvim.lua("vim.uv.kill(require('acp_agent.session').last.client.process.pid, 'sigkill')")
        nvim.wait_for("was ended by signal 9")
        nvim.command("AcpAgent restart")
        nvim.wait_for("the agent runs again")
        nvim.type("iwhat?<Esc><CR>")
        nvim.wait_for("I do.")
    assert "Remember: 42." in model.requests[-1].body.decode()


def test_a_selection_goes_along_with_the_prompt(opened: Opened, model: ModelServer) -> None:
    model.add(answer("I see it."))
    with opened(*SCRIPTED, environ=model.environ("openai")) as nvim:
        nvim.type("<C-w>hggVj:AcpAgent add<CR>")
        nvim.wait_for("with greeting.py:1-2")
        nvim.type("iwhat is this?<Esc><CR>")
        nvim.wait_for("I see it.")
        assert "with greeting.py" not in nvim.screen()
    assert "def greet(name: str)" in model.requests[0].body.decode()


def test_a_permission_is_given_by_a_key_in_the_chat(opened: Opened, workspace_repo: Path) -> None:
    with opened(*DEMO) as nvim:
        nvim.type("i$ touch made.txt<Esc><CR>")
        screen = nvim.wait_for("Allow this?")
        assert re.search(r"1 a +Allow once", screen), screen
        assert "asks you" in screen
        nvim.type("<C-w>kr")
        idle(nvim)
        assert not (workspace_repo / "made.txt").exists()
        nvim.type("<C-w>ji$ touch made.txt<Esc><CR>")
        nvim.wait_for("Allow this?")
        nvim.type("<C-w>k1")
        idle(nvim)
        assert (workspace_repo / "made.txt").exists()


def test_tool_calls_are_folded_with_their_output_and_open_on_a_key(opened: Opened) -> None:
    with opened(*DEMO) as nvim:
        nvim.type("i$ echo one; echo two<Esc><CR>")
        idle(nvim)
        nvim.type("<C-w>kgg")
        screen = nvim.wait_for("✓ `echo one; echo two`  (3)")
        assert screen.count("[exit code 0]") == 1, "only the model says it"
        nvim.type("/echo one; echo two`  <CR>zo")
        screen = nvim.wait_for("      [exit code 0]")
        assert re.search(r"│ {6}one *\n", screen), screen


def test_commands_complete_while_they_are_typed(opened: Opened) -> None:
    with opened(*DEMO) as nvim:
        nvim.wait("return #require('acp_agent.session').last.commands > 0")
        nvim.type("i/com")
        screen = nvim.wait_for("/compact")
        assert "what matters" in screen
        nvim.type("<C-e><C-u>/status<C-s>")
        nvim.type("<Esc>")
        idle(nvim)
        assert "▍ /status" in chat(nvim)


def test_saved_conversations_are_listed_loaded_forked_renamed_and_deleted(
    opened: Opened, model: ModelServer
) -> None:
    model.add(answer("First answer."), answer("Second answer."))
    with opened(*SCRIPTED, environ=model.environ("openai")) as nvim:
        nvim.type("ithe first<Esc><CR>")
        nvim.wait_for("First answer.")
        idle(nvim)
        nvim.command("AcpAgent rename Known by this")
        nvim.wait_for("Known by this")
        nvim.lua(ANSWERING, "Fork")
        nvim.command("AcpAgent fork")
        nvim.wait("return require('acp_agent.session').last.title == 'Known by this (fork)'")
        assert "First answer." in chat(nvim)
        nvim.type("ithe second<Esc><CR>")
        nvim.wait_for("Second answer.")
        idle(nvim)
        nvim.command("AcpAgent new")
        nvim.wait("return #require('acp_agent.session').last.transcript.entries == 0")
        nvim.lua(ANSWERING, "Known by this (fork)", "Open, with")
        nvim.command("AcpAgent sessions")
        nvim.wait("return #require('acp_agent.session').last.transcript.entries == 4")
        idle(nvim)
        assert chat(nvim) == "▍ the first\n\nFirst answer.\n\n▍ the second\n\nSecond answer."
        nvim.lua(ANSWERING, "Known by this (fork)", "Delete it")
        nvim.command("AcpAgent delete")
        nvim.wait("return require('acp_agent.session').last.problem")
        nvim.lua(ANSWERING, "nothing")
        nvim.command("AcpAgent sessions")
        nvim.wait("return _G.seen and #_G.seen == 1")
        assert nvim.lua("return _G.seen[1]").startswith("Known by this  — ")


def test_a_command_runs_in_neovims_terminal_where_the_user_wants_that(
    opened: Opened, home: Path
) -> None:
    folder = home / "acp-agent"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text("[editor]\nterminals = true\n")
    with opened(*DEMO) as nvim:
        nvim.type("i$ printf 'one\\033[31mtwo'; exit 3<Esc><CR>")
        nvim.wait_for("did not work")
        idle(nvim)
        entry = "require('acp_agent.session').last.transcript.tools"
        assert nvim.lua(f"return select(2, next({entry})).terminals") == ["terminal-1"]
        assert "[exit code 3]" in chat(nvim)
        assert "onetwo" in chat(nvim)


def test_a_cancel_ends_a_command_in_neovims_terminal(opened: Opened, home: Path) -> None:
    folder = home / "acp-agent"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text("[editor]\nterminals = true\n")
    with opened(*DEMO) as nvim:
        nvim.type("i$ echo begun; sleep 300<Esc><CR>")
        nvim.wait_for("● `echo begun")
        nvim.command("AcpAgent cancel")
        idle(nvim)
        assert (
            nvim.lua("return vim.tbl_count(require('acp_agent.session').last.client.terminals.all)")
            == 0
        )


def test_a_question_of_the_agents_is_a_form(opened: Opened) -> None:
    with opened(*DEMO) as nvim:
        nvim.lua(ANSWERING, "green", "")  # a colour, and nothing else
        nvim.type("iask Which colour? red or green<Esc><CR>")
        idle(nvim)
        assert "green" in chat(nvim).partition("red or green")[2]


def test_mode_and_model_are_chosen_and_the_agent_keeps_to_them(
    opened: Opened, workspace_repo: Path
) -> None:
    with opened(*DEMO) as nvim:
        nvim.lua(ANSWERING, "Full")
        nvim.command("AcpAgent mode")
        nvim.wait_for("· Full ·")
        nvim.type("i$ touch made.txt<Esc><CR>")
        nvim.wait_for("touch made.txt")
        idle(nvim)
        assert (workspace_repo / "made.txt").exists()


def test_an_edit_is_reverted_hunk_by_hunk(
    opened: Opened, workspace_repo: Path, model: ModelServer
) -> None:
    path = workspace_repo / "numbers.txt"
    before = "".join(f"line {number}\n" for number in range(1, 31))
    path.write_text(before)
    after = before.replace("line 2\n", "SECOND\n").replace("line 29\n", "LAST\n")
    model.add(answer("I look.", Call("read", {"path": str(path)})))
    model.add(
        answer("I write.", Call("write", {"path": str(path), "content": after})), answer("So.")
    )
    with opened(*SCRIPTED, environ=model.environ("openai"), file="numbers.txt") as nvim:
        nvim.lua(ANSWERING, "Accept edits")
        nvim.command("AcpAgent mode")
        nvim.wait_for("Accept edits ·")
        nvim.type("ichange it<Esc><CR>")
        idle(nvim)
        assert path.read_text() == after
        nvim.type("<C-w>k:call search('+2 −2', 'bw')<CR>d")
        nvim.wait_for("2/2 ● open")
        nvim.type("ar")
        nvim.wait("return vim.fn.tabpagenr('$') == 1")
    assert path.read_text() == before.replace("line 2\n", "SECOND\n")


def test_the_first_run_without_a_key_leads_to_a_model_in_two_steps(
    home: Path, workspace_repo: Path
) -> None:
    with Neovim.start(cwd=workspace_repo, environ=environment(home)) as nvim:
        nvim.lua("require('acp_agent').setup(...)", {"agents": {"acp-agent": {"command": AGENT}}})
        nvim.type(":AcpAgent<CR>")
        screen = nvim.wait_for("Type number and <Enter>")
        number = re.search(r"(\d): Try the demo", screen)
        assert number is not None, screen
        nvim.type(f"{number[1]}<CR>")
        nvim.wait_for("· idle · Ask · Demo (offline)")


def test_leaving_the_editor_ends_the_agent_and_the_command_that_it_runs(opened: Opened) -> None:
    with opened(*DEMO) as nvim:  # which asserts at its end that nothing is left
        nvim.type("i$ sleep 300<Esc><CR>")
        nvim.wait_for("● `sleep 300`")


def test_a_hundred_thousand_pieces_and_a_thousand_calls_leave_the_editor_responsive(
    opened: Opened,
) -> None:
    with opened(command=STRANGE) as nvim:
        nvim.lua(WATCHING)
        for prompt in (
            "flood 100000",
            "prose 100000",
            "tools 1000",
            "line 1000000",
            "huge 1000000",
        ):
            start = time.monotonic()
            nvim.lua("_G.worst = 0; require('acp_agent').send(...)", prompt)
            idle(nvim)
            blocked = nvim.lua("return _G.worst")
            print(f"{prompt}: {time.monotonic() - start:.2f} s, blocked {blocked:.0f} ms at most")
            assert blocked < 2000
