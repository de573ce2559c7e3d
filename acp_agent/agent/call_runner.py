"""Run the tool calls of one answer: validate, prepare, check permission, run, record the result.

Calls that do not conflict run at the same time. A call that conflicts with an earlier call is
prepared after that call has ended, so that it sees the changes. The user is asked about one call at
a time, in the order of the calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from msgspec import json
from msgspec.structs import replace
from pydantic import BaseModel

from acp_agent.agent.call_permissions import CallPermissions
from acp_agent.agent.call_progress import CallProgress
from acp_agent.agent.edit_reports import EditReports
from acp_agent.agent.folder_instructions import FolderInstructions
from acp_agent.agent.resources import TurnResources
from acp_agent.agent.scrub_events import scrub_content, scrub_object
from acp_agent.agent.tool_calls import STOPPED_RESULT, ProposedCall, cancelled_ends
from acp_agent.content import DiffPart, text_part
from acp_agent.errors import AcpAgentError, StoreError
from acp_agent.events import ToolEnded, ToolShown, ToolStarted
from acp_agent.permissions.access import Allow, CommandAccess, NoAccess
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.tools.base import (
    ALL_FILES_READ,
    EVERYTHING,
    NOTHING,
    AnyTool,
    Outcome,
    Prepared,
    Touches,
    conflict,
    limit_result,
)
from acp_agent.tools.calls.argument_json import read_arguments
from acp_agent.tools.calls.effective_calls import changed_params
from acp_agent.tools.file_changes import refuse_hidden
from acp_agent.workspace.scrub import scrub

if TYPE_CHECKING:
    from acp_agent.agent.call_hooks import CallHooks
    from acp_agent.hooks.types import HookAnswer

_log = logging.getLogger(__name__)


class CallRunner:
    """Runs the calls of one answer. Each has its own task, so that it can be stopped alone."""

    def __init__(self, turn: TurnResources) -> None:
        self._turn = turn
        self._running = asyncio.Semaphore(turn.limits.max_concurrent_calls)
        self._end_turn = False
        self._hooks: CallHooks | None = None
        if turn.hooks is not None:
            from acp_agent.agent.call_hooks import CallHooks  # noqa: PLC0415 - if there are any

            self._hooks = CallHooks(turn, turn.hooks)
        self._permissions = CallPermissions(turn, self._hooks)
        self._edits = EditReports(turn.tools)
        self._instructions = FolderInstructions(turn)

    async def run(self, calls: Sequence[ProposedCall]) -> bool:
        """Run all calls. Every call has ended when this returns or is cancelled.

        Returns:
            True if the turn ends here: a tool waits for the user's reply, a hook ends the turn, or
            the user refused a call and the settings end the turn then.
        """
        for call in calls:
            self._turn.tools.open_calls.add(call.call)
            self._edits.add(call)
        scheduled: list[_ScheduledCall] = []
        for call in calls:
            scheduled.append(_ScheduledCall(call, scheduled))
        try:
            # All tasks are created first, so that a waiting call can be stopped too.
            async with asyncio.TaskGroup() as group:
                for entry in scheduled:
                    group.create_task(self._run_call(entry))
        except BaseExceptionGroup as failures:
            await self._close_open(calls)
            raise failures.exceptions[0] from failures
        except asyncio.CancelledError:
            await self._close_open(calls)
            raise
        if self._hooks is not None and await self._hooks.after_calls():
            self._end_turn = True
        return self._end_turn or self._permissions.end_turn

    async def _run_call(self, scheduled: _ScheduledCall) -> None:
        """Run one call until it ends. The user can stop one call; cancelling the turn stops all."""
        call, task = scheduled.call, asyncio.current_task()
        assert task is not None
        try:
            if not self._turn.tools.open_calls.set_task(call.call, task):
                await self._end_stopped(call)
                return
            prepared = await self._prepare(scheduled)
            if prepared is not None:
                scheduled.decided.set()
                async with self._running:
                    await self._execute(scheduled, prepared)
        except asyncio.CancelledError:
            if not self._turn.tools.open_calls.was_stopped(call.call):
                raise
            await self._end_stopped(call)
        finally:
            self._edits.mark_ended(call)
            scheduled.release()

    async def _end_stopped(self, call: ProposedCall) -> None:
        if self._turn.tools.open_calls.remove(call.call):
            end = ToolEnded(call=call.call, failed=True, cancelled=True, result=STOPPED_RESULT)
            await self._turn.journal.emit(end)

    async def _close_open(self, calls: Sequence[ProposedCall]) -> None:
        """End the calls that are still open, so that the editor does not show them as running."""
        removed = [call.call for call in calls if self._turn.tools.open_calls.remove(call.call)]
        await self._turn.journal.emit(*cancelled_ends(removed))

    async def _prepare(self, scheduled: _ScheduledCall) -> Prepared | None:
        """Return the call, prepared and permitted, or None if it ended before it could run."""
        call = scheduled.call
        try:
            tool, params = await self._declare(scheduled)
            await scheduled.wait_for_conflicts()
            prepared = await tool.prepare(params)
            answer = None
            if self._hooks is not None:
                answer = await self._hooks.before_call(call, tool, params, prepared.access)
                if answer.changes_call:
                    prepared = await self._reprepare(tool, params, answer)
            await self._show_checked(call, prepared)

            async def reprepare(answer: HookAnswer) -> Prepared:
                changed = await self._reprepare(tool, params, answer)
                await self._show_checked(call, changed)
                return changed

            prepared = await self._permissions.require(
                call,
                tool,
                prepared,
                answer,
                reprepare=reprepare,
                wait_to_ask=scheduled.wait_for_decisions,
            )
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a tool that breaks must not end the turn
            await self._fail_with(call, error)
        else:
            return prepared
        return None

    async def _show_checked(self, call: ProposedCall, prepared: Prepared) -> None:
        """Show a prepared call, unless its diffs hide a secret."""
        for part in prepared.content:
            if isinstance(part, DiffPart):
                await asyncio.to_thread(refuse_hidden, part, self._turn.journal.secrets)
        await self._show(call, prepared)

    async def _reprepare(self, tool: AnyTool, params: BaseModel, answer: HookAnswer) -> Prepared:
        """Prepare a call with arguments from a hook. Raises ToolError."""
        if answer.parts:
            params = changed_params(tool, params, answer.parts)
        else:
            text = json.encode(answer.arguments).decode()
            _, params, _ = self._turn.tools.toolset.resolve(tool.name, text)
        return await tool.prepare(params)

    async def _declare(self, scheduled: _ScheduledCall) -> tuple[AnyTool, BaseModel]:
        """Determine what the call touches, after all earlier calls have declared what they touch.

        Paths are resolved after the earlier calls that touch everything have ended, because those
        may change them.

        Raises:
            ToolError: there is no such tool, or the arguments are invalid.
        """
        await scheduled.wait_for_declarations()
        toolset, call = self._turn.tools.toolset, scheduled.call
        tool, params, scheduled.ignored = toolset.resolve(call.name, call.arguments)
        try:
            touches = tool.touches(params)
            if touches.unless_granted:
                verdict = await self._permissions.judge(await tool.prepare(params))
                if isinstance(verdict, Allow) and verdict.by == "grant":
                    touches = NOTHING
            elif touches.unless_only_reads:
                # The effect of a command may depend on files that an earlier call still writes.
                await scheduled.wait_for_conflicts(ALL_FILES_READ)
                verdict = await self._permissions.judge(await tool.prepare(params))
                if isinstance(verdict, Allow) and verdict.only_reads:
                    touches = ALL_FILES_READ
        except AcpAgentError:
            touches = EVERYTHING  # the preparation reports the error
        scheduled.declare(touches)
        return tool, params

    async def _show(self, call: ProposedCall, prepared: Prepared) -> None:
        current_title, _ = self._turn.tools.toolset.call_title(call.name, call.arguments)
        title = prepared.title if prepared.title != current_title else None
        content = scrub_content(prepared.content, self._turn.journal.secrets) or None
        locations = prepared.locations or None
        if title is not None or content is not None or locations is not None:
            await self._turn.journal.emit(
                ToolShown(call=call.call, title=title, content=content, locations=locations)
            )

    async def _execute(self, scheduled: _ScheduledCall, prepared: Prepared) -> None:
        needs_slot = prepared.takes_slot and not isinstance(prepared.access, NoAccess)
        async with self._turn.tools.slot() if needs_slot else nullcontext():
            await self._run(scheduled, prepared)

    async def _run(self, scheduled: _ScheduledCall, prepared: Prepared) -> None:
        call = scheduled.call
        access = prepared.access if isinstance(prepared.access, CommandAccess) else None
        cwd = None if access is None else access.cwd
        stop = None if cwd is None else self._turn.tools.open_calls.add_command(call.call)
        await self._turn.tools.save_files(prepared.access)
        command = None if access is None else self._unshown_command(call, access.command)
        await self._turn.journal.emit(ToolStarted(call=call.call, cwd=cwd, command=command))
        if self._hooks is not None:
            self._hooks.record_start(call)
        only_reads = access is not None and access.only_reads
        progress = CallProgress(
            self._turn.journal, self._turn.user, call.call, stop, only_reads=only_reads
        )
        try:
            try:
                outcome = await prepared.run(progress)
            except Exception:
                await self._turn.tools.command_diffs(prepared.access)
                raise
            await progress.flush()
            changed = await self._turn.tools.command_diffs(prepared.access)
            if changed and outcome.content is not None:
                outcome = replace(outcome, content=(*outcome.content, *changed))
            outcome = await self._edits.finish(call, prepared, outcome)
            end = await self._call_end(scheduled, prepared, outcome)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a tool that breaks must not end the turn
            await self._fail_with(call, error)
        else:
            ends_turn = outcome.end_turn
            if self._hooks is not None:
                end, hook_ends_turn = await self._hooks.after_call(call, end)
                ends_turn = ends_turn or hook_ends_turn
            self._end_turn = self._end_turn or ends_turn
            self._turn.tools.open_calls.remove(call.call)
            await self._turn.journal.emit(end)

    def _unshown_command(self, call: ProposedCall, command: str) -> str | None:
        """Return a command without secrets, or None if the call's arguments show it already."""
        try:
            is_visible = read_arguments(call.arguments).get("command") == command
        except ValueError:
            is_visible = False
        return None if is_visible else scrub(command, self._turn.journal.secrets)

    async def _call_end(
        self, scheduled: _ScheduledCall, prepared: Prepared, outcome: Outcome
    ) -> ToolEnded:
        """Return the end of a call, with its outcome without secrets and cut to the limit."""
        turn, call, text = self._turn, scheduled.call, outcome.text
        if scheduled.ignored:
            text += f"\n[ignored, no such fields: {', '.join(scheduled.ignored)[:300]}]"
        text = scrub(text, turn.journal.secrets)
        return ToolEnded(
            call=call.call,
            failed=outcome.failed,
            result=await limit_result(text, turn.tools.workspace.outputs, call.call),
            images=outcome.images,
            content=scrub_content(outcome.content, turn.journal.secrets),
            locations=outcome.locations,
            raw_output=scrub_object(outcome.raw_output, turn.journal.secrets),
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            wrote=outcome.wrote,
            instructions=await self._instructions.find_added(prepared.access),
        )

    async def _fail_with(self, call: ProposedCall, error: Exception) -> None:
        """End a call that failed, or raise CancelledError if its task is cancelled.

        A cancelled tool may raise another error during cleanup, which hides the cancellation.
        """
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from error
        limited = explain_descriptor_limit(error)
        if isinstance(error, AcpAgentError) or limited is not None:
            user_text = error.shown if isinstance(error, AcpAgentError) else ""
            await self._fail(call, limited or str(error), user_text=limited or user_text)
            return
        # The details go to the log only.
        _log.error("tool %s broke in call %s", call.name, call.call, exc_info=error)
        await self._fail(
            call, f"The tool {call.name} broke; the log has the details under {call.call}."
        )

    async def _fail(self, call: ProposedCall, why: str, *, user_text: str = "") -> None:
        """End a call that failed. The model gets `why`; the user sees `user_text` or `why`."""
        why, user_text = (
            scrub(text, self._turn.journal.secrets) for text in (why, user_text or why)
        )
        self._turn.tools.open_calls.remove(call.call)
        end = ToolEnded(call=call.call, failed=True, result=why, content=(text_part(user_text),))
        if self._hooks is not None:
            end, _ = await self._hooks.after_call(call, end)
        await self._turn.journal.emit(end)


