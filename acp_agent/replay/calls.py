"""The tools of a replay: they prepare calls in its folder and get results from the record.

File changes are also made in the replay's folder, so that their results are compared. Nothing else
runs.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import re
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from pydantic import BaseModel

from acp_agent.content import ContentPart, DiffPart, ImageBlock, Location, TextBlock
from acp_agent.errors import AcpAgentError, ToolError
from acp_agent.events import (
    AgentText,
    AnyEvent,
    BackgroundCommandChanged,
    ServerTool,
    ToolOutput,
    ToolShown,
    UserMessage,
)
from acp_agent.permissions.access import Access, NoAccess, ReadAccess, WriteAccess
from acp_agent.replay.absent_tools import absent_tools, server_tool
from acp_agent.replay.hooks import changed_arguments, was_hooked, without_hook_text
from acp_agent.replay.script import Call, Script
from acp_agent.tools.base import (
    AnyTool,
    CommandEnd,
    Outcome,
    Prepared,
    Progress,
    Tool,
)
from acp_agent.tools.confined_shell import ConfinedShellTool
from acp_agent.tools.toolset import Toolset
from acp_agent.workspace.background_commands import BackgroundCommand

# The runner adds this.
_IGNORED_FIELDS_NOTE = re.compile(r"\n\[ignored, no such fields: [^\n]*\]\Z")
_SESSION_ONLY_TOOLS = ("todo",)  # tools that run because they only change the session


class RecordedCalls:
    """The calls of a record, matched with calls of the replay.

    Args:
        folder: the folder of the replay; nothing is written outside of it.
        stop_turn: stops the turn during a call as the user did.
        steer: sends a steering message like the recorded user.
        reversible: whether checkpoints could undo the effects of commands.
        server_tools: the tools of MCP servers.
    """

    def __init__(
        self,
        script: Script,
        folder: Path,
        stop_turn: Callable[[Call], Awaitable[None]],
        steer: Callable[[UserMessage], Awaitable[None]],
        *,
        reversible: bool,
        server_tools: Sequence[ServerTool] = (),
    ) -> None:
        self._calls = script.calls
        self._server_tools = server_tools
        self._folder = folder
        self._tools: Toolset | None = None
        self.stop_turn = stop_turn
        self.steer = steer
        self.reversible = reversible
        self._background: dict[str, tuple[Progress, BackgroundCommand]] = {}

    async def start_background(
        self, event: BackgroundCommandChanged, tool: AnyTool, progress: Progress
    ) -> None:
        """Register a background command; nothing runs."""
        command = tool.workspace.background.new(progress.call, event.command)
        self._background[event.call] = progress, command
        await progress.moved_to_background(event.name, event.command)

    async def end_background(self, event: BackgroundCommandChanged) -> None:
        """End a background command with the recorded result."""
        if event.call not in self._background:
            return  # its call differs from the record
        progress, command = self._background.pop(event.call)
        command.mark_ended()
        await progress.background_ended(
            CommandEnd(
                exit_code=event.exit_code,
                signal=event.signal,
                timed_out=event.timed_out,
                stopped=event.stopped,
                lost=event.status == "lost",
                reported=event.heard,
            )
        )

    def adapt(self, tools: Toolset) -> Toolset:
        """Return the same tools, with results from the record."""
        workspace = tools.get("read").workspace
        offered = [server_tool(workspace, tool) for tool in self._server_tools]
        tools = tools.with_tools(offered)
        unknown = [call for call in self._calls if not _has_tool(tools, call.event.name)]
        complete = tools.with_tools(absent_tools(unknown, workspace))
        adapted = complete.replaced(lambda tool: _adapt_tool(tool, self))
        self._tools = adapted.replaced(lambda tool: tool)  # counts ignored fields separately
        return adapted

    def find(self, tool: AnyTool, params: BaseModel) -> Call:
        """Return the first unused recorded call of a tool with the same arguments.

        Raises:
            ToolError: there is none.
        """
        for call in self._calls:
            if not call.used and self._matches(call, tool, params):
                return call
        raise ToolError("the record has no such call; nothing ran")

    def _matches(self, call: Call, tool: AnyTool, params: BaseModel) -> bool:
        assert self._tools is not None
        for arguments in (call.event.arguments, *changed_arguments(call)):
            with suppress(ToolError):
                resolved = self._tools.resolve(call.event.name, arguments)
                if resolved.tool.name == tool.name and resolved.params == params:
                    return True
        return False

    def restore_files(self, call: Call) -> None:
        """Restore the recorded text of the files that a call changed or read. Blocks."""
        if call.event.kind == "read" and call.end is not None and not call.end.failed:
            for location in _locations(call):
                path = self._folder / location.path
                if path.resolve().is_relative_to(self._folder) and not path.exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.touch()  # the file's place determines which instructions apply to it
        for diff in _diffs(call):
            path = self._folder / diff.path
            if not path.resolve().is_relative_to(self._folder):
                continue
            if diff.old_text is None:
                path.unlink(missing_ok=True)
                continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if not path.is_file() or path.read_text("utf-8", "replace") != diff.old_text:
                path.write_text(diff.old_text, "utf-8", newline="")


def _has_tool(tools: Toolset, name: str) -> bool:
    """Return whether a tool has this name or alias."""
    try:
        tools.get(name)
    except ToolError:
        return False
    return True


def _locations(call: Call) -> Sequence[Location]:
    """Return the locations that a call showed."""
    events: list[AnyEvent] = [call.event, *call.setup_events]
    return [location for event in events for location in getattr(event, "locations", None) or ()]


def _diffs(call: Call) -> list[DiffPart]:
    """Return the changes that a call showed first."""
    events: list[AnyEvent] = [call.event, *call.setup_events, *call.run_events]
    for event in events:
        content = getattr(event, "content", None) or ()
        diffs = [part for part in content if isinstance(part, DiffPart)]
        if diffs:
            return diffs
    return []


class _RecordedTool(Tool[Any]):
    """A mixin that makes a tool use recorded results."""

    recorded: RecordedCalls

    async def prepare(self, params: BaseModel) -> Prepared:
        """Prepare the call in the replay's folder; its result comes from the record."""
        call = self.recorded.find(self, params)
        if call.end is not None and call.end.cancelled and not (call.started or call.question):
            if call.stopped_turn:
                await self.recorded.stop_turn(call)
            await asyncio.Event().wait()  # until the turn is cancelled
        await asyncio.to_thread(self.recorded.restore_files, call)
        was_prepared = call.started or call.decision or call.question or was_hooked(call)
        failed = None if was_prepared else call.end
        try:
            prepared = await super().prepare(params)  # type: ignore[safe-super] # of the tool's class
        except AcpAgentError as error:
            if failed is not None and str(error) != failed.result:
                raise _recorded_error(call) from error
            if failed is not None:
                raise
            shown = [event for event in call.setup_events if isinstance(event, ToolShown)]
            prepared = Prepared(
                title=next((event.title for event in shown if event.title), call.event.title),
                run=_cannot_run,
                access=self._access(params),
                content=next((event.content for event in shown if event.content), ()),
                locations=next((event.locations for event in shown if event.locations), ()),
            )
        if failed is not None:
            raise _recorded_error(call)
        return replace(prepared, run=functools.partial(self._run_recorded, call, prepared))

    def _access(self, params: BaseModel) -> Access:
        """Return the access of a call whose files the record does not have."""
        touches = self.touches(params)
        if touches.writes:
            return WriteAccess(touches.writes)
        return ReadAccess(touches.reads) if touches.reads else NoAccess()

    async def _run_recorded(self, call: Call, prepared: Prepared, progress: Progress) -> Outcome:
        call.used = True
        for event in call.run_events:
            match event:
                case ToolOutput():
                    await progress.output(event.text)
                case ToolShown():
                    await progress.show(
                        title=event.title, content=event.content, locations=event.locations
                    )
                case UserMessage():
                    await self.recorded.steer(event)
                case AgentText():
                    await progress.say(event.text)
                case BackgroundCommandChanged() if event.status == "running":
                    await self.recorded.start_background(event, self, progress)
                case BackgroundCommandChanged():
                    await self.recorded.end_background(event)
        if call.stopped_turn:
            await self.recorded.stop_turn(call)
            await asyncio.Event().wait()  # until the turn is cancelled
        recorded = _outcome(call)
        if not recorded.failed and prepared.run is not _cannot_run:
            changes = isinstance(prepared.access, WriteAccess) or self.name in _SESSION_ONLY_TOOLS
            if changes:
                actual = await prepared.run(progress)
                # Detected problems may follow the text.
                if not recorded.text.startswith(actual.text):
                    return actual
        return recorded


