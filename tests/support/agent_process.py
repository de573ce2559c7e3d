"""The real agent as a child process, driven line by line, with every line judged by the oracle.

    async with await AgentProcess.start(home=tmp_path, environ=server.environ()) as agent:
        await agent.initialize()
        session = await agent.new_session(repository)
        result = await agent.prompt(session, "read README.md")
        agent.updates(session, "tool_call")         # what came, in order
        asked = agent.post("session/prompt", {...}) # an id; answer = await agent.answer(asked)
        await agent.expect_update(session, "agent_message_chunk")
        await agent.send(b"raw bytes\\n")
        await agent.kill()                          # kill -9
        await agent.close_stdin(); assert await agent.wait() == 0

Leaving the block closes stdin, waits for the exit, and asserts that the agent left no process
behind and that nothing which it wrote broke the protocol. `agent.editor` answers the agent's own
requests. What can be said to it and read of it is in `tests.support.wire_client`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import sysconfig
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from tests.support.editor import Editor
from tests.support.oracle import Oracle
from tests.support.orphans import MARK, marked_processes
from tests.support.wire_client import WireClient

_KEPT = ("PATH", "LANG", "LC_ALL", "TMPDIR", "SYSTEMROOT", "PYTHONDONTWRITEBYTECODE")
_ROOT = Path(__file__).resolve().parents[2]
_AGENT = (sys.executable, "-m", "acp_agent")


class Process(Protocol):
    """A running agent's process (`asyncio.subprocess.Process`, or one of a warm parent)."""

    stdin: asyncio.StreamWriter | None
    stdout: asyncio.StreamReader | None
    stderr: asyncio.StreamReader | None

    @property
    def pid(self) -> int:
        """Its id."""
        ...

    @property
    def returncode(self) -> int | None:
        """Its exit status, once it has one."""
        ...

    async def wait(self) -> int:
        """Its exit status, when it has ended."""
        ...

    def send_signal(self, signal: int, /) -> None:
        """Send it a signal."""
        ...

    def terminate(self) -> None:
        """SIGTERM."""
        ...

    def kill(self) -> None:
        """SIGKILL."""
        ...


class Launch(Protocol):
    """A way to start `acp-agent` in a session of its own, with three pipes."""

    async def __call__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> Process:
        """Start it with these arguments, in this folder, with this environment and no more."""
        ...


class Command:
    """Starts the agent, or what stands in front of it, as an editor does.

    Args:
        command: the program and its first arguments.
    """

    def __init__(self, *command: str) -> None:
        self._command = command

    async def __call__(
        self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]
    ) -> Process:
        """`Launch`."""
        return await asyncio.create_subprocess_exec(
            *self._command,
            *arguments,
            cwd=cwd,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )


def environment(home: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """An environment that knows nothing of this machine's user: no keys, no configuration."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    # Tests that want language servers name a folder that has them.
    own = sysconfig.get_path("scripts")
    kept["PATH"] = os.pathsep.join(
        folder for folder in kept.get("PATH", os.defpath).split(os.pathsep) if folder != own
    )
    own_folders = {"HOME": str(home), "ACP_AGENT_HOME": str(home / "acp-agent")}
    # Not every machine can confine commands: the tests in tests/sandbox turn it on.
    return kept | own_folders | {"ACP_AGENT_SANDBOX": "false"} | dict(extra or {})


def config_file(home: Path, text: str) -> Path:
    """Write the user's configuration."""
    path = home / "acp-agent" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    return path


class AgentProcess(WireClient):
    """A running agent. Make one with `AgentProcess.start`."""

    def __init__(self, process: Process, *, mark: str, editor: Editor, oracle: Oracle) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__(process.stdin, process.stdout, editor=editor, oracle=oracle)
        self.process = process
        self.stderr = b""
        self._mark = mark
        self._readers = [
            asyncio.create_task(self.read()),
            asyncio.create_task(self._read_stderr()),
        ]

    @classmethod
    async def start(
        cls,
        *arguments: str,
        home: Path,
        cwd: Path | None = None,
        environ: Mapping[str, str] | None = None,
        command: Sequence[str] = _AGENT,
        launch: Launch | None = None,
        editor: Editor | None = None,
        oracle: Oracle | None = None,
    ) -> Self:
        """Start the agent with a home of its own and no key but those in `environ`.

        `launch` starts it in another way than by `command`.
        """
        mark = uuid.uuid4().hex
        start = Command(*command) if launch is None else launch
        env = environment(home, environ) | {MARK: mark}
        process = await start(arguments, cwd=cwd or _ROOT, env=env)
        return cls(process, mark=mark, editor=editor or Editor(), oracle=oracle or Oracle())

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        await self.stop(check=kind is None)

    async def _read_stderr(self) -> None:
        assert self.process.stderr is not None
        while piece := await self.process.stderr.read(1 << 16):
            self.stderr += piece

    # --- its end

    async def close_stdin(self) -> None:
        """End of input: the editor is gone."""
        self.oracle.leaving()
        self.writer.close()

    async def wait(self, *, timeout: float = 60.0) -> int:
        """The exit status, once the agent ended by itself."""
        self.may_read.set()
        try:
            async with asyncio.timeout(timeout):
                return await self.process.wait()
        except TimeoutError:
            raise AssertionError(f"the agent runs on after {timeout} s.{self.report()}") from None

    async def kill(self) -> None:
        """Kill -9, as a crash would."""
        self.cut_off = True
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()
        await self._settle()

    async def stop(self, *, check: bool = True) -> None:
        """End the agent in order; assert that all was in order."""
        try:
            if self.process.returncode is None:
                await self.close_stdin()
                await self.wait()
            await self._settle()
            if check:
                self.check()
        finally:
            await self._reap()

    def check(self) -> None:
        """Assert that no line broke the protocol, and no process was left behind."""
        if self.violation is not None:
            raise self.violation
        if self.fault is not None:
            raise self.fault
        if self.cut_off:
            return
        self.oracle.finished()
        left = self.left_behind()
        assert not left, f"processes were left behind: {left}"

    def pipe(self, descriptor: int) -> asyncio.BaseTransport:
        """This end of one of the three pipes of an agent that was started as an editor does."""
        assert isinstance(self.process, asyncio.subprocess.Process)
        transport: asyncio.SubprocessTransport = self.process._transport  # type: ignore[attr-defined]  # no public way to close one end
        pipe = transport.get_pipe_transport(descriptor)
        assert pipe is not None
        return pipe

    def left_behind(self) -> dict[int, str]:
        """Command lines by process id of what the agent started and what still runs."""
        return marked_processes(self._mark)

    async def _settle(self) -> None:
        """Read what is left in the pipes."""
        self.may_read.set()
        async with asyncio.timeout(60):
            await asyncio.gather(*self._readers)

    async def _reap(self) -> None:
        """Whatever happened, leave nothing of this test running."""
        for task in (*self.serving, *self._readers):
            task.cancel()
        await asyncio.gather(*self.serving, *self._readers, return_exceptions=True)
        await self.editor.aclose()
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
        for pid in marked_processes(self._mark):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def report(self) -> str:
        """What happened so far, for the message of a failed assertion."""
        errors = self.stderr[-3000:].decode("utf-8", "replace")
        return f"{super().report()}--- stderr (status {self.process.returncode})\n{errors}"


class StartAgent(Protocol):
    """Starts agents that share one home, and ends them after the test."""

    async def __call__(
        self,
        *arguments: str,
        editor: Editor | None = None,
        environ: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> AgentProcess:
        """Start one more agent."""
        ...
