"""Run ripgrep, which is fast and respects `.gitignore`, and read its output within limits."""

from __future__ import annotations

import asyncio
import base64
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct, field

from acp_agent.errors import WorkspaceError
from acp_agent.platform.decoding import json_decoder
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.posix import end_group, find_program
from acp_agent.sandbox.launch import Confine
from acp_agent.workspace.child_process import start_confined
from acp_agent.workspace.ignore_files import (
    RIPGREP_IGNORE_FILES,
    EndlessFileWatch,
    endless_error,
    endless_file,
)

TIME_LIMIT = 20.0  # seconds for one search
_MAX_RECORD = 4_000_000  # bytes; a longer record (such as a line of a minified file) is skipped
_MAX_SKIPPED = 16_000_000  # bytes of skipped records, after which the search ends
_CHUNK = 262_144
# Kinds of ignore files, with the options that disable them.
_DISABLING_OPTIONS = {
    (".gitignore",): "--no-ignore-vcs",
    (".ignore", ".rgignore"): "--no-ignore-dot",
    (".git/info/exclude",): "--no-ignore-exclude",
}
_MAX_REAP_SECONDS = 2.0  # seconds; a killed process that takes longer hangs in the kernel
# The variables that ripgrep gets: they locate the user's ignore files and hold no secrets.
_ENVIRONMENT = ("HOME", "PATH", "XDG_CONFIG_HOME")
_CONTEXT_LENGTH = 150  # characters before a match in a shortened line


class RipgrepResult(Struct, frozen=True, kw_only=True):
    """The end of a run: its exit status (0 found, 1 nothing, 2 error), and why it was cut short."""

    status: int
    error: str = ""
    stopped: bool = False
    timed_out: bool = False
    skipped: int = 0  # records over the limit


def find_ripgrep() -> str:
    """Return the ripgrep installed with this program, else the one on the PATH.

    Raises:
        WorkspaceError: ripgrep is not installed.
    """
    environment_folder = Path(
        sys.executable
    ).parent  # of the virtual environment, so symlinks stay unresolved
    program = find_program("rg", str(environment_folder)) or find_program("rg")
    if program is None:
        raise WorkspaceError(
            "ripgrep (rg) is missing: install acp-agent-server again, or ripgrep itself"
        )
    return program


async def run_ripgrep(
    arguments: Sequence[str],
    folder: Path,
    *,
    separator: bytes,
    on_record: Callable[[bytes], bool],
    confine: Confine,
    timeout: float = TIME_LIMIT,
) -> RipgrepResult:
    """Run ripgrep in a folder and pass each record of its output to `on_record`.

    Hidden files are searched, except those of version control. Ignore files apply, also outside a
    repository. The user's ripgrep configuration is not read. The process has ended when this
    returns.

    Args:
        arguments: the arguments, without the options for the above.
        on_record: called with each record; returns whether to continue.
        confine: wraps the command line.
        timeout: seconds after which the process is killed.

    Raises:
        WorkspaceError: ripgrep cannot be started, or would hang at an ignore file.
    """
    process = await _start([*arguments, *_endless_file_options(folder)], folder, confine)
    reader, errors = process.stdout, process.stderr
    if reader is None or errors is None:
        raise AssertionError("both streams were asked for as pipes")
    error_output = asyncio.create_task(errors.read())
    stopped = timed_out = False
    skipped = 0
    end = partial(end_group, process.pid, at_once=True)
    watch = EndlessFileWatch(folder, RIPGREP_IGNORE_FILES, end)
    try:
        with watch:
            async with asyncio.timeout(timeout):
                stopped, skipped, timed_out = await _read_records(reader, separator, on_record)
                if not stopped and not timed_out:
                    await process.wait()
    except TimeoutError:
        timed_out = True
    finally:
        if process.returncode is None:
            end()
        reaped = asyncio.create_task(process.wait())
        await asyncio.wait([error_output, reaped], timeout=_MAX_REAP_SECONDS)
        has_error_output = error_output.done()  # otherwise a leftover process holds the pipe
        error_output.cancel()
        reaped.cancel()
    watch.require_none()
    return RipgrepResult(
        status=process.returncode if process.returncode is not None else 2,
        error=error_output.result().decode("utf-8", "replace").strip() if has_error_output else "",
        stopped=stopped,
        timed_out=timed_out,
        skipped=skipped,
    )


