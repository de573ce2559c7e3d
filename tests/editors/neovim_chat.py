"""The plugin's chat in a Neovim, with an agent behind it."""

from __future__ import annotations

import sys
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.editors.neovim import PLUGIN, Neovim
from tests.support.agent_process import environment
from tests.support.orphans import MARK, marked_processes

AGENT = (str(Path(sys.executable).parent / "acp-agent"),)
DEMO = ("--model", "demo/demo")
SCRIPTED = ("--model", "openai/scripted-model")
STRANGE = (sys.executable, "-S", "-E", str(PLUGIN / "tests" / "strange_agent.py"))

# Neovim's own lists and inputs block, as they wait for keys; these answer as a picker would.
ANSWERING = """
local answers = { ... }
vim.ui.select = function(items, options, chosen)
  local wanted = table.remove(answers, 1)
  _G.seen = vim.tbl_map(options.format_item, items)
  for index, item in ipairs(items) do
    if wanted and _G.seen[index]:find(wanted, 1, true) then return chosen(item, index) end
  end
  chosen(nil)
end
vim.ui.input = function(_, given) given(table.remove(answers, 1)) end
"""


@contextmanager
def chat_in(
    folder: Path,
    home: Path,
    *arguments: str,
    command: Sequence[str] = AGENT,
    file: str = "greeting.py",
    settings: dict[str, Any] | None = None,
    environ: dict[str, str] | None = None,
) -> Iterator[Neovim]:
    """Neovim in a folder with a file and the chat open, the agent ready.

    Asserts at the end that no process is left behind.

    Args:
        arguments: of the agent.
        command: the agent.
        settings: for the plugin.
        environ: variables for Neovim, and so for the agent.
    """
    mark = f"neovim-{uuid.uuid4()}"
    known = environment(home, environ) | {MARK: mark}
    with Neovim.start(cwd=folder, environ=known, arguments=[file]) as nvim:
        agents = {"acp-agent": {"command": [*command, *arguments]}}
        defaults = {"agents": agents, "review": {"grace": 0}}  # the tests type faster than people
        nvim.lua("require('acp_agent').setup(...)", defaults | (settings or {}))
        nvim.command("AcpAgent")
        nvim.wait_for("idle")
        yield nvim
    assert marked_processes(mark) == {}, "a process was left behind"


def idle(nvim: Neovim) -> None:
    """Wait for the end of the turn, and until it is drawn."""
    nvim.wait("return require('acp_agent').statusline():find('idle') ~= nil")
    nvim.wait("return not require('acp_agent.session').last.transcript:is_dirty()")


def chat(nvim: Neovim) -> str:
    """The whole text of the chat."""
    lines: list[str] = nvim.lua(
        "local chat = require('acp_agent.chat').of_session(require('acp_agent.session').last)"
        "return vim.api.nvim_buf_get_lines(chat.buf, 0, -1, false)"
    )
    return "\n".join(lines)
