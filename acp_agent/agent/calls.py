"""The tool calls of one answer: validate, judge, ask, run, report.

Calls are taken in the order in which the model made them. One that only reads runs beside its
neighbours; one that writes waits for the reads before it, and the calls after it wait for it, so
that each call sees what the calls before it did.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from msgspec import Struct

from acp_agent.agent.answer import ProposedCall
from acp_agent.agent.cleaning import clean_content, clean_object
from acp_agent.agent.endings import DISMISSED, REJECTED, cancelled, stopped
from acp_agent.agent.host import Asking, TurnHost
from acp_agent.agent.labels import label
from acp_agent.agent.progress import CallProgress
from acp_agent.content import DiffPart, text_part
from acp_agent.errors import AcpAgentError, PermissionRefusedError, StoreError, ToolError
from acp_agent.events import (
    NoticeShown,
    PermissionAsked,
    PermissionDecided,
    ToolEnded,
    ToolShown,
    ToolStarted,
)
from acp_agent.permissions.access import CommandAccess, NoAccess, ReadAccess
from acp_agent.permissions.contract import Allow, Ask, Choice, Refuse
from acp_agent.tools.base import AnyTool, Outcome, Prepared
from acp_agent.tools.bounds import bounded
from acp_agent.tools.changes import refuse_hidden
from acp_agent.workspace.scrub import scrub

_log = logging.getLogger(__name__)


class _Place(Struct, frozen=True, eq=False):
    """A call's place in the order: `free` when it may begin, `judged` when a read may follow it."""

    call: ProposedCall
    writes: bool
    free: asyncio.Event
    judged: asyncio.Event


