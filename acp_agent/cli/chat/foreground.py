"""Programs that use the terminal while the chat waits: logins, pagers, the user's commands.

A user's command runs in a separate pseudo-terminal, so that editors, pagers and password prompts
work, Ctrl-C reaches the command, and its output can be captured while it is shown.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import threading
import time
import tty
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Protocol, TextIO, TypeVar

from msgspec import Struct

from acp_agent.acp_client.process import end_orphaned_group
from acp_agent.cli.chat.session_state import remove_overwritten
from acp_agent.cli.output import FAILED
from acp_agent.platform import posix
from acp_agent.platform.posix import find_program
from acp_agent.workspace.command_output import PlainText

_R_co = TypeVar("_R_co", covariant=True)

MAX_OUTPUT_LENGTH = 32_000  # characters stored from the end of the output
_MAX_OUTPUT_BYTES = 8 * MAX_OUTPUT_LENGTH
_CHUNK_BYTES = 65_536
_MAX_FINAL_READS = 64
_POLL_SECONDS = 0.2  # between checks of the command's end and the terminal's size
_INTERRUPTS, _INTERRUPT_SECONDS = 3, 2.0  # so many Ctrl-C kill a stubborn command
_PROGRAM_END_SECONDS, _END_SECONDS = 2.0, 1.0  # for either to exit when stopped
_CTRL_C = b"\x03"
_CTRL_C_SECONDS = 0.3  # after a program ends, Ctrl-C within this time is still for the program

# Gives the new session the pseudo-terminal; `preexec_fn` is not safe with threads.
_TAKE_TERMINAL = (
    "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
    "os.execv(sys.argv[1], sys.argv[1:])"
)
# The alternate screen of editors and pagers is not part of the output.
_ALTERNATE_SCREEN = re.compile(
    rb"\x1b\[\?(?:1049|1047|47)h.*?(?:\x1b\[\?(?:1049|1047|47)l|\Z)", re.DOTALL
)
_ALTERNATE_ON, _ALTERNATE_OFF = b"\x1b[?1049h", b"\x1b[?1049l"
_RESET_STYLE = b"\x1b[0m\x1b[?25h"  # colours off, cursor visible
# Mouse, paste and key modes, which a killed program may have left on.
_RESET_MODES = b"\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l\x1b[?1l\x1b>"


class CommandResult(Struct, frozen=True, kw_only=True):
    """The result of a command.

    Attributes:
        status: its exit status, negative for a signal.
        output: the end of its output, without escape codes.
        cut: whether the beginning of the output is missing.
    """

    command: str
    status: int
    output: str
    cut: bool = False


class _Runnable(Protocol[_R_co]):
    """A program to run in the foreground."""

    def run(self) -> _R_co:
        """Run it until it ends."""

    def stop(self) -> None:
        """End it; return at once."""


class Foreground:
    """Runs programs in the terminal, one at a time.

    Args:
        release: clears the chat's drawing, and redraws it afterwards.
    """

    def __init__(
        self, release: Callable[[], AbstractAsyncContextManager[None]], cwd: Path, *, screen: TextIO
    ) -> None:
        self._release = release
        self._cwd = cwd
        self._screen = screen
        self._running: _Runnable[object] | None = None
        self._closed = False
        self._ctrl_c_until = 0.0

    @property
    def busy(self) -> bool:
        """Return whether a program uses the terminal, and thus receives Ctrl-C."""
        return self._running is not None or time.monotonic() < self._ctrl_c_until

    async def run_program(self, program: Sequence[str], environ: Mapping[str, str]) -> int:
        """Run a program with additional environment variables; return its exit status."""
        try:
            return await self._run(_Program(program, environ))
        except OSError:
            return FAILED
        finally:  # the Ctrl-C that ended it may reach the chat later
            self._ctrl_c_until = time.monotonic() + _CTRL_C_SECONDS

    async def run_command(self, command: str) -> CommandResult:
        """Run a command in the user's shell. Raises OSError."""
        return await self._run(
            UserCommand(command, self._cwd, keys=0, screen=self._screen.fileno())
        )

    def close(self) -> None:
        """End the running program and refuse others."""
        self._closed = True
        if self._running is not None:
            self._running.stop()

    async def _run(self, program: _Runnable[_R_co]) -> _R_co:
        async with self._release():
            self._running = program
            if self._closed:
                program.stop()
            try:
                return await asyncio.to_thread(program.run)
            finally:
                self._running = None


