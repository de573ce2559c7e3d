"""Run a hook: a program, an HTTP endpoint, a model, a tool of an MCP server, or a function.

A program reads the event and prints its answer. Exit code 0 means success. Exit code 2 refuses the
action, with stderr as the reason. Any other exit code is a failure, which refuses the action only
if the hook is configured so. JSON that a program prints counts with every exit code.
"""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import msgspec
from msgspec.structs import replace

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.hooks.types import NO_ANSWER, Hook, HookAnswer, read_answer
from acp_agent.platform.posix import end_group, make_private_folder
from acp_agent.sandbox.launch import Launch
from acp_agent.trust.store import PROJECT_VARIABLES
from acp_agent.workspace.child_process import REAP_LIMIT, start_transport, wait_at_most

_MAX_BYTES = 1_000_000  # of an answer
_TOO_LONG = f"its answer has more than {_MAX_BYTES:,} bytes"
_PIPE_SECONDS = 1.0  # until the pipes of an ended program are closed
_BLOCKED = 2  # the exit code
# The events at which a program may set variables of the environment for commands.
_VARIABLE_EVENTS: frozenset[HookEvent] = frozenset({"SessionStart", "FileChanged"})
_OK = range(200, 300)  # statuses of HTTP
_SHELLS: dict[str, tuple[str, ...]] = {
    "": ("/bin/sh", "-c"),
    "bash": ("bash", "-c"),
    "powershell": ("pwsh", "-NoProfile", "-NonInteractive", "-Command"),
}
_VARIABLE = re.compile(r"\$\{(\w+)\}|\$(\w+)")


class Confine(Protocol):
    """Prepares programs to run in the sandbox."""

    async def __call__(
        self, argv: list[str], cwd: Path, environ: Mapping[str, str], writable: Sequence[str]
    ) -> Launch:
        """Return how the program is started.

        Args:
            writable: folders that it may change besides the session's.

        Raises:
            OSError, AcpAgentError: the sandbox cannot be set up.
        """


class Helpers(Protocol):
    """Asks models and calls MCP tools for the hooks of a session."""

    async def ask_model(self, system: str, prompt: str, model: str) -> str:
        """Return the answer of a model; `model` "" is the small one. Raises AcpAgentError."""

    async def verify(self, system: str, prompt: str, model: str) -> str:
        """Return the answer of a model that may read files; `model` "" is the small one.

        Raises:
            AcpAgentError: the model cannot be asked, or fails.
        """

    async def call_tool(self, server: str, tool: str, arguments: JsonObject) -> str:
        """Return the text of a tool's result. Raises AcpAgentError."""