async def _cannot_run(_: Progress) -> Outcome:
    raise ToolError("the record does not have the files of this call")


def _adapt_tool(tool: AnyTool, recorded: RecordedCalls) -> AnyTool:
    """Return a copy of a tool that gets its results from the record."""
    tool_class = type(tool)
    # The tool's description is found next to its module.
    attributes = {"__module__": tool_class.__module__}
    adapted = copy.copy(tool)
    adapted.__class__ = type(tool_class.__name__, (_RecordedTool, tool_class), attributes)
    assert isinstance(adapted, _RecordedTool)
    adapted.recorded = recorded
    if isinstance(adapted, ConfinedShellTool):
        adapted.count_as_reversible(recorded.reversible)
    return adapted


def _recorded_error(call: Call) -> ToolError:
    assert call.end is not None
    texts = [
        part.content.text
        for part in call.end.content or ()
        if isinstance(part, ContentPart) and isinstance(part.content, TextBlock)
    ]
    return ToolError(without_hook_text(call, call.end.result), shown="".join(texts))


def _outcome(call: Call) -> Outcome:
    end = call.end
    if end is None:
        return Outcome(text="The record ends before this call did.", failed=True)
    content = end.content
    if content and any(answered.answer.get("blocked") for answered in call.hook_answers):
        content = content[:-1]  # the hook's reason, which is added again
    return Outcome(
        text=_IGNORED_FIELDS_NOTE.sub("", without_hook_text(call, end.result)),
        failed=end.failed,
        images=tuple(image for image in end.images if isinstance(image, ImageBlock)),
        content=content,
        locations=end.locations,
        raw_output=end.raw_output,
        exit_code=end.exit_code,
        signal=end.signal,
        end_turn=call.ends_turn,
    )
