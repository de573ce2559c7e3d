"""The tool calls of one answer: validate, judge, ask, run, report.

Calls that do not concern each other run side by side. One that touches what an earlier one touches
waits for that one to end, and is not even prepared before, so that it sees what the earlier one
did. The user is asked about one call at a time, in the order of the calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from pydantic import BaseModel

from acp_agent.agent.answer import ProposedCall
from acp_agent.agent.call_order import Place
from acp_agent.agent.call_permissions import CallPermissions
from acp_agent.agent.cleaning import clean_content, clean_object
from acp_agent.agent.endings import (
    cancelled,
    stopped,
)
from acp_agent.agent.labels import label
from acp_agent.agent.progress import CallProgress
from acp_agent.agent.resources import TurnResources
from acp_agent.content import DiffPart, text_part
from acp_agent.errors import (
    AcpAgentError,
    StoreError,
)
from acp_agent.events import (
    ToolEnded,
    ToolShown,
    ToolStarted,
)
from acp_agent.permissions.access import Allow, CommandAccess, NoAccess
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.tools.base import EVERYTHING, NOTHING, AnyTool, Outcome, Prepared, limit_result
from acp_agent.tools.file_changes import refuse_hidden
from acp_agent.workspace.scrub import scrub

_log = logging.getLogger(__name__)


class CallRunner:
    """Runs the calls of one answer, each in a task of its own, so that it can be stopped alone."""

    def __init__(self, turn: TurnResources) -> None:
        self._turn = turn
        self._running = asyncio.Semaphore(turn.limits.max_concurrent_calls)
        self._end_turn = False
        self._permissions = CallPermissions(turn)

    async def run(self, calls: Sequence[ProposedCall]) -> bool:
        """Run all calls; each has ended when this returns or is cancelled.

        Returns:
            Whether the turn is to end here: a tool asked for it, to let the user answer, or the
            user refused a call and the settings say so.
        """
        for call in calls:
            self._turn.tools.open_calls.add(call.call)
        places: list[Place] = []
        for call in calls:
            places.append(Place(call, places))
        try:
            # All tasks are there from the beginning: one that still waits can be stopped at once.
            async with asyncio.TaskGroup() as group:
                for place in places:
                    group.create_task(self._take(place))
        except BaseExceptionGroup as failures:
            await self._close_open(calls)
            raise failures.exceptions[0] from failures
        except asyncio.CancelledError:
            await self._close_open(calls)
            raise
        return self._end_turn or self._permissions.end_turn

    async def _take(self, place: Place) -> None:
        """All of one call. It ends alone where the user stops it; the turn's end goes further."""
        call, task = place.call, asyncio.current_task()
        assert task is not None
        try:
            if not self._turn.tools.open_calls.runs_in(call.call, task):
                await self._end_stopped(call)
                return
            prepared = await self._prepare(place)
            if prepared is not None:
                place.judged.set()
                async with self._running:
                    await self._execute(call, prepared)
        except asyncio.CancelledError:
            if not self._turn.tools.open_calls.was_stopped(call.call):
                raise
            await self._end_stopped(call)
        finally:
            place.leave()

    async def _end_stopped(self, call: ProposedCall) -> None:
        if self._turn.tools.open_calls.remove(call.call):
            await self._turn.journal.emit(stopped(call.call))

    async def _close_open(self, calls: Sequence[ProposedCall]) -> None:
        """End what did not end by itself; the editor must not show a call running for ever."""
        removed = [call.call for call in calls if self._turn.tools.open_calls.remove(call.call)]
        await self._turn.journal.emit(*cancelled(removed))

    async def _prepare(self, place: Place) -> Prepared | None:
        """Everything before the call may run. None: it ended here."""
        call = place.call
        try:
            tool, params = await self._declare(place)
            await place.unhindered()
            prepared = await tool.prepare(params)
            for part in prepared.content:
                if isinstance(part, DiffPart):
                    await asyncio.to_thread(refuse_hidden, part, self._turn.journal.secrets)
            await self._show(call, prepared)
            prepared = await self._permissions.ask_for(place, tool, prepared)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a tool that breaks must not end the turn
            await self._failed(call, error)
        else:
            return prepared
        return None

    async def _declare(self, place: Place) -> tuple[AnyTool, BaseModel]:
        """Find out what the call touches, once the calls before it have said what they do.

        Where a path leads is looked up behind the calls that may change that: those that touch
        everything.

        Raises:
            ToolError: there is no such tool, or the arguments are wrong.
        """
        await place.behind_what_may_do_all()
        toolset, call = self._turn.tools.toolset, place.call
        tool = toolset.get(call.name)
        params = toolset.validate(tool, call.arguments)
        try:
            touches = tool.touches(params)
            if touches.unless_granted and await self._is_trusted(tool, params):
                touches = NOTHING
        except AcpAgentError:
            touches = EVERYTHING  # it will fail when it is prepared, and say why
        place.declare(touches)
        return tool, params

    async def _is_trusted(self, tool: AnyTool, params: BaseModel) -> bool:
        """Whether the user has allowed the tool for good."""
        verdict = await self._permissions.judge(await tool.prepare(params))
        return isinstance(verdict, Allow) and verdict.by == "grant"

    async def _show(self, call: ProposedCall, prepared: Prepared) -> None:
        shown, _ = label(self._turn.tools.toolset, call.name, call.arguments)
        title = prepared.title if prepared.title != shown else None
        content = clean_content(prepared.content, self._turn.journal.secrets) or None
        locations = prepared.locations or None
        if title is not None or content is not None or locations is not None:
            await self._turn.journal.emit(
                ToolShown(call=call.call, title=title, content=content, locations=locations)
            )

    async def _execute(self, call: ProposedCall, prepared: Prepared) -> None:
        if isinstance(prepared.access, NoAccess):
            await self._run(call, prepared)
            return
        async with self._turn.tools.slot():
            await self._run(call, prepared)

    async def _run(self, call: ProposedCall, prepared: Prepared) -> None:
        access = prepared.access if isinstance(prepared.access, CommandAccess) else None
        cwd = None if access is None else access.cwd
        stop = None if cwd is None else self._turn.tools.open_calls.has_command(call.call)
        await self._turn.tools.save_files(prepared.access)
        await self._turn.journal.emit(ToolStarted(call=call.call, cwd=cwd))
        only_reads = access is not None and access.only_reads
        progress = CallProgress(
            self._turn.journal, self._turn.user, call.call, stop, only_reads=only_reads
        )
        try:
            outcome = await prepared.run(progress)
            await progress.flush()
            ended = await self._ended(call, outcome)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a tool that breaks must not end the turn
            await self._failed(call, error)
        else:
            self._end_turn = self._end_turn or outcome.end_turn
            self._turn.tools.open_calls.remove(call.call)
            await self._turn.journal.emit(ended)

    async def _ended(self, call: ProposedCall, outcome: Outcome) -> ToolEnded:
        """What a call gave, without secrets and no longer than a model takes."""
        turn = self._turn
        text = scrub(outcome.text, turn.journal.secrets)
        return ToolEnded(
            call=call.call,
            failed=outcome.failed,
            result=await limit_result(text, turn.tools.workspace.outputs, call.call),
            images=outcome.images,
            content=clean_content(outcome.content, turn.journal.secrets),
            locations=outcome.locations,
            raw_output=clean_object(outcome.raw_output, turn.journal.secrets),
            exit_code=outcome.exit_code,
            signal=outcome.signal,
            wrote=outcome.wrote,
        )

    async def _failed(self, call: ProposedCall, error: Exception) -> None:
        """End a call that failed, and go on; but not where it failed because the turn is stopped.

        Something that is cancelled may break on its way out, and so hide that it was.
        """
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from error
        limited = explain_descriptor_limit(error)
        if isinstance(error, AcpAgentError) or limited is not None:
            shown = error.shown if isinstance(error, AcpAgentError) else ""
            await self._fail(call, limited or str(error), shown=limited or shown)
            return
        # The model and the user are told that it broke; the details are for the log.
        _log.error("tool %s broke in call %s", call.name, call.call, exc_info=error)
        await self._fail(
            call, f"The tool {call.name} broke; the log has the details under {call.call}."
        )

    async def _fail(self, call: ProposedCall, why: str, *, shown: str = "") -> None:
        """End a call that failed: `why` is for the model, and for the user where `shown` is ""."""
        why, shown = (scrub(text, self._turn.journal.secrets) for text in (why, shown or why))
        self._turn.tools.open_calls.remove(call.call)
        await self._turn.journal.emit(
            ToolEnded(call=call.call, failed=True, result=why, content=(text_part(shown),))
        )