class HookRunner:
    """Runs the hooks of one session.

    Args:
        environ: the environment of programs, without secrets.
        variables: the environment variables that HTTP headers may name.
        confine: prepares programs for the sandbox; None: there is no sandbox.
        helpers: returns the object that asks models and MCP servers; None outside a session.
    """

    def __init__(
        self,
        cwd: Path,
        environ: Mapping[str, str],
        variables: Mapping[str, str],
        confine: Confine | None,
        helpers: Callable[[], Helpers | None] = lambda: None,
    ) -> None:
        self._cwd = cwd
        self._environ = {**environ, **dict.fromkeys(PROJECT_VARIABLES, str(cwd))}
        self._variables = variables
        self._confine = confine
        self._helpers = helpers

    def in_folder(self, cwd: Path, confine: Confine | None) -> HookRunner:
        """Return a runner of the same hooks in another folder, with its sandbox."""
        clone = copy.copy(self)
        clone._cwd, clone._confine = cwd, confine  # noqa: SLF001 - its own class
        return clone

    async def run(self, hook: Hook, event: JsonObject) -> HookAnswer:
        """Run a hook and return its answer. Raises nothing but a cancellation."""
        body = msgspec.json.encode(event)
        try:
            async with asyncio.timeout(hook.timeout):
                answer = await self._answer(hook, event, body)
        except TimeoutError:
            answer = _failed(hook, f"it took longer than {hook.timeout:g} s")
        except OSError as error:
            why = error.strerror or str(error)
            answer = _failed(hook, f"{error.filename}: {why}" if error.filename else why)
        except Exception as error:  # noqa: BLE001 - a hook must not end the turn
            answer = _failed(hook, str(error) or type(error).__name__)
        return replace(answer, by=hook)

    async def _answer(self, hook: Hook, event: JsonObject, body: bytes) -> HookAnswer:
        if hook.function is not None:
            result = await hook.function(event)
            return _read(hook, "" if result is None else msgspec.json.encode(result).decode())
        if hook.prompt or hook.server:
            return await self._ask_helpers(hook, event, body)
        return await (self._post(hook, body) if hook.url else self._run_command(hook, body))

    async def _ask_helpers(self, hook: Hook, event: JsonObject, body: bytes) -> HookAnswer:
        from acp_agent.hooks.asking import (  # noqa: PLC0415 - for these kinds
            JUDGE,
            VERIFIER,
            fill_event_fields,
            question,
            read_judgement,
        )

        helpers = self._helpers()
        if helpers is None:
            return _failed(hook, "it is asked in sessions only")
        if hook.prompt:
            prompt = question(hook, body.decode())
            if hook.verifies:
                return read_judgement(hook, await helpers.verify(VERIFIER, prompt, hook.model))
            return read_judgement(hook, await helpers.ask_model(JUDGE, prompt, hook.model))
        arguments = {name: fill_event_fields(value, event) for name, value in hook.input.items()}
        return _read(hook, await helpers.call_tool(hook.server, hook.tool, arguments))

    async def _run_command(self, hook: Hook, event: bytes) -> HookAnswer:
        argv = [*_SHELLS[hook.shell], hook.command]
        environ = {**self._environ, **hook.variables}
        if hook.args is not None:
            argv = [
                self._expand_variables(argument, environ) for argument in (hook.command, *hook.args)
            ]
        if hook.event in _VARIABLE_EVENTS:
            from acp_agent.hooks.variables import ENV_FILE, HookVariables  # noqa: PLC0415 - few events

            with HookVariables() as variables:
                environ[ENV_FILE] = str(variables.file)
                folder = str(variables.file.parent)
                answer = await self._run_program(hook, argv, environ, event, [folder])
                reader = variables.reader()
                if reader is None:
                    return answer
                output = await self._output(reader, environ, [folder], b"", confined=hook.sandbox)
                return replace(answer, variables=variables.read(output.text(1), environ))
        return await self._run_program(hook, argv, environ, event)

    async def _run_program(
        self,
        hook: Hook,
        argv: list[str],
        environ: dict[str, str],
        event: bytes,
        writable: Sequence[str] = (),
    ) -> HookAnswer:
        writable = list(writable)
        if data := hook.variables.get("PLUGIN_DATA"):
            make_private_folder(Path(data))
            writable.append(data)
        output = await self._output(argv, environ, writable, event, confined=hook.sandbox)
        if output.is_too_long:
            return _failed(hook, _TOO_LONG)
        out, err, status = output.text(1), output.text(2), output.status
        has_json = out.lstrip().startswith("{")
        if status == _BLOCKED:
            answer = _read(hook, out) if has_json else NO_ANSWER
            reason = answer.reason if answer.blocked and not answer.failure else err.strip()
            return replace(
                answer,
                blocked=True,
                permission="deny",
                reason=reason or "no reason given",
                arguments=None,
                failure="",
            )
        if status and not has_json:
            why = f"it ended with exit code {status}"
            return _failed(hook, f"{why}: {err.strip()[-500:]}" if err.strip() else why)
        return _read(hook, out)

    async def _output(
        self,
        argv: list[str],
        environ: dict[str, str],
        writable: Sequence[str],
        event: bytes,
        *,
        confined: bool,
    ) -> _Output:
        """Run a program with the event as its input, and return its output."""
        launch = Launch(tuple(argv), environ)
        if confined and self._confine is not None:
            launch = await self._confine(argv, self._cwd, environ, writable)
        transport, output = await start_transport(_Output, launch, cwd=self._cwd)
        try:
            output.write_event(event)
            await output.ended.wait()
            end_group(transport.get_pid(), at_once=True)  # its child processes hold the pipes
            await wait_at_most(output.closed.wait(), _PIPE_SECONDS)
        finally:
            end_group(transport.get_pid(), at_once=True)
            transport.close()
            await wait_at_most(output.exited.wait(), REAP_LIMIT)
            await launch.aclose()
        output.status = transport.get_returncode() or 0
        return output

    async def _post(self, hook: Hook, event: bytes) -> HookAnswer:
        import httpx2  # noqa: PLC0415 - 100 ms that only a hook of this kind needs

        headers = {"content-type": "application/json"}
        allowed, variables = hook.header_variables, self._variables
        if allowed is not None:
            variables = {name: variables[name] for name in allowed if name in variables}
        headers |= {
            name: self._expand_variables(value, variables) for name, value in hook.headers.items()
        }
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=None) as client,
            client.stream("POST", hook.url, content=event, headers=headers) as response,
        ):
            body = b""
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    return _failed(hook, _TOO_LONG)
            if response.status_code not in _OK:
                return _failed(hook, f"it answered with status {response.status_code}")
        return _read(hook, body.decode("utf-8", "replace"))

    def _expand_variables(self, text: str, variables: Mapping[str, str]) -> str:
        """Replace `$NAME` and `${NAME}`; unknown variables become empty."""
        return _VARIABLE.sub(lambda match: variables.get(match[1] or match[2], ""), text)


