"""What a first prompt needs is imported before it comes, and gives way to requests."""

from __future__ import annotations

import asyncio
import builtins
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from acp_agent.session.preload import Preload
from tests.support.agent_process import AgentProcess
from tests.support.model_server import Call, ModelServer, answer
from tests.support.waiting import until

# The agent, with a line on stderr for every module that is imported once the preparation is over.
AGENT = """
import sys
import threading
from acp_agent.cli.serve import serve
from acp_agent.session import start_up

class Report:
    def find_spec(self, name, path, target=None):
        thread = threading.current_thread().name
        print("imports", name, "in", thread, file=sys.stderr, flush=True)

freeze = start_up.freeze_objects

def freeze_and_report():
    freeze()
    sys.meta_path.insert(0, Report())
    print("ready", file=sys.stderr, flush=True)

start_up.freeze_objects = freeze_and_report
serve(["--model", "openai/gpt-5"])
"""


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """Modules that nobody imported yet; the first imports the second."""
    names = ["preloaded_outer", "preloaded_inner", "preloaded_last"]
    (tmp_path / f"{names[0]}.py").write_text(f"import {names[1]}\n")
    for name in names[1:]:
        (tmp_path / f"{name}.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    yield names
    for name in names:
        sys.modules.pop(name, None)


async def test_an_import_waits_while_a_request_is_answered_also_before_the_imports_of_imports(
    modules: list[str],
) -> None:
    asked: list[list[bool]] = []

    def busy() -> bool:
        there = [name in sys.modules for name in modules]
        known = there in asked
        asked.append(there)
        return not known

    await Preload([], [modules[0], modules[2]], busy).run()
    assert all(name in sys.modules for name in modules)
    steps = ([False] * 3, [True, False, False], [True, True, False])
    assert all(asked.count(step) > 1 for step in steps)


async def test_a_request_that_takes_long_delays_the_imports_and_does_not_prevent_them(
    modules: list[str],
) -> None:
    await Preload([modules[0]], modules, lambda: True).run()
    assert all(name in sys.modules for name in modules)


async def test_a_request_can_import_a_module_while_an_import_waits_for_it(
    modules: list[str],
) -> None:
    waits, imported, in_time = threading.Event(), threading.Event(), list[bool]()

    def busy() -> bool:
        if not waits.is_set() and modules[0] in sys.modules:
            waits.set()
            in_time.append(imported.wait(10))
        return False

    preload = asyncio.create_task(Preload([], modules[:1], busy).run())
    await asyncio.to_thread(waits.wait, 10)
    await asyncio.to_thread(__import__, modules[2])
    imported.set()
    await preload
    assert in_time == [True]


async def test_nothing_pauses_any_more_when_a_prompt_waits(modules: list[str]) -> None:
    asked = threading.Event()

    def busy() -> bool:
        asked.set()
        return True

    usual_import = builtins.__import__
    preload = Preload([], modules, busy)
    preload.stop_pausing()
    await preload.run()
    assert not asked.is_set()
    assert all(name in sys.modules for name in modules)
    assert builtins.__import__ is usual_import


async def test_the_first_prompt_imports_nothing_more(
    tmp_path: Path, model_server: ModelServer
) -> None:
    model_server.add(answer("Hello."))
    agent = await AgentProcess.start(
        home=tmp_path / "home",
        environ=model_server.environ("openai"),
        command=[sys.executable, "-c", AGENT],
    )
    async with agent:
        await agent.initialize()
        session = await agent.new_session(tmp_path)
        await until(lambda: b"ready" in agent.stderr)
        await agent.prompt(session, "Hi")
    assert not re.findall(r"imports (?:acp_agent|protocol|_ssl).*", agent.stderr.decode())


async def test_the_first_edit_imports_no_large_modules_in_the_event_loop(
    tmp_path: Path, model_server: ModelServer
) -> None:
    (tmp_path / "a.txt").write_text("one\n")
    model_server.add(
        answer(Call("edit", {"path": "a.txt", "old": "one", "new": "two"})), answer("Done.")
    )
    agent = await AgentProcess.start(
        home=tmp_path / "home",
        environ=model_server.environ("openai"),
        command=[sys.executable, "-c", AGENT],
    )
    async with agent:
        await agent.initialize()
        session = await agent.new_session(tmp_path)
        await until(lambda: b"ready" in agent.stderr)
        await agent.prompt(session, "Edit.")
        assert (tmp_path / "a.txt").read_text() == "two\n"
    imports = re.findall(
        r"imports (\S+\.(?:edit_checks|checkpoints)) in (\w+)", agent.stderr.decode()
    )
    assert {name.rpartition(".")[2] for name, _ in imports} == {"edit_checks", "checkpoints"}
    assert "MainThread" not in {thread for _, thread in imports}, imports


def test_the_first_prompt_imports_no_modules_of_rare_tools() -> None:
    program = """
import sys
from importlib import import_module
from acp_agent.session.preload import PROMPT_MODULES
for name in PROMPT_MODULES:
    import_module(name)
print(sorted({"httpx2", "mcp", "rich", "yaml"} & sys.modules.keys()))
"""
    command = [sys.executable, "-c", program]
    result = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert result.stdout == "[]\n"