class _Program:
    """A program that uses the terminal itself."""

    def __init__(self, program: Sequence[str], environ: Mapping[str, str]) -> None:
        self._program = program
        self._environ = {**os.environ, **environ}
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End it; return at once."""
        self._stopped.set()

    def run(self) -> int:
        """Run it until it ends; return its exit status. Raises OSError."""
        with subprocess.Popen(self._program, env=self._environ) as process:
            while process.poll() is None:
                if not self._stopped.is_set():
                    with suppress(subprocess.TimeoutExpired):
                        process.wait(_POLL_SECONDS)
                    continue
                process.terminate()
                try:
                    process.wait(_PROGRAM_END_SECONDS)
                except subprocess.TimeoutExpired:
                    process.kill()
            return process.returncode


class UserCommand:
    """A command in the user's shell. Call `run` in a thread, `stop` from any thread.

    Args:
        keys: descriptor of the terminal to read keys from.
        screen: descriptor to write the output to.
    """

    def __init__(self, command: str, cwd: Path, *, keys: int, screen: int) -> None:
        self._command = command
        self._cwd = cwd
        self._keys = keys
        self._screen = screen
        self._output: deque[bytes] = deque()
        self._output_size = 0
        self._cut = False
        self._unsent_keys = b""  # not yet read by the command
        self._interrupted_at: deque[float] = deque(maxlen=_INTERRUPTS)
        self._size: tuple[int, ...] = ()
        self._stopped = threading.Event()

    def stop(self) -> None:
        """End it and its process group; return at once."""
        self._stopped.set()

    def run(self) -> CommandResult:
        """Run it until it ends.

        Raises:
            OSError: it could not be started, or the terminal is gone.
        """
        try:
            return self._run()
        except termios.error as error:
            raise OSError(*error.args) from None

    def _run(self) -> CommandResult:
        before = termios.tcgetattr(self._keys)
        master_fd, slave_fd = pty.openpty()
        try:
            termios.tcsetattr(slave_fd, termios.TCSANOW, before)
            tty.setraw(self._keys, termios.TCSADRAIN)
            try:
                status = self._run_in_terminal(master_fd, slave_fd)
            finally:
                with suppress(termios.error):  # the terminal is gone
                    termios.tcsetattr(self._keys, termios.TCSADRAIN, before)
        finally:
            os.close(master_fd)
        self._reset_screen(killed=status < 0)
        return self._result(status)

    def _run_in_terminal(self, master_fd: int, slave_fd: int) -> int:
        """Run it in the pseudo-terminal of two descriptors; return its status."""
        self._follow_size(master_fd)
        os.set_blocking(master_fd, False)
        try:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _TAKE_TERMINAL, *self._shell_command()],
                stdin=slave_fd,
                stdout=slave_fd,
                stderr=slave_fd,
                cwd=self._cwd,
                start_new_session=True,
            )
        finally:
            os.close(slave_fd)
        try:
            self._relay(process, master_fd)
        finally:
            self._end_group(process)
        return process.returncode

    def _shell_command(self) -> list[str]:
        shell = find_program(os.environ.get("SHELL", "")) or posix.find_shell(None)
        return [shell, "-c", self._command]

    def _relay(self, process: subprocess.Popen[bytes], master_fd: int) -> None:
        """Relay keys to the command and its output to the screen, until it ends or is stopped."""
        is_open = True  # whether any process holds the command's end of the terminal
        reads = _MAX_FINAL_READS  # after its end, as background processes may print on
        while reads and not self._stopped.is_set():
            ended = process.poll() is not None  # checked before its last output is read
            reading = [self._keys, master_fd] if is_open else [self._keys]
            writing = [master_fd] if is_open and self._unsent_keys else []
            wait = 0 if ended else _POLL_SECONDS
            ready, writable, _ = select.select(reading, writing, [], wait)
            if self._keys in ready and not self._read_keys(process, master_fd):
                return
            if writable:
                self._write_keys(master_fd)
            if master_fd in ready:
                is_open = self._show(master_fd)
            if ended:
                reads = reads - 1 if master_fd in ready else 0
            self._follow_size(master_fd)

    def _read_keys(self, process: subprocess.Popen[bytes], master_fd: int) -> bool:
        """Read typed keys; return whether the terminal still exists."""
        try:
            typed = os.read(self._keys, _CHUNK_BYTES)
        except OSError:
            return False
        if _CTRL_C in typed and _interrupts(master_fd):
            self._interrupted_at.extend([time.monotonic()] * typed.count(_CTRL_C))
            first = self._interrupted_at[0]
            is_repeated = len(self._interrupted_at) == _INTERRUPTS
            if is_repeated and time.monotonic() - first < _INTERRUPT_SECONDS:
                posix.end_group(process.pid, at_once=True)
        self._unsent_keys += typed
        return bool(typed)

    def _write_keys(self, master_fd: int) -> None:
        try:
            count = os.write(master_fd, self._unsent_keys[:_CHUNK_BYTES])
        except BlockingIOError:
            return
        except OSError:
            count = len(self._unsent_keys)  # no process reads it
        self._unsent_keys = self._unsent_keys[count:]

    def _show(self, master_fd: int) -> bool:
        """Show output and store it; return whether more may come."""
        try:
            data = os.read(master_fd, _CHUNK_BYTES)
        except BlockingIOError:
            return True
        except OSError:  # on Linux: no process holds the terminal any more
            return False
        if not data:
            return False
        self._output.append(data)
        self._output_size += len(data)
        while self._output_size - len(self._output[0]) > _MAX_OUTPUT_BYTES:
            self._output_size -= len(self._output.popleft())
            self._cut = True
        self._write(data)
        return True

    def _write(self, data: bytes) -> None:
        with suppress(OSError):  # the terminal is gone
            while data:
                data = data[os.write(self._screen, data) :]

    def _follow_size(self, master_fd: int) -> None:
        with suppress(OSError):
            size = os.get_terminal_size(self._keys)
            if size != self._size:
                self._size = size
                cells = struct.pack("HHHH", size.lines, size.columns, 0, 0)
                fcntl.ioctl(master_fd, termios.TIOCSWINSZ, cells)

    def _end_group(self, process: subprocess.Popen[bytes]) -> None:
        """End the command and the remaining processes of its group."""
        if process.poll() is None:
            posix.end_group(process.pid, at_once=False)
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                posix.end_group(process.pid, at_once=True)
                process.wait()
        end_orphaned_group(process.pid)

    def _reset_screen(self, *, killed: bool) -> None:
        """Reset the terminal and start a new line."""
        can_reset = os.environ.get("TERM", "") not in {"", "dumb"} and os.isatty(self._screen)
        if can_reset:
            printed = b"".join(self._output)
            if printed.rfind(_ALTERNATE_ON) > printed.rfind(_ALTERNATE_OFF):
                self._write(_ALTERNATE_OFF)
            self._write(_RESET_STYLE + (_RESET_MODES if killed else b""))
        if self._output and not self._output[-1].endswith(b"\n"):
            self._write(b"\r\n")

    def _result(self, status: int) -> CommandResult:
        printed = _ALTERNATE_SCREEN.sub(b"", b"".join(self._output))
        text = remove_overwritten(PlainText().feed(printed, final=True)).encode("utf-8", "replace")
        output = text.decode().strip("\n")
        cut = self._cut or len(output) > MAX_OUTPUT_LENGTH
        return CommandResult(
            command=self._command, status=status, output=output[-MAX_OUTPUT_LENGTH:], cut=cut
        )


def _interrupts(terminal: int) -> bool:
    """Return whether Ctrl-C sends a signal in this terminal; editors read it as a key."""
    try:
        return bool(termios.tcgetattr(terminal)[3] & termios.ISIG)
    except termios.error:
        return True
