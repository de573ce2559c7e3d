"""An editor's side of the protocol: it answers every v1 method that an agent may call.

Requests are dispatched by `jsonrpcserver`, a JSON-RPC implementation that nobody here wrote. The
editor has real buffers, real terminals and a user whose behaviour the test chooses:

    editor = Editor(offers=EVERYTHING, permission="allow_once")
    editor.buffers[str(path)] = "unsaved text"
    editor.permission = "reject_once"          # or a function from the request to an outcome
    editor.asked, editor.writes, editor.reads  # what the agent did
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Literal

from jsonrpcserver import Error, Success, async_dispatch

Json = dict[str, Any]
Offer = Literal[
    "read", "write", "terminal", "elicitation", "notices", "boolean", "terminal_auth", "subagents"
]
EVERYTHING: frozenset[Offer] = frozenset(
    ("read", "write", "terminal", "elicitation", "notices", "boolean", "terminal_auth", "subagents")
)
PermissionPolicy = (
    Literal["allow_once", "allow_always", "reject_once", "reject_always", "cancelled", "never"]
    | Callable[[Json], Awaitable[Json]]
)

_NOT_FOUND = -32002


class Terminal:
    """A command that the editor runs for the agent."""

    def __init__(self, process: asyncio.subprocess.Process, limit: int | None) -> None:
        self.process = process
        self.limit = limit
        self.output = b""
        self.truncated = False
        self.reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        while piece := await self.process.stdout.read(65536):
            self.output += piece
            if self.limit is not None and len(self.output) > self.limit:
                self.output = self.output[-self.limit :]
                self.truncated = True
        await self.process.wait()

    def status(self) -> Json | None:
        """How the command ended; None while it runs."""
        code = self.process.returncode
        if code is None:
            return None
        if code < 0:
            return {"exitCode": None, "signal": signal.Signals(-code).name}
        return {"exitCode": code, "signal": None}

    async def kill(self) -> None:
        """End the command and everything it started."""
        if self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
        await self.reading


class Editor:
    """The client's side: files, permissions, terminals and questions."""

    def __init__(
        self,
        *,
        offers: frozenset[Offer] = frozenset(),
        permission: PermissionPolicy = "allow_once",
    ) -> None:
        self.offers = offers
        self.permission = permission
        self.well_behaved = True  # False: what it sends is not held to the schema
        self.answer: Callable[[Json], Json] = lambda _: {"action": "decline"}
        self.buffers: dict[str, str] = {}  # unsaved text by path
        self.asked: list[Json] = []
        self.questions: list[Json] = []
        self.reads: list[Json] = []
        self.writes: list[Json] = []
        self.terminals: dict[str, Terminal] = {}
        self.commands: list[Json] = []
        self._made = 0
        self._methods = {
            "fs/read_text_file": self._read_text_file,
            "fs/write_text_file": self._write_text_file,
            "session/request_permission": self._request_permission,
            "elicitation/create": self._create_elicitation,
            "terminal/create": self._create_terminal,
            "terminal/output": self._terminal_output,
            "terminal/wait_for_exit": self._wait_for_terminal_exit,
            "terminal/kill": self._kill_terminal,
            "terminal/release": self._release_terminal,
        }

    @property
    def capabilities(self) -> Json:
        """What to advertise in `initialize`."""
        session: Json = {}
        if "notices" in self.offers:
            session["notices"] = {}
        if "boolean" in self.offers:
            session["configOptions"] = {"boolean": {}}
        capabilities: Json = {
            "fs": {"readTextFile": "read" in self.offers, "writeTextFile": "write" in self.offers},
            "terminal": "terminal" in self.offers,
        }
        if session:
            capabilities["session"] = session
        if "subagents" in self.offers:
            capabilities["subagents"] = {}
        if "elicitation" in self.offers:
            capabilities["elicitation"] = {"form": {}, "url": {}}
        if "terminal_auth" in self.offers:
            capabilities["auth"] = {"terminal": True}
        return capabilities

    async def dispatch(self, line: str) -> str:
        """The response to a request of the agent's, as a line without its end; "" for none."""
        return await async_dispatch(line, methods=self._methods)

    async def aclose(self) -> None:
        """End every terminal."""
        for terminal in self.terminals.values():
            await terminal.kill()

    async def _read_text_file(self, **params: Any) -> Any:
        self.reads.append(params)
        path = Path(params["path"])
        if not path.is_absolute():
            return Error(-32602, f"path is not absolute: {path}")
        try:
            text = self.buffers.get(str(path))
            text = path.read_text("utf-8") if text is None else text
        except FileNotFoundError:
            return Error(_NOT_FOUND, f"no such file: {path}")
        except (OSError, UnicodeDecodeError) as error:
            return Error(-32603, f"cannot read {path}: {error.__class__.__name__}")
        first = max((params.get("line") or 1) - 1, 0)
        limit = params.get("limit")
        if first or limit is not None:
            lines = text.splitlines(keepends=True)[first:]
            text = "".join(lines if limit is None else lines[:limit])
        return Success({"content": text})

    async def _write_text_file(self, **params: Any) -> Any:
        self.writes.append(params)
        path = Path(params["path"])
        if not path.is_absolute():
            return Error(-32602, f"path is not absolute: {path}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(params["content"].encode())
        self.buffers.pop(str(path), None)
        return Success({})

    async def _request_permission(self, **params: Any) -> Any:
        self.asked.append(params)
        if callable(self.permission):
            return Success({"outcome": await self.permission(params)})
        if self.permission == "never":
            await asyncio.Event().wait()
        if self.permission == "cancelled":
            return Success({"outcome": {"outcome": "cancelled"}})
        for option in params["options"]:
            if option["kind"] == self.permission:
                return Success({"outcome": selected(option["optionId"])})
        return Error(-32603, f"the user wanted {self.permission}, which was not offered")

    async def _create_elicitation(self, **params: Any) -> Any:
        self.questions.append(params)
        return Success(self.answer(params))

    async def _create_terminal(self, **params: Any) -> Any:
        self.commands.append(params)
        process = await asyncio.create_subprocess_exec(
            params["command"],
            *params.get("args", []),
            cwd=params.get("cwd"),
            env=os.environ | {one["name"]: one["value"] for one in params.get("env", [])},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        self._made += 1
        name = f"terminal-{self._made}"
        self.terminals[name] = Terminal(process, params.get("outputByteLimit"))
        return Success({"terminalId": name})

    async def _terminal_output(self, **params: Any) -> Any:
        terminal = self.terminals.get(params["terminalId"])
        if terminal is None:
            return _no_terminal(params)
        text = terminal.output.decode("utf-8", "replace")
        result: Json = {"output": text, "truncated": terminal.truncated}
        status = terminal.status()
        return Success(result | ({"exitStatus": status} if status is not None else {}))

    async def _wait_for_terminal_exit(self, **params: Any) -> Any:
        terminal = self.terminals.get(params["terminalId"])
        if terminal is None:
            return _no_terminal(params)
        await asyncio.shield(terminal.reading)
        return Success(terminal.status())

    async def _kill_terminal(self, **params: Any) -> Any:
        terminal = self.terminals.get(params["terminalId"])
        if terminal is None:
            return _no_terminal(params)
        await terminal.kill()
        return Success({})

    async def _release_terminal(self, **params: Any) -> Any:
        terminal = self.terminals.pop(params["terminalId"], None)
        if terminal is None:
            return _no_terminal(params)
        await terminal.kill()
        return Success({})


def constant(answer: Json) -> Callable[[Json], Json]:
    """A user who answers every form like this, for `Editor.answer`."""
    return lambda _: answer


def selected(option: str) -> Json:
    """The outcome of a permission: the button with this id was pressed."""
    return {"outcome": "selected", "optionId": option}


def _no_terminal(params: Json) -> Any:
    return Error(_NOT_FOUND, f"no such terminal: {params['terminalId']}")
