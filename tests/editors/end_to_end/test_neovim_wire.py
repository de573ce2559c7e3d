"""What the plugin for Neovim says on the wire, held to the schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from tests.editors.neovim import ROOT, Neovim
from tests.editors.neovim_chat import AGENT, ANSWERING, DEMO, idle
from tests.support.relay import judge, relay_command
from tests.support.wire_schema import wire_schema

Opened = Callable[..., AbstractContextManager[Neovim]]


def test_everything_that_neovim_says_is_as_the_schema_has_it(opened: Opened, home: Path) -> None:
    folder = home / "acp-agent"
    folder.mkdir(mode=0o700)
    (folder / "config.toml").write_text("[editor]\nterminals = true\n")
    record = home / "record"
    relay = relay_command(record, [*AGENT, *DEMO])
    with opened(command=relay, environ={"PYTHONPATH": str(ROOT)}) as nvim:
        nvim.type("<C-w>hggVj:AcpAgent add<CR>")
        nvim.wait_for("with greeting.py:1-2")
        nvim.type("ilook at @src/app.py<Esc><CR>")
        nvim.wait_for("▍ look at @src/app.py")
        idle(nvim)
        nvim.type("ireplace Hello with Goodbye in greeting.py<Esc><CR>")
        nvim.wait_for("1/1 ● open")
        nvim.type("a")
        idle(nvim)
        nvim.type("i$ echo one; exit 3<Esc><CR>")
        nvim.wait_for("did not work")
        idle(nvim)
        nvim.lua(ANSWERING, "green", "", "Plan", "known", "Go on", "nothing")
        nvim.type("iask Which colour? red or green<Esc><CR>")
        nvim.wait_for("Which colour?")
        idle(nvim)
        nvim.command("AcpAgent mode")
        nvim.wait_for("· Plan ·")
        nvim.command("AcpAgent rename known")
        nvim.wait_for("renamed to known")
        nvim.command("AcpAgent fork")
        nvim.wait("return require('acp_agent.session').last.title == 'known (fork)'")
        idle(nvim)
        nvim.type("i$ sleep 300<Esc><CR>")
        nvim.wait("return require('acp_agent.session').last.turn")
        nvim.command("AcpAgent cancel")
        idle(nvim)
        nvim.command("AcpAgent finish")
    judge(record)
    assert len(said := said_by_the_client(record)) > 15, said
    for wanted in (
        *("initialize", "session/new", "session/prompt", "session/cancel", "session/close"),
        *("fs/read_text_file", "fs/write_text_file", "session/request_permission"),
        *("terminal/create", "terminal/output", "elicitation/create"),
        *("session/set_config_option", "session/set_title", "session/fork", "session/load"),
    ):
        assert wanted in said, wanted


def said_by_the_client(record: Path) -> set[str]:
    """The methods of all that a client said or answered, once the schema has passed each."""
    schema = wire_schema()
    assert schema is not None
    asked: dict[Any, str] = {}
    said: set[str] = set()
    for line in record.read_text().splitlines():
        who, text = json.loads(line)
        message = json.loads(text.encode("latin-1"))
        method = message.get("method")
        if who == "agent":
            if method and "id" in message:
                asked[message["id"]] = method
            continue
        if method is None:
            method = asked[message["id"]]
            if "result" in message:
                assert not schema.problem(method, "client", "Response", message["result"]), text
        else:
            kind = "Request" if "id" in message else "Notification"
            assert not schema.problem(method, "agent", kind, message["params"]), text
        said.add(method)
    return said