async def _start(
    arguments: Sequence[str], folder: Path, confine: Confine
) -> asyncio.subprocess.Process:
    command = [
        find_ripgrep(),
        "--no-config",
        "--hidden",
        "--no-require-git",
        "--no-messages",
        "--color=never",
        *arguments,
        *(f"--glob=!{name}" for name in (".git", ".hg", ".svn", ".jj")),
    ]
    environ = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
    try:
        return await start_confined(
            confine,
            command,
            environ,
            str(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            limit=_CHUNK,
        )
    except OSError as error:
        if error.errno == errno.E2BIG:
            raise WorkspaceError(
                "the search is not possible: the pattern is too long", advice="shorten it"
            ) from error
        raise WorkspaceError(
            f"ripgrep cannot be started in {folder}: {describe_os_error(error)}"
        ) from error


def _endless_file_options(folder: Path) -> Sequence[str]:
    """Return options that disable the kinds of ignore files that never end above a folder.

    Raises:
        WorkspaceError: an ignore file in the folder itself never ends.
    """
    path = endless_file(folder, RIPGREP_IGNORE_FILES)
    if path:
        raise endless_error(path)
    # A file above the folder may belong to another user and must not break every search, so its
    # kind is disabled. `--no-ignore-parent` does not help: ripgrep still opens the file.
    return [
        option
        for names, option in _DISABLING_OPTIONS.items()
        if any(endless_file(parent, names) for parent in folder.parents)
    ]


async def _read_records(
    reader: asyncio.StreamReader, separator: bytes, on_record: Callable[[bytes], bool]
) -> tuple[bool, int, bool]:
    """Pass on records.

    Returns:
        Whether `on_record` stopped, how many records were too long, and whether these were so long
        that the others were not read.
    """
    skipped = skipped_size = 0
    remainder = b""
    too_long = False
    while chunk := await reader.read(_CHUNK):
        *records, remainder = (remainder + chunk).split(separator)
        if records and too_long:
            del records[0]
            too_long = False
        if not all(map(on_record, records)):
            return True, skipped, False
        await asyncio.sleep(0)  # `read` does not let others run while there is data
        if too_long or len(remainder) > _MAX_RECORD:
            skipped += not too_long
            skipped_size += len(remainder)
            too_long = True
            remainder = b""
            if skipped_size > _MAX_SKIPPED:
                return False, skipped, True
    if remainder and not too_long:
        on_record(remainder)
    return False, skipped, False


class MatchLine(Struct, frozen=True, kw_only=True):
    """A matching line or a context line. `name` is relative to the searched folder."""

    name: str
    number: int
    text: str
    matched: bool


class _Text(Struct, frozen=True):
    """Text, or base64 if it is not UTF-8."""

    text: str | None = None
    coded: str | None = field(name="bytes", default=None)

    @property
    def raw(self) -> bytes:
        return base64.b64decode(self.coded) if self.coded else os.fsencode(self.text or "")


class _Span(Struct, frozen=True):
    start: int


class _Data(Struct, frozen=True):
    path: _Text = _Text()
    lines: _Text = _Text()
    line_number: int | None = None
    submatches: tuple[_Span, ...] = ()


class _Message(Struct, frozen=True):
    """A JSON message of type `match`, `context`, `begin`, `end` or `summary`."""

    type: str
    data: _Data


_MESSAGES = json_decoder(_Message)


def decode_lines(record: bytes, *, width: int) -> list[MatchLine]:
    """Return the lines in one message; a match may span several.

    Each line is cut to `width` characters around its first match.
    """
    message = _MESSAGES.decode(record)
    if message.type not in ("match", "context"):
        return []
    data = message.data
    raw = data.lines.raw
    start = data.submatches[0].start if data.submatches else 0
    start = len(raw[:start].decode("utf-8", "replace"))
    name = os.fsdecode(data.path.raw.removeprefix(b"./"))
    first = data.line_number or 0
    text = raw.decode("utf-8", "replace").removesuffix("\n")
    return [
        MatchLine(
            name=name,
            number=number,
            text=_cut(line.removesuffix("\r"), start if number == first else 0, width),
            matched=message.type == "match",
        )
        for number, line in enumerate(text.split("\n"), first)
    ]


def _cut(line: str, start: int, width: int) -> str:
    if len(line) <= width:
        return line
    first = max(0, min(start - _CONTEXT_LENGTH, len(line) - width))
    before = "…" if first else ""
    after = "…" if first + width < len(line) else ""
    return f"{before}{line[first : first + width]}{after}"