class _Output(asyncio.SubprocessProtocol):
    """Collects the output of a program.

    asyncio's streams do not report the end of a program while another process holds its pipes.

    Attributes:
        ended: the program was reaped, or wrote too much.
        closed: no process holds its pipes.
        is_too_long: the program wrote too much.
    """

    def __init__(self) -> None:
        self.ended = asyncio.Event()
        self.exited = asyncio.Event()
        self.closed = asyncio.Event()
        self.is_too_long = False
        self.status = 0
        self._stdin: asyncio.WriteTransport | None = None
        self._data = {1: bytearray(), 2: bytearray()}
        self._open_pipes = {1, 2}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the pipe to its standard input."""
        assert isinstance(transport, asyncio.SubprocessTransport)
        stdin = transport.get_pipe_transport(0)
        assert isinstance(stdin, asyncio.WriteTransport)
        self._stdin = stdin

    def write_event(self, event: bytes) -> None:
        """Write the event to its standard input; the program may ignore it."""
        if self._stdin is not None:
            self._stdin.write(event)
            self._stdin.write_eof()

    def text(self, fd: int) -> str:
        """Return the text that it wrote to a descriptor."""
        return self._data[fd].decode("utf-8", "replace")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Collect output."""
        if len(self._data[fd]) + len(data) > _MAX_BYTES:
            self.is_too_long = True
            self.ended.set()
        else:
            self._data[fd] += data

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Note that a pipe was closed."""
        del exc
        self._open_pipes.discard(fd)
        if not self._open_pipes:
            self.closed.set()

    def process_exited(self) -> None:
        """Note that the program was reaped."""
        self.exited.set()
        self.ended.set()


def _read(hook: Hook, text: str) -> HookAnswer:
    try:
        return read_answer(hook, text)
    except ValueError as error:
        return _failed(hook, f"its answer cannot be read: {error}")


def _failed(hook: Hook, why: str) -> HookAnswer:
    blocks = hook.blocks_on_failure and hook.event not in {"Stop", "SessionEnd"}
    return HookAnswer(
        blocked=blocks,
        permission="deny" if blocks else None,
        reason=f"the hook {hook.name} failed: {why}" if blocks else "",
        failure=f"{hook.name}: {why}",
    )
