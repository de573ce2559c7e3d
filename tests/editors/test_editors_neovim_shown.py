"""What Neovim shows while the user is busy: folds, and whose words are Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from tests.editors.neovim import Neovim
from tests.editors.neovim_chat import STRANGE, chat

Opened = Callable[..., AbstractContextManager[Neovim]]


def update(nvim: Neovim, kind: str, **members: Any) -> None:
    """The agent sends an update of the open conversation."""
    nvim.lua("require('acp_agent.session').last:update(...)", {"sessionUpdate": kind, **members})


def says(nvim: Neovim, text: str) -> None:
    update(nvim, "agent_message_chunk", content={"type": "text", "text": text})


def calls(nvim: Neovim, title: str, output: str = "") -> None:
    content = [{"type": "content", "content": {"type": "text", "text": output}}]
    update(nvim, "tool_call", toolCallId=title, title=title, content=content)


def test_thoughts_and_calls_are_folded_while_the_user_types(opened: Opened) -> None:
    with opened(command=STRANGE) as nvim:
        nvim.type("ithe next")
        nvim.wait_for("the next")
        update(nvim, "agent_thought_chunk", content={"type": "text", "text": "one\ntwo"})
        calls(nvim, "A call", "first of it\nsecond of it")
        says(nvim, "So far.\n")
        screen = nvim.wait_for("So far.")
        assert re.search(r"∴ Thought *\n.* ○ A call  \(2\) *\n", screen), screen
        nvim.type(" prompt")
        nvim.wait_for("the next prompt")
        nvim.command("let window = win_findbuf(bufnr('acp-agent://acp-agent/1'))[0]")
        nvim.command("call win_execute(window, '4foldopen')")
        calls(nvim, "A call", "first of it\nsecond of it\nthird of it")
        screen = nvim.wait_for("third of it")
        assert nvim.request("nvim_get_mode")["mode"] == "i"
        nvim.type("<Esc>.")
        nvim.wait_for("the next prompthe next promptt")  # `.` repeats what the user did
        assert "one" not in nvim.screen()


def test_only_the_agents_own_words_are_markdown(opened: Opened) -> None:
    with opened(command=STRANGE) as nvim:
        nvim.type("ilook at __main__ and ~~this~~<Esc><CR>")
        nvim.wait_for("look at __main__ and ~~this~~")
        nvim.wait_for('"type": "text"}')  # what this agent repeats, at the end of its turn
        nvim.wait_for("· idle ·")
        says(nvim, "\n\nI **read** it:\n\n1. a `list`\n   - within it\n")
        calls(nvim, "Read __init__.py", "__all__ = []")
        nvim.wait_for("○ Read __init__.py")
        screen = nvim.wait_for("I read it:")  # the editor parses Markdown after it has drawn it
        assert "▍ look at __main__ and ~~this~~" in screen
        assert "1. a list" in screen
        assert "I **read** it:" in chat(nvim)
