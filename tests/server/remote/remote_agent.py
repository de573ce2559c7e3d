"""A listening agent as a process of its own, forked after its imports unless behind a launcher.

    with RemoteAgent(home, "--model", "demo/demo") as agent:
        agent.url, agent.token

Leaving the block sends SIGTERM and asserts what a listening agent owes whoever started it: status
0 within five seconds, nothing on stdout, no traceback, no process left behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from tests.support.agent_process import environment
from tests.support.orphans import MARK, marked_processes
from tests.support.warm_parent import WarmChild, shared_parent

ROOT = Path(__file__).resolve().parents[3]
DEMO = ("--model", "demo/demo")
TOKEN = "a-token-that-nobody-guesses"


class RemoteAgent:
    """A running agent that listens on a free port of 127.0.0.1."""

    def __init__(
        self,
        home: Path,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
        listen: str = "127.0.0.1:0",
        token: str | None = TOKEN,
        launcher: Sequence[str] = (),
    ) -> None:
        self._mark = uuid.uuid4().hex
        self._lines: list[str] = []
        self._changed = threading.Condition()
        given = {} if token is None else {"ACP_AGENT_LISTEN_TOKEN": token}
        words = ["serve", "--listen", listen, *arguments]
        env = environment(home, environ) | given | {MARK: self._mark, "PYTHONPATH": str(ROOT)}
        self.process: subprocess.Popen[bytes] | WarmChild
        if launcher or os.environ.get("ACP_AGENT_TEST_COLD"):
            self.process = subprocess.Popen(
                [*launcher, sys.executable, "-m", "acp_agent", *words],
                env=env,
                cwd=home,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
            )
        else:
            self.process = shared_parent().spawn(words, cwd=home, env=env)
        threading.Thread(target=self._read, daemon=True).start()
        self.url = self.line_with("listening on ").split()[-1]
        self.token = token or ""
        self.port = urlsplit(self.url).port or 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.stop(check=kind is None)
        finally:
            if self.process.poll() is None:
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()

    @property
    def websocket_url(self) -> str:
        """The endpoint for a WebSocket."""
        return "ws" + self.url.removeprefix("http")

    @property
    def authorization(self) -> dict[str, str]:
        """The header that lets a client in."""
        return {"Authorization": f"Bearer {self.token}"}

    @property
    def stderr(self) -> str:
        """What it said so far."""
        with self._changed:
            return "".join(self._lines)

    def line_with(self, text: str, *, seconds: float = 20.0) -> str:
        """The first line of stderr with `text` in it, when it is there."""
        result: list[str] = []

        def is_logged() -> bool:
            result[:] = [line for line in self._lines if text in line]
            return bool(result) or self.process.poll() is not None

        with self._changed:
            assert self._changed.wait_for(is_logged, seconds), "".join(self._lines)
            assert result, "".join(self._lines)
        return result[0].strip()

    def stop(self, *, check: bool = True, by: signal.Signals = signal.SIGTERM) -> None:
        """End it in order."""
        if self.process.poll() is None:
            self.process.send_signal(by)
        assert self.process.wait(60) == 0, self.stderr
        if not check:
            return
        assert "not everything could be ended" not in self.stderr
        assert self.process.stdout is not None
        assert self.process.stdout.read() == b""
        assert "Traceback" not in self.stderr
        assert "acp-agent: error" not in self.stderr  # what is logged as a fault of its own
        assert not marked_processes(self._mark)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            with self._changed:
                self._lines.append(line.decode("utf-8", "replace"))
                self._changed.notify_all()
