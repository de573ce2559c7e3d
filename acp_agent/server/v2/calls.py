"""Tool calls and the terminals of their commands, as updates with what changed.

Source: Agent Client Protocol v2, Tool Calls.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Sequence
from typing import Any

from msgspec import UNSET, UnsetType

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import CallContent, Location, escaped, text_part
from acp_agent.events import (
    BackgroundCommandChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.conversion import raw_input
from acp_agent.server.notices import CUT_CALL
from acp_agent.server.v2.conversion import convert_part, to_call_content, to_locations
from acp_agent.tools.quoting import code_block
from protocol.v2 import types as acp

_REPLACEMENT = "\ufffd".encode()


class _OpenCall:
    """What the client was sent about an open call."""

    def __init__(self, event: ToolCalled, arguments: Any) -> None:
        self.command = find_command(arguments)
        self.content = event.content
        self.locations = event.locations
        self.title = event.title
        self.children: list[acp.ToolCallContent] = []  # references to child sessions
        self.terminal: acp.TerminalUpdate | None = None  # as it started, if it has one
        self.in_background = False  # its command runs in the background
        self.exited = False  # its command ended before the call


class Calls:
    """The open calls of a session."""

    def __init__(self, translate: Translator = ENGLISH) -> None:
        self._translate = translate
        self._open: dict[CallId, _OpenCall] = {}
        self._background: dict[CallId, acp.TerminalUpdate] = {}  # terminals, as they started

    def show_call(self, event: ToolCalled) -> Sequence[acp.SessionUpdate]:
        """Show a new call, which the user can cancel while it is open."""
        arguments = raw_input(event.arguments)
        self._open[event.call] = _OpenCall(event, arguments)
        return [
            acp.ToolCallProgress(
                tool_call_id=event.call,
                title=event.title,
                name=event.name,
                kind=event.kind,
                status="pending",
                content=to_call_content(event.content) if event.content else UNSET,
                locations=to_locations(event.locations) if event.locations else UNSET,
                raw_input=arguments,
                capabilities=acp.ToolCallCapabilities(cancel=acp.ToolCallCancelCapabilities()),
            )
        ]

    def start_call(self, event: ToolStarted) -> Sequence[acp.SessionUpdate]:
        """Show that a call runs. A command's call shows only its terminal."""
        call = self._open.get(event.call)
        if event.cwd is None or call is None:
            return [acp.ToolCallProgress(tool_call_id=event.call, status="in_progress")]
        call.terminal = terminal_started(event, event.command or call.command)
        return [
            call.terminal,
            acp.ToolCallProgress(
                tool_call_id=event.call,
                status="in_progress",
                content=[acp.Terminal(terminal_id=event.call)],
            ),
        ]

    def add_output(self, event: ToolOutput) -> Sequence[acp.SessionUpdate]:
        """Show output: in the terminal, or as content of a call without one."""
        call = self._open.get(event.call)
        if call is None or call.terminal is not None:
            return [terminal_output(event)]
        return self._content_updates(
            event.call, call, (*call.content, text_part(code_block(escaped(event.text), "console")))
        )

    def update_call(self, event: ToolShown) -> Sequence[acp.SessionUpdate]:
        """Show new content of a call: append what was added, replace what changed."""
        call = self._open.get(event.call)
        if call is None:
            return []
        content = call.content if event.content is None else event.content
        title: str | UnsetType = UNSET
        if event.title is not None and event.title != call.title:
            title = call.title = event.title
        return self._content_updates(event.call, call, content, event.locations, title=title)

    def refer(self, call: CallId, child: SessionId) -> Sequence[acp.SessionUpdate]:
        """Show a reference to a child session in an open call."""
        open_call = self._open.get(call)
        if open_call is None:
            return []
        reference = acp.SessionReference(session_id=child)
        open_call.children.append(reference)
        return [acp.ToolCallContentChunk(tool_call_id=call, content=reference)]

    def end_call(self, event: ToolEnded) -> Sequence[acp.SessionUpdate]:
        """Show that a call and its command ended, so that neither can be cancelled."""
        call = self._open.pop(event.call, None)
        status = "completed"
        if event.failed:
            status = "cancelled" if event.cancelled else "failed"
        updates: list[acp.SessionUpdate] = []
        content: list[acp.ToolCallContent] | None = None
        if call is not None and call.in_background:
            pass  # its terminal stays live
        elif call is not None and call.terminal is not None:
            if not call.exited:
                updates.append(terminal_exited(event))
            ended_by_itself = event.exit_code is not None or event.signal is not None
            if event.content and (not ended_by_itself or len(event.content) > 1):
                # The terminal shows the output alone, which is the first part.
                further_content = to_call_content(
                    event.content[1:] if ended_by_itself else event.content
                )
                content = [acp.Terminal(terminal_id=event.call), *further_content]
        elif event.content is not None and (call is None or event.content != call.content):
            content = [*to_call_content(event.content), *(call.children if call else ())]
        moved = event.locations is not None and (call is None or event.locations != call.locations)
        updates.append(
            acp.ToolCallProgress(
                tool_call_id=event.call,
                status=status,
                content=UNSET if content is None else content,
                locations=to_locations(event.locations or ()) if moved else UNSET,
                raw_output=UNSET if event.raw_output is None else event.raw_output,
                capabilities=None,
            )
        )
        return updates

    def missed_updates(self) -> Sequence[acp.SessionUpdate]:
        """Return the terminals of background commands as they started."""
        return tuple(self._background.values())

    def cut(self, call: CallId) -> Sequence[acp.SessionUpdate]:
        """Show that a call was cut off with its turn. Does nothing if it had ended.

        Its content stays: a diff may have been applied.
        """
        open_call = self._open.pop(call, None)
        if open_call is None:
            return []
        reason = acp.ToolCallContentChunk(
            tool_call_id=call, content=convert_part(text_part(self._translate(CUT_CALL)))
        )
        failed = acp.ToolCallProgress(tool_call_id=call, status="failed", capabilities=None)
        runs = (
            open_call.terminal is not None and not open_call.in_background and not open_call.exited
        )
        return [terminal_lost(call), reason, failed] if runs else [reason, failed]

    def background(self, event: BackgroundCommandChanged) -> Sequence[acp.SessionUpdate]:
        """Show that a command continues in the background, or ended there."""
        call = self._open.get(event.call)
        if event.status == "running":
            if call is not None and call.terminal is not None:
                call.in_background = True
                self._background[event.call] = call.terminal
            return []
        self._background.pop(event.call, None)
        if call is not None:
            call.in_background, call.exited = False, True
        return [terminal_exited(event)]

    def cut_all(self) -> Sequence[acp.SessionUpdate]:
        """Show that all open calls were cut off with the turn."""
        return [update for call in tuple(self._open) for update in self.cut(call)]

    def _content_updates(
        self,
        name: CallId,
        call: _OpenCall,
        content: tuple[CallContent, ...],
        locations: tuple[Location, ...] | None = None,
        *,
        title: str | UnsetType = UNSET,
    ) -> Sequence[acp.SessionUpdate]:
        before, call.content = call.content, content
        moved = locations is not None and locations != call.locations
        call.locations = call.locations if locations is None else locations
        added = -1  # it is something else, or the first that is shown
        if content == before or call.terminal is not None:  # which shows all that there is
            added = 0
        elif before and content[: len(before)] == before:
            added = len(content) - len(before)
        updates: list[acp.SessionUpdate] = []
        if added < 0 or moved or title is not UNSET:
            updates.append(
                acp.ToolCallProgress(
                    tool_call_id=name,
                    title=title,
                    content=[*to_call_content(content), *call.children] if added < 0 else UNSET,
                    locations=to_locations(call.locations) if moved else UNSET,
                )
            )
        updates += [
            acp.ToolCallContentChunk(tool_call_id=name, content=convert_part(part))
            for part in content[len(content) - max(added, 0) :]
        ]
        return updates


