"""The plugin for Neovim: its specs, and turns with the real agent in a Neovim that is looked at."""

from __future__ import annotations

import re
import subprocess
import sys
import uuid
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from tests.editors.neovim import PLUGIN, PROGRAM, Neovim
from tests.editors.neovim_chat import AGENT, DEMO, SCRIPTED, STRANGE, chat, idle
from tests.support.agent_process import environment
from tests.support.model_server import Call, ModelServer, answer
from tests.support.orphans import MARK, marked_processes

SPECS = sorted((PLUGIN / "tests" / "spec").glob("*_spec.lua"))

NUMBERS = "".join(f"line {number}\n" for number in range(1, 31))


Opened = Callable[..., AbstractContextManager[Neovim]]


def edit_two_places(path: Path) -> Call:
    """A call that changes the second line of NUMBERS and the one before the last."""
    changed = NUMBERS.replace("line 2\n", "SECOND\n").replace("line 29\n", "LAST BUT ONE\n")
    return Call("write", {"path": str(path), "content": changed})


@pytest.mark.parametrize("spec", SPECS, ids=lambda path: path.stem)
def test_every_sentence_of_the_specs_holds(spec: Path, tmp_path: Path) -> None:
    mark = f"neovim-{spec.stem}-{uuid.uuid4()}"
    done = subprocess.run(
        [PROGRAM, "--clean", "-l", str(PLUGIN / "tests" / "run.lua"), str(spec)],
        cwd=tmp_path,
        env=environment(tmp_path) | {"ACP_TEST_PYTHON": sys.executable, MARK: mark},
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert not (tmp_path / "hacked").exists()
    assert marked_processes(mark) == {}, "a process was left behind"


def test_an_unsaved_edit_is_reviewed_in_a_diff_and_made_in_the_buffer(
    opened: Opened, workspace_repo: Path
) -> None:
    with opened(*DEMO) as nvim:
        nvim.lua(
            "vim.api.nvim_buf_set_lines(vim.fn.bufnr('greeting.py'), 0, 0, false, {'# not saved'})"
        )
        nvim.type("ireplace Hello with Goodbye in greeting.py<Esc><CR>")
        screen = nvim.wait_for("1/1 ● open")
        assert 'return f"Hello {name}"' in screen
        assert 'return f"Goodbye {name}"' in screen
        assert "a accept · r reject" in screen
        nvim.type("a")
        idle(nvim)
        screen = nvim.wait_for("✓ Edit greeting.py  +1 −1")
        assert "▍ replace Hello with Goodbye in greeting.py" in screen
        assert re.search(r'return f"Goodbye \{name\}"\s*│', screen), "not in the code's window"
        assert "acp-agent · idle · Ask · Demo (offline)" in screen
    text = (workspace_repo / "greeting.py").read_text()
    assert text.startswith("# not saved\ndef greet")
    assert "Goodbye" in text


def test_of_two_hunks_one_is_accepted_and_the_other_is_reported_to_the_agent(
    opened: Opened, workspace_repo: Path, model: ModelServer
) -> None:
    path = workspace_repo / "numbers.txt"
    path.write_text(NUMBERS)
    model.add(answer("I look.", Call("read", {"path": str(path)})))
    model.add(answer("I write.", edit_two_places(path)), answer("I see."), answer("I see."))
    with opened(*SCRIPTED, environ=model.environ("openai"), file="numbers.txt") as nvim:
        nvim.type("ichange it<Esc><CR>")
        screen = nvim.wait_for("2/2 ● open")
        assert "1/2 ● open" in screen
        nvim.type("r")
        nvim.wait_for("1/2 ✗ rejected")
        nvim.type("a")
        idle(nvim)
        wanted = NUMBERS.replace("line 29\n", "LAST BUT ONE\n")
        assert path.read_text() == wanted
        assert nvim.lua("return vim.fn.getbufline('numbers.txt', 1, '$')") == wanted.splitlines()
    told = model.requests[-1].body.decode()
    assert "I rejected these hunks" in told
    assert "+SECOND" in told
    assert "I rejected these hunks" in told.partition("LAST BUT ONE")[2]


def test_a_permission_is_given_by_a_key_in_the_chat(opened: Opened, workspace_repo: Path) -> None:
    path = workspace_repo / "a.txt"
    path.write_text("old\n")
    with opened(command=STRANGE, settings={"review": {"auto_open": False}}) as nvim:
        nvim.type(f"iedit {path}<Esc><CR>")
        screen = nvim.wait_for("Allow this?")
        assert re.search(r"1 a +Allow once", screen), screen
        assert re.search(r"-old *\n.*\+new *\n", screen), "the diff is not there to see"
        nvim.wait_for("asks you")
        nvim.type("<C-w>kr")
        idle(nvim)
        assert path.read_text() == "old\n"
        assert "+new" not in nvim.screen(), "not folded again"
        nvim.type(f"<C-w>jiedit {path}<Esc><CR>")
        nvim.wait_for("asks you")
        nvim.type("<C-w>k1")
        idle(nvim)
        assert path.read_text() == "new\n"


def test_a_form_takes_no_key_from_what_is_typed_elsewhere(opened: Opened) -> None:
    with opened(*DEMO) as nvim:
        nvim.type("iask Which colour? red or green<Esc><CR><C-w>hO1 is ")
        nvim.wait_for("asks you")
        nvim.type("typed<Esc>~")
        nvim.wait("return vim.fn.getline(1) == '1 is typeD'")
        nvim.type("<C-w>l")
        nvim.wait_for("1: red")
        nvim.type("2<CR>")
        nvim.wait_for("Something else")
        nvim.type("<CR>")
        idle(nvim)
        assert "green" in chat(nvim).partition("red or green")[2]


def test_output_is_folded_while_it_comes_and_stays_open_once_opened(opened: Opened) -> None:
    with opened(command=STRANGE) as nvim:
        nvim.type("irun echo one; until test -e go; do sleep 0.02; done; echo two<Esc><CR>")
        screen = nvim.wait_for("● Run it  (1)")
        assert not re.search(r"│ {6}one *\n", screen), "not folded"
        nvim.type("<C-w>k:call search('Run it', 'bw')<CR>zo")
        nvim.wait_for("      one")
        nvim.lua("vim.fn.writefile({}, 'go')")
        screen = nvim.wait_for("✓ Run it  (3)")
        assert re.search(r"│ {6}one *\n.*│ {6}two *\n.*│ {6}\[exit code 0\]", screen), screen


def test_a_selection_goes_along_and_files_complete(opened: Opened) -> None:
    with opened(command=STRANGE) as nvim:
        completeopt = nvim.lua("return vim.go.completeopt")
        nvim.type("<C-w>hggVj:AcpAgent add<CR>")
        nvim.wait_for("with greeting.py:1-2")
        nvim.type("ilook at @src/a")
        nvim.wait("return vim.fn.pumvisible() == 1")
        nvim.type("<C-n><Esc><CR>")
        idle(nvim)
        assert nvim.lua("return vim.go.completeopt") == completeopt, "the user's was changed"
        assert "with greeting.py" not in nvim.screen()
        said = chat(nvim)
    assert "greeting.py#L1-L2" in said
    assert "def greet(name: str)" in said
    assert '"name": "src/app.py"' in said


def test_the_chat_keeps_its_part_of_a_screen_that_changes(opened: Opened) -> None:
    widths = "return vim.tbl_map(vim.api.nvim_win_get_width, vim.api.nvim_list_wins())"

    def resized(columns: int) -> list[int]:
        nvim.request("nvim_ui_try_resize", columns, 30)
        nvim.wait("return vim.o.columns == ...", columns)
        got: list[int] = nvim.lua(widths)
        return got

    with opened(command=STRANGE) as nvim:
        assert resized(100) == [59, 40, 40]
        assert resized(20) == [9, 10, 10]
        assert resized(100) == [59, 40, 40]
        nvim.command("vertical resize 60")
        nvim.wait("return vim.api.nvim_win_get_width(0) == 60")
        assert resized(50) == [19, 30, 30]


def test_a_saved_session_of_neovims_comes_back_without_what_was_the_chat(
    opened: Opened, workspace_repo: Path, home: Path
) -> None:
    with opened(command=STRANGE) as nvim:
        nvim.command("mksession s.vim")
    arguments = ["-S", "s.vim"]
    with Neovim.start(
        cwd=workspace_repo, environ=environment(home), arguments=arguments
    ) as restored:
        restored.type("<CR>")  # Neovim tells of every buffer that is no file
        restored.wait_for("def greet")
        assert restored.lua("return #vim.api.nvim_list_wins()") == 1
        assert (
            "acp-agent://" not in restored.request("nvim_exec2", "ls!", {"output": True})["output"]
        )


def test_hostile_text_is_inert_on_the_screen(opened: Opened, workspace_repo: Path) -> None:
    with opened(command=STRANGE) as nvim:
        nvim.type("ihostile<Esc><CR>")
        idle(nvim)
        nvim.lua("vim.o.statusline = [[%{%v:lua.require'acp_agent'.statusline()%}]]")
        screen = nvim.wait_for("␛[2J")
        nvim.type(":AcpAgent commands<CR>")
        screen += nvim.wait_for("Commands of Strange agent")
        assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", screen)
        nvim.type("1<CR>")
        nvim.type("<Esc><C-w>kgg/script<CR><CR>")  # the place that it names is no file
        assert nvim.lua("return #vim.api.nvim_list_chans()") <= 2, "something was started"
        assert nvim.lua("return vim.fn.bufnr('term://')") == -1
    assert not (workspace_repo / "hacked").exists()


def test_the_editor_answers_while_an_agent_floods(opened: Opened) -> None:
    with opened(command=STRANGE) as nvim:
        nvim.type("iflood 20000<Esc><CR>")
        nvim.wait_for("word1")
        for _ in range(10):
            nvim.lua("return 1", within=2)
        idle(nvim)
        assert chat(nvim).endswith("the end")
        nvim.type("itools 300<Esc><CR>")
        idle(nvim)
        nvim.wait_for("✓ Tool 299  (3)")


def test_the_health_check_names_what_is_missing(opened: Opened) -> None:
    agents = {"gone": {"command": ["/no/such/agent"]}}
    with opened(*DEMO) as nvim:
        nvim.lua("require('acp_agent').setup(...)", {"agents": agents, "chatt": 1})
        nvim.lua("require('acp_agent.config').current.agents['acp-agent'].command = {...}", *AGENT)
        nvim.command("checkhealth acp_agent")
        report = "\n".join(nvim.lua("return vim.api.nvim_buf_get_lines(0, 0, -1, false)"))
    assert "acp-agent: acp-agent 0" in report, report
    assert "gone: there is no program /no/such/agent" in report
    assert "pipx install acp-agent-server" in report
    assert "chatt is unknown; is chat meant?" in report
