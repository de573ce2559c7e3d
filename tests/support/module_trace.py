"""Which modules of the product run for a prompt, a prompt that edits a file, and `session/load`.

    paths = await traced_paths(home, project)
    paths["prompt"]     # the modules in the order in which each was first entered

The agent is the real one: this module, run as a program, starts it with a profile function that
notes the file of every function that is called, from SIGUSR1 to SIGUSR2.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from tests.support.agent_process import AgentProcess, Command
from tests.support.editor import Editor
from tests.support.model_server import Answer, Call, ModelServer, answer

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("acp_agent", "protocol")
_FILE = "TRACED_MODULES"  # the variable with the file for the result


async def traced_paths(home: Path, project: Path) -> dict[str, list[str]]:
    """The modules of each path, from a session whose first prompts have done all late imports."""
    found = home / "modules.json"
    model = ("--model", "openai/gpt-5")
    write = Call("write", {"path": "new.py", "content": "print('new')\n"})
    edit = Call("edit", {"path": "new.py", "old": "new", "new": "newer"})
    async with ModelServer() as server:
        environ = server.environ("openai") | {_FILE: str(found)}

        async def start() -> AgentProcess:
            launch = Command(sys.executable, "-m", "tests.support.module_trace")
            editor = Editor(permission="allow_once")
            agent = await AgentProcess.start(
                *model, home=home, editor=editor, environ=environ, launch=launch
            )
            await agent.initialize()
            return agent

        async def traced(agent: AgentProcess, method: str, params: dict[str, Any]) -> list[str]:
            found.unlink(missing_ok=True)
            await until_idle(agent.process.pid)  # what is left of the work before is another path's
            os.kill(agent.process.pid, signal.SIGUSR1)
            await agent.request(method, params)
            await until_idle(agent.process.pid)  # what follows the answer at once is of this path
            os.kill(agent.process.pid, signal.SIGUSR2)
            async with asyncio.timeout(60):
                while not found.exists():
                    await asyncio.sleep(0.01)
            modules: list[str] = json.loads(found.read_text("utf-8"))
            return modules

        async def prompt(agent: AgentProcess, *answers: Answer) -> list[str]:
            server.add(*answers)
            content = [{"type": "text", "text": "go on"}]
            return await traced(agent, "session/prompt", {"sessionId": session, "prompt": content})

        paths: dict[str, list[str]] = {}
        async with await start() as agent:
            session = await agent.new_session(project)
            await prompt(agent, answer(write), answer("Written."))
            paths["prompt"] = await prompt(agent, answer("Hello."))
            paths["edit"] = await prompt(agent, answer(edit), answer("Changed."))
        async with await start() as agent:
            load = {"sessionId": session, "cwd": str(project), "mcpServers": []}
            await agent.request("session/load", load)
            paths["load"] = await traced(agent, "session/load", load)
    return paths


async def until_idle(pid: int) -> None:
    """Wait until a process and its children have only waited for a fifth of a second."""
    async with asyncio.timeout(60):
        before, now = "", _activity(pid)
        while not now or before != now:
            await asyncio.sleep(0.2)
            before, now = now, _activity(pid)


def _activity(pid: int) -> str:
    """The processor time of a process and its children in ticks, or "" while they work (proc(5)).

    They also work while a thread waits for a processor or a disk.
    """
    times, pids = "", [pid]
    for each in pids:
        with suppress(OSError):  # it has ended
            for task in Path(f"/proc/{each}/task").iterdir():
                fields = (task / "stat").read_text("utf-8").rpartition(")")[2].split()
                if fields[0] in {"R", "D"}:
                    return ""
                times += f"{task.name} {fields[11]} {fields[12]} "
                pids += map(int, (task / "children").read_text("utf-8").split())
    return times


def _main() -> None:
    seen: dict[str, None] = {}
    # A file is renamed into place, so that whoever waits for it reads the whole.
    result = Path(os.environ.pop(_FILE))

    # The server reads the numbers of our signals, too, in a function of this name.
    ignored = {"<module>", "<lambda>", "read_numbers"}

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_name not in ignored:
            seen[frame.f_code.co_filename] = None

    def begin(*_: object) -> None:
        seen.clear()

    def end(*_: object) -> None:
        names = [
            path.removeprefix(f"{ROOT}/") for path in seen.copy() if path.startswith(f"{ROOT}/")
        ]
        modules = [name for name in names if name.startswith(PACKAGES)]
        partial = result.with_suffix(".partial")
        partial.write_text(json.dumps(modules), "utf-8")
        partial.rename(result)

    signal.signal(signal.SIGUSR1, begin)
    signal.signal(signal.SIGUSR2, end)
    threading.setprofile(note)
    sys.setprofile(note)
    from acp_agent.cli.main import main

    sys.exit(main())


if __name__ == "__main__":
    _main()