class CallRunner:
    """Runs the calls of one answer, each in a task of its own, so that it can be stopped alone."""

    def __init__(self, host: TurnHost) -> None:
        self._host = host
        self._readers = asyncio.Semaphore(host.limits.concurrent_reads)
        self._end_turn = False

    async def run(self, calls: Sequence[ProposedCall]) -> bool:
        """Run all calls; each has ended when this returns or is cancelled.

        Returns:
            Whether a tool asked for the turn to end here, to let the user answer.
        """
        for call in calls:
            self._host.open_calls.add(call.call)
        try:
            async with asyncio.TaskGroup() as group:
                await self._in_order(group, calls)
        except BaseExceptionGroup as failures:
            await self._close_open(calls)
            raise failures.exceptions[0] from failures
        except asyncio.CancelledError:
            await self._close_open(calls)
            raise
        return self._end_turn

    async def _in_order(self, group: asyncio.TaskGroup, calls: Sequence[ProposedCall]) -> None:
        """Let each call begin when those before it are as far as it needs them to be."""
        places = [
            _Place(call, self._writes(call.name), asyncio.Event(), asyncio.Event())
            for call in calls
        ]
        # All tasks are there from the beginning: a call that still waits can be stopped at once.
        tasks = [group.create_task(self._take(place)) for place in places]
        reading: list[asyncio.Task[None]] = []
        for place, task in zip(places, tasks, strict=True):
            if place.writes and reading:
                await asyncio.wait(reading)
                reading.clear()
            place.free.set()
            if place.writes:
                await asyncio.wait([task])
            else:
                await place.judged.wait()
                reading.append(task)

    async def _take(self, place: _Place) -> None:
        """All of one call. It ends alone where the user stops it; the turn's end goes further."""
        call, task = place.call, asyncio.current_task()
        assert task is not None
        try:
            if not self._host.open_calls.runs_in(call.call, task):
                await self._end_stopped(call)
                return
            await place.free.wait()
            prepared = await self._prepare(call)
            if prepared is None:
                return
            if place.writes:
                await self._execute(call, prepared)
            else:
                place.judged.set()
                async with self._readers:
                    await self._execute(call, prepared)
        except asyncio.CancelledError:
            if not self._host.open_calls.was_stopped(call.call):
                raise
            await self._end_stopped(call)
        finally:
            place.judged.set()

    async def _end_stopped(self, call: ProposedCall) -> None:
        if self._host.open_calls.remove(call.call):
            await self._host.emit(stopped(call.call))

    def _writes(self, name: str) -> bool:
        try:
            return self._host.toolset.get(name).effect == "writes"
        except ToolError:
            return False

    async def _close_open(self, calls: Sequence[ProposedCall]) -> None:
        """End what did not end by itself; the editor must not show a call running for ever."""
        removed = [call.call for call in calls if self._host.open_calls.remove(call.call)]
        await self._host.emit(*cancelled(removed))

    async def _prepare(self, call: ProposedCall) -> Prepared | None:
        """Everything before the call may run. None: it ended here."""
        try:
            tool = self._host.toolset.get(call.name)
            prepared = await tool.prepare(self._host.toolset.validate(tool, call.arguments))
            for part in prepared.content:
                if isinstance(part, DiffPart):
                    await asyncio.to_thread(refuse_hidden, part, self._host.secrets)
            await self._show(call, prepared)
            await self._permit(call, tool, prepared)
        except StoreError:
            raise
        except Exception as error:  # noqa: BLE001 - a tool that breaks must not end the turn
            await self._failed(call, error)
        else:
            return prepared
        return None

    async def _show(self, call: ProposedCall, prepared: Prepared) -> None:
        shown, _ = label(self._host.toolset, call.name, call.arguments)
        title = prepared.title if prepared.title != shown else None
        content = clean_content(prepared.content, self._host.secrets) or None
        locations = prepared.locations or None
        if title is not None or content is not None or locations is not None:
            await self._host.emit(
                ToolShown(call=call.call, title=title, content=content, locations=locations)
            )

    async def _permit(self, call: ProposedCall, tool: AnyTool, prepared: Prepared) -> None:
        host = self._host
        verdict = host.gate.judge(prepared.access, mode=host.mode, project=str(host.workspace.cwd))
        match verdict:
            case Allow():
                if not isinstance(prepared.access, NoAccess | ReadAccess):
                    await host.emit(
                        PermissionDecided(
                            call=call.call, allowed=True, by=verdict.by, why=verdict.why
                        )
                    )
            case Refuse():
                await host.emit(
                    PermissionDecided(call=call.call, allowed=False, by=verdict.by, why=verdict.why)
                )
                raise PermissionRefusedError(verdict.why)
            case Ask():
                await self._ask(call, tool, prepared, verdict)

    async def _ask(self, call: ProposedCall, tool: AnyTool, prepared: Prepared, ask: Ask) -> None:
        host = self._host
        content = clean_content(prepared.content, host.secrets) or ()
        if ask.warning:
            content = (text_part(ask.warning), *content)
        await host.emit(
            PermissionAsked(call=call.call, options=tuple(choice.id for choice in ask.choices))
        )
        access = prepared.access if isinstance(prepared.access, CommandAccess) else None
        asking = Asking(
            call=call.call,
            title=prepared.title,
            kind=tool.kind,
            arguments=call.arguments,
            content=content,
            locations=prepared.locations,
            command=None if access is None else access.command,
            cwd=None if access is None else access.cwd,
        )
        choice = await host.ask_permission(asking, ask)
        allowed = choice is not None and choice.kind.startswith("allow")
        await host.emit(
            PermissionDecided(
                call=call.call,
                allowed=allowed,
                by="user",
                why=choice.label if choice is not None else "dismissed",
            )
        )
        if choice is not None and choice.grants:
            await self._remember(choice)
        if not allowed:
            raise PermissionRefusedError(DISMISSED if choice is None else REJECTED)

    async def _remember(self, choice: Choice) -> None:
        """Keep what the user decided for good. Where that fails, it holds for this call alone."""
        try:
            await asyncio.to_thread(self._host.gate.remember, choice)
        except StoreError as error:
            title = f"“{choice.label}” was not remembered: {error}"
            await self._host.emit(NoticeShown(severity="warning", title=title))

    async def _execute(self, call: ProposedCall, prepared: Prepared) -> None:
        cwd = prepared.access.cwd if isinstance(prepared.access, CommandAccess) else None
        stop = None if cwd is None else self._host.open_calls.has_command(call.call)
        await self._host.emit(ToolStarted(call=call.call, cwd=cwd))
        progress = CallProgress(self._host, call.call, stop)
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
            self._host.open_calls.remove(call.call)
            await self._host.emit(ended)

    async def _ended(self, call: ProposedCall, outcome: Outcome) -> ToolEnded:
        """What a call gave, without secrets and no longer than a model takes."""
        host = self._host
        text = scrub(outcome.text, host.secrets)
        return ToolEnded(
            call=call.call,
            failed=outcome.failed,
            result=await bounded(text, host.workspace.outputs, call.call),
            images=outcome.images,
            content=clean_content(outcome.content, host.secrets),
            locations=outcome.locations,
            raw_output=clean_object(outcome.raw_output, host.secrets),
            exit_code=outcome.exit_code,
            signal=outcome.signal,
        )

    async def _failed(self, call: ProposedCall, error: Exception) -> None:
        """End a call that failed, and go on; but not where it failed because the turn is stopped.

        Something that is cancelled may break on its way out, and so hide that it was.
        """
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise asyncio.CancelledError from error
        if isinstance(error, AcpAgentError):
            await self._fail(call, str(error))
            return
        # The model and the user are told that it broke; the details are for the log.
        _log.error("tool %s broke in call %s", call.name, call.call, exc_info=error)
        await self._fail(
            call, f"The tool {call.name} broke; the log has the details under {call.call}."
        )

    async def _fail(self, call: ProposedCall, why: str) -> None:
        why = scrub(why, self._host.secrets)
        self._host.open_calls.remove(call.call)
        await self._host.emit(
            ToolEnded(call=call.call, failed=True, result=why, content=(text_part(why),))
        )
