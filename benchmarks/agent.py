"""Drive the agent as a child process with the least overhead."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

Json = dict[str, Any]

COMMAND = str(Path(sys.executable).with_name("acp-agent"))


def clean_environment(home: str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without any key, with a home of its own."""
    environ = {
        name: value
        for name, value in os.environ.items()
        if not name.endswith(("_API_KEY", "_BASE_URL")) and not name.startswith("ACP_AGENT")
    }
    # A benchmark that wants language servers names the folder that they are in.
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    own = sysconfig.get_path("scripts")
    environ["PATH"] = os.pathsep.join(folder for folder in folders if folder != own)
    return environ | {"ACP_AGENT_HOME": home} | dict(extra or {})


class Agent:
    """A running agent with a temporary home, and the time since it was spawned."""

    def __init__(
        self, *arguments: str, extra: Mapping[str, str] | None = None, home: str | None = None
    ) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self.home = home or self._folder.name
        self._id = 0
        self.spawned = time.perf_counter()
        self.process = subprocess.Popen(
            [COMMAND, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=clean_environment(self.home, extra),
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._folder.cleanup()

    def since_spawn(self) -> float:
        """Milliseconds since the process was started."""
        return (time.perf_counter() - self.spawned) * 1e3

    def post(self, method: str, params: Json) -> int:
        """Send a request; its id."""
        self._id += 1
        self.write({"jsonrpc": "2.0", "id": self._id, "method": method, "params": params})
        return self._id

    def write(self, message: Json) -> None:
        """Send a message."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()

    def line(self) -> bytes:
        """The next line."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the agent ended")
        return line

    def until(self, piece: bytes) -> bytes:
        """Read up to the first line with `piece` in it; decoding would be measured too."""
        while piece not in (line := self.line()):
            pass
        return line

    def answer(self, request: int) -> Json:
        """Read up to a request's response; its result."""
        while True:
            line = self.line()
            if b'"method"' in line[:40] or b'"id":%d,' % request not in line[:60]:
                continue
            message = json.loads(line)
            if "error" in message:
                raise RuntimeError(f"the agent answered {message['error']}")
            result: Json = message["result"]
            return result

    def initialize(self, capabilities: Json | None = None) -> None:
        """The first request."""
        params = {"protocolVersion": 1, "clientCapabilities": capabilities or {}}
        self.answer(self.post("initialize", params))

    def new_session(self, cwd: str) -> str:
        """A session; its id."""
        created = self.answer(self.post("session/new", {"cwd": cwd, "mcpServers": []}))
        session: str = created["sessionId"]
        return session

    def prompt(self, session: str, text: str = "hi") -> int:
        """Send a prompt; the request's id."""
        content = [{"type": "text", "text": text}]
        return self.post("session/prompt", {"sessionId": session, "prompt": content})

    def pss(self) -> float:
        """Megabytes of memory, shared pages counted in part (proportional set size)."""
        for line in Path(f"/proc/{self.process.pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError("this system does not tell the proportional set size")
