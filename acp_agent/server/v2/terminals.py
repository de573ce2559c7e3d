"""Commands as terminals that the agent owns and the client only shows.

A call that runs a command has one terminal, whose id is the call's; it stays live where the command
goes on behind the call. The protocol wants the bytes
that a terminal would be sent. What the journal keeps of a command is text, with the bytes beside it
that are not UTF-8, without the escape sequences that steer a terminal and without secrets
(`workspace.output`, `workspace.scrub`). Its bytes are those, with the line ends that a terminal
makes of the ones of a program (POSIX, General Terminal Interface, ONLCR); without them each line of
an emulator would begin where the one before it ended. No chunk splits a character.

Source: Agent Client Protocol v2, Tool Calls, Display-only Terminals.
"""

from __future__ import annotations

from base64 import b64encode
from typing import Any

from msgspec import UNSET

from acp_agent.events import BackgroundCommandChanged, ToolEnded, ToolOutput, ToolStarted
from acp_agent.ids import CallId
from protocol.v2 import types as acp

_REPLACED = "\ufffd".encode()


def command_of(arguments: Any) -> str | None:  # what came as JSON
    """The command line in a call's arguments; None where there is none."""
    command = arguments.get("command") if isinstance(arguments, dict) else None
    return command if isinstance(command, str) else None


def begun(event: ToolStarted, command: str | None) -> acp.TerminalUpdate:
    """The command of a call runs from now on, and can be stopped alone."""
    return acp.TerminalUpdate(
        terminal_id=event.call,
        command=UNSET if command is None else command,
        cwd=UNSET if event.cwd is None else event.cwd,
        capabilities=acp.TerminalCapabilities(cancel=acp.TerminalCancelCapabilities()),
    )


def output(event: ToolOutput) -> acp.TerminalOutputChunk:
    """The command wrote."""
    return acp.TerminalOutputChunk(
        terminal_id=event.call,
        data=b64encode(terminal_bytes(event.text, event.invalid)).decode("ascii"),
    )


def terminal_bytes(text: str, invalid: bytes = b"") -> bytes:
    """A command's output as a terminal is sent it.

    Args:
        text: the output.
        invalid: what the U+FFFD in it stand for; see `ToolOutput`. It counts only where it has a
            byte for each.
    """
    text = text.replace("\n", "\r\n")
    if not invalid or text.count("\ufffd") != len(invalid):
        return text.encode("utf-8", "replace")
    first, *rest = text.split("\ufffd")
    pieces = [first.encode("utf-8", "replace")]
    for byte, piece in zip(invalid, rest, strict=True):
        pieces += (bytes((byte,)) if byte else _REPLACED, piece.encode("utf-8", "replace"))
    return b"".join(pieces)


def exited(event: ToolEnded) -> acp.TerminalUpdate:
    """The command ended, in whichever way."""
    return _exit(event.call, acp.TerminalExitStatus(exit_code=event.exit_code, signal=event.signal))


def background_exited(event: BackgroundCommandChanged) -> acp.TerminalUpdate:
    """A command that went on behind its call ended, or was lost."""
    return _exit(event.call, acp.TerminalExitStatus(exit_code=event.exit_code, signal=event.signal))


def lost(call: CallId) -> acp.TerminalUpdate:
    """The command ended with the agent, and nobody knows how."""
    return _exit(call, acp.TerminalExitStatus())


def _exit(call: CallId, status: acp.TerminalExitStatus) -> acp.TerminalUpdate:
    return acp.TerminalUpdate(terminal_id=call, exit_status=status, capabilities=None)