def find_command(arguments: Any) -> str | None:  # what came as JSON
    """Return the command line in a call's arguments, if there is one."""
    command = arguments.get("command") if isinstance(arguments, dict) else None
    return command if isinstance(command, str) else None


def terminal_started(event: ToolStarted, command: str | None) -> acp.TerminalUpdate:
    """Return the new terminal of a call's command, which can be cancelled by itself."""
    return acp.TerminalUpdate(
        terminal_id=event.call,
        command=UNSET if command is None else command,
        cwd=UNSET if event.cwd is None else event.cwd,
        capabilities=acp.TerminalCapabilities(cancel=acp.TerminalCancelCapabilities()),
    )


def terminal_output(event: ToolOutput) -> acp.TerminalOutputChunk:
    """Return a command's output."""
    return acp.TerminalOutputChunk(
        terminal_id=event.call,
        data=b64encode(terminal_bytes(event.text, event.invalid)).decode("ascii"),
    )


def terminal_bytes(text: str, invalid: bytes = b"") -> bytes:
    """Return a command's output as the bytes for a terminal.

    Args:
        invalid: the bytes of the U+FFFD in it; see `ToolOutput`. Ignored unless their number fits.
    """
    text = text.replace("\n", "\r\n")
    if not invalid or text.count("\ufffd") != len(invalid):
        return text.encode("utf-8", "replace")
    first, *segments = text.split("\ufffd")
    pieces = [first.encode("utf-8", "replace")]
    for byte, piece in zip(invalid, segments, strict=True):
        pieces += (bytes((byte,)) if byte else _REPLACEMENT, piece.encode("utf-8", "replace"))
    return b"".join(pieces)


def terminal_exited(event: ToolEnded | BackgroundCommandChanged) -> acp.TerminalUpdate:
    """Return the end of a command, or its loss."""
    return _exit(event.call, acp.TerminalExitStatus(exit_code=event.exit_code, signal=event.signal))


def terminal_lost(call: CallId) -> acp.TerminalUpdate:
    """Return the end of a command that ended with the agent; how is unknown."""
    return _exit(call, acp.TerminalExitStatus())


def _exit(call: CallId, status: acp.TerminalExitStatus) -> acp.TerminalUpdate:
    return acp.TerminalUpdate(terminal_id=call, exit_status=status, capabilities=None)
