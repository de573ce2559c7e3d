"""A turn of a session, from the prompt that starts it to its end in the journal."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from acp_agent.agent.resources import TurnResources
from acp_agent.errors import AcpAgentError, InvalidInputError, ModelError, StoreError
from acp_agent.events import (
    AnyEvent,
    ServerToolsOffered,
    StopReason,
    TitleChanged,
    TurnEnded,
    TurnStarted,
    Usage,
    UserMessage,
    agent_message,
    agent_notice,
)
from acp_agent.ids import CallId, MessageId, new_turn_id
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.session.children.running import RunningChildren
from acp_agent.session.core import SessionCore
from acp_agent.session.turns.resources import SessionResources
from acp_agent.session.turns.titles import first_title, improve_title

if TYPE_CHECKING:  # first needed when a prompt runs
    from acp_agent.session.turns.plan import TurnPlan

UNAUTHORIZED = 401  # RFC 9110, section 15.5.2: no valid credentials

_log = logging.getLogger(__name__)


class Turn:
    """A turn. It runs in its own task, independent of the requests that begin or steer it.

    Args:
        on_end: called at its end, before any prompt is answered.

    Attributes:
        usage: the token usage of the turn; None while it runs, or if no model reported it.
    """

    def __init__(
        self,
        core: SessionCore,
        resources: SessionResources,
        children: RunningChildren,
        *,
        first: UserMessage,
        plan: TurnPlan,
        on_end: Callable[[], None],
    ) -> None:
        self._core = core
        self._resources = resources
        self._children = children
        self._first = first
        self._plan = plan
        self._id = new_turn_id()
        self._active: TurnResources | None = None
        self.usage: Usage | None = None
        self._started = False
        self._cancelled = False
        self._closing = False
        self._steered = False
        resources.begin_turn(plan.repetition)
        # Queued in this step, so that the prompt is recorded even if the user cancels at once.
        self._insertion = core.write(TurnStarted(turn=self._id), first)
        self._insertion.add_done_callback(_retrieve)
        self._task = asyncio.create_task(self._run(on_end))
        self._task.add_done_callback(_retrieve)

    async def inserted(self) -> None:
        """Wait until the first prompt is in the conversation. Raises StoreError."""
        await asyncio.shield(self._insertion)

    async def result(self) -> StopReason:
        """Wait until the turn ends; return why it stopped.

        Raises:
            AcpAgentError: the error that ended the turn.
        """
        return await asyncio.shield(self._task)

    async def wait(self) -> None:
        """Wait until the turn ends. Does not raise its error."""
        await asyncio.wait([self._task])

    def cancel(self) -> None:
        """Stop the turn. Does nothing if it is already stopped or ending."""
        if self._cancelled or self._closing:
            return
        self._cancelled = True
        if self._started:  # a task cancelled before its first step would not run at all
            self._task.cancel()

    def cancel_call(self, call: CallId) -> None:
        """Stop one call; the turn continues."""
        resources = self._active
        if resources is None or not (
            resources.tools.open_calls.stop(call) or self._children.stop(call)
        ):
            raise no_such_call(call)

    def cancel_terminal(self, terminal: str) -> None:
        """Stop the command that a call runs; see `TurnRunner.cancel_terminal`."""
        call = CallId(terminal)
        resources = self._active
        if resources is None or not (
            resources.tools.open_calls.stop_command(call) or self._children.stop_command(call)
        ):
            raise no_such_terminal(terminal)

    def began_with(self, message: MessageId) -> bool:
        """Return whether the turn began with this message."""
        return self._first.message == message

    @property
    def is_steerable(self) -> bool:
        """Return whether a prompt can still become part of the turn."""
        return not self._closing and not self._cancelled

    async def steer(self, message: UserMessage, reply: Sequence[AnyEvent]) -> None:
        """Record a steering message, and the agent's own reply to it, if any."""
        if not message.local:
            self._steered = True
        await self._core.emit(msgspec.structs.replace(message, steering=True), *reply)

    async def _run(self, on_end: Callable[[], None]) -> StopReason:
        core = self._core
        stop: StopReason | None = None
        error: AcpAgentError | None = None
        self._started = True
        try:
            try:
                stop = await self._work()
            except asyncio.CancelledError:
                stop = "cancelled"
            except AcpAgentError as failure:
                error = failure
            except Exception as failure:  # noqa: BLE001 - shown to the user, and logged
                _log.exception("turn %s broke", self._id)
                limited = explain_descriptor_limit(failure)
                error = AcpAgentError(
                    f"the turn cannot go on: {limited}"
                    if limited is not None
                    else f"the turn broke by a fault of the agent's ({type(failure).__name__}); "
                    f"the log has the details under {self._id}"
                )
            self._closing = True
            if self._cancelled:
                while self._task.cancelling():  # it must not interrupt the last writes
                    self._task.uncancel()
                if not isinstance(error, StoreError):
                    # A cancelled turn must report "cancelled", not an error that the cancellation
                    # caused (Agent Client Protocol v1, Prompt Turn, Cancellation).
                    stop, error = "cancelled", None
            if error is not None and self._active is not None and self._active.hooks is not None:
                await self._resources.hooks.run_failure_hooks(self._active, error)
            await core.flush()  # usage is computed from the journal
            if self._active is not None:
                self._report_key(self._active, stop, error)
            await self._resources.save_turn_end(cancelled=self._cancelled)
            if self._insertion.exception() is None:  # otherwise the turn is not in the journal
                self.usage = core.state.turn_usage
                error = await self._write_end(stop, error)
        finally:
            self._resources.reset_turn()
            on_end()
        if error is not None:
            raise error
        assert stop is not None
        return stop

    def _report_key(
        self, resources: TurnResources, stop: StopReason | None, error: AcpAgentError | None
    ) -> None:
        """Report to the account whether the provider accepted or refused its key."""
        account = self._core.services.account
        if isinstance(error, ModelError):
            if error.status == UNAUTHORIZED:
                account.report_key(error.provider, refused=True)
        elif error is None and stop != "cancelled":
            account.report_key(resources.models.current.provider, refused=False)

    async def _write_end(
        self, stop: StopReason | None, error: AcpAgentError | None
    ) -> AcpAgentError | None:
        """Write the turn's end; return the turn's error, or the error of writing."""
        end = TurnEnded(
            turn=self._id,
            stop_reason=stop,
            error="" if error is None else str(error),
            error_kind="" if error is None else error.kind,
            usage=self.usage,
        )
        core, title = self._core, None
        if core.state.title is None and not self._first.local:
            title = first_title(self._first)
        try:
            await core.emit(*(() if title is None else (TitleChanged(title=title),)), end)
            improves = core.services.config.titles == "model" and stop == "end_turn"
            if improves and title is not None and self._active is not None:
                core.background.spawn(improve_title(core, self._active, self._first, title))
        except AcpAgentError as failure:
            error = error or failure  # the first error says more
            failed_end = msgspec.structs.replace(
                end, stop_reason=None, error=str(error), error_kind=error.kind
            )
            # Not stored, but the client was shown the turn's beginning.
            await core.notify(failed_end)
        return error

    async def _work(self) -> StopReason:
        await self.inserted()
        if self._cancelled:
            return "cancelled"
        stop = await self._carry_out(self._plan)
        while stop in {"end_turn", "max_tokens"} and await self._has_unanswered_steering():
            if self._active is not None and self._active.budget.exhausted:
                break  # another request would be refused, too
            stop = await self._ask_model()
        return stop

    async def _carry_out(self, plan: TurnPlan) -> StopReason:
        if plan.action is not None:
            turn = await self._resources.for_turn()
            await self._core.emit(*agent_message(await plan.action(turn)))
            return "end_turn"
        if plan.reply:
            await self._core.emit(*plan.reply)
            return "end_turn"
        return await self._ask_model(plan)

    async def _ask_model(self, plan: TurnPlan | None = None) -> StopReason:
        """Run the model on the conversation; `plan` overrides the defaults."""
        core = self._core
        await self._resources.check_background()
        await self._resources.ask_for_trust()
        turn = await self._resources.for_turn(None if plan is None else plan.options)
        self._active = turn
        if core.state.system_prompt_is_due:
            self._resources.environment.start()
        await self._resources.wait_for_extensions()

        from acp_agent.agent.incomplete_answers import stop_notice  # noqa: PLC0415 - for prompts only
        from acp_agent.agent.turn import run_turn, run_user_call  # noqa: PLC0415 - likewise
        from acp_agent.session.turns.parts import turn_slot  # noqa: PLC0415 - likewise

        await self._record_server_tools(turn)
        is_new = core.state.system_prompt_is_due
        if is_new:
            await self._resources.write_system_prompt()
        hooks = None if turn.hooks is None else self._resources.hooks
        if hooks and plan is not None:
            refusal = await hooks.run_turn_hooks(turn, self._first.content, is_new=is_new)
            if refusal:
                await core.emit(*agent_notice(refusal))
                return "refusal"
        async with turn_slot(core):
            stop: StopReason
            if plan is not None and plan.repetition is not None:
                stop = await plan.repetition.run(turn)
            elif plan is not None and plan.flow is not None:
                stop = await plan.flow.run(turn)
            else:
                stop = "end_turn"
                if plan is None or plan.call is None or not await run_user_call(turn, *plan.call):
                    stop = await run_turn(turn)
            if hooks is not None:
                stop = await hooks.run_stop_hooks(turn, stop, run_turn)
        await core.flush()
        if not turn.budget.exhausted:  # otherwise already reported
            await core.emit(*stop_notice(stop, core.context, core.translate))
        return stop

    async def _record_server_tools(self, turn: TurnResources) -> None:
        """Record the tools of MCP servers if they differ from those of the last turn."""
        from acp_agent.agent.scrub_events import scrub_event  # noqa: PLC0415 - for prompts only

        state, offered = self._core.state, self._resources.server_tools(turn)
        if offered is state.recorded_tools:
            return
        state.recorded_tools = offered
        event = scrub_event(ServerToolsOffered(tools=offered), self._core.secrets)
        if event != ServerToolsOffered(tools=state.server_tools):
            await self._core.emit(event)

    async def _has_unanswered_steering(self) -> bool:
        """Return whether a steering message was not sent to the model yet.

        It may have arrived during an action of the agent, or while the turn ended.
        """
        await self._core.flush()
        return self._steered and self._core.context.has_unsent_message


def no_such_call(call: CallId) -> InvalidInputError:
    """Return the error for a call that cannot be stopped."""
    return InvalidInputError(
        f"toolCallId: no call {call!r} is open; it may have ended already", field="toolCallId"
    )


def no_such_terminal(terminal: str) -> InvalidInputError:
    """Return the error for a command that cannot be stopped."""
    return InvalidInputError(
        f"terminalId: no command runs in {terminal!r}; it may have exited already",
        field="terminalId",
    )


def _retrieve(outcome: asyncio.Future[Any]) -> None:
    """Retrieve the exception, because nobody may await a failed turn."""
    if not outcome.cancelled():
        outcome.exception()