class _ScheduledCall:
    """A call that waits for earlier calls of the same answer.

    Attributes:
        touches: what the call reads and writes, valid once `declared` is set.
        ignored: argument fields that the tool does not have; the result names them.
        declared: set when `touches` is known.
        decided: set when the call is allowed or refused.
        ended: set when the call has ended or will never start.
    """

    def __init__(self, call: ProposedCall, earlier: Sequence[_ScheduledCall]) -> None:
        self.call = call
        self._earlier = tuple(earlier)
        self.touches = EVERYTHING
        self.ignored: tuple[str, ...] = ()
        self.declared = asyncio.Event()
        self.decided = asyncio.Event()
        self.ended = asyncio.Event()

    def declare(self, touches: Touches) -> None:
        """Set what the call touches."""
        self.touches = touches
        self.declared.set()

    def release(self) -> None:
        """Release all calls that wait for this one."""
        self.declared.set()
        self.decided.set()
        self.ended.set()

    async def wait_for_declarations(self) -> None:
        """Wait until all earlier calls are declared and those that touch everything have ended.

        A call that touches everything may change where a path leads.
        """
        for call in self._earlier:
            await call.declared.wait()
            if call.touches.exclusive:
                await call.ended.wait()

    async def wait_for_conflicts(self, touches: Touches | None = None) -> None:
        """Wait until earlier calls that conflict with this call, or with `touches`, have ended."""
        for call in self._earlier:
            if conflict(call.touches, touches or self.touches):
                await call.ended.wait()

    async def wait_for_decisions(self) -> None:
        """Wait until all earlier calls are allowed or refused."""
        for call in self._earlier:
            await call.decided.wait()
