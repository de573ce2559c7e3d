"""The hooks of a session: which run at an event, what they are told, and their answer together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.events import NoticeShown
from acp_agent.hooks.running import HookRunner
from acp_agent.hooks.tool_names import hook_arguments, hook_name, matches, own_arguments
from acp_agent.hooks.types import NO_ANSWER, Hook, HookAnswer, combined
from acp_agent.permissions.access import Access, Mode

# The modes as hooks know them.
_MODES: dict[Mode, str] = {
    "ask": "default",
    "draft": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "full": "bypassPermissions",
}
# The events whose hooks may be for some tools only, or for some ways to begin and end.
_MATCHED: frozenset[HookEvent] = frozenset(
    {
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "PermissionRequest",
        "PermissionDenied",
        "Notification",
        "UserPromptExpansion",
        "SessionStart",
        "SessionEnd",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
    }
)
_LONGEST_RESULT = 100_000  # characters of a call's result that a hook is told


def common_fields(event: HookEvent, session: str, cwd: Path, mode: Mode) -> JsonObject:
    """Return what every hook is told of an event."""
    return {
        "session_id": session,
        "transcript_path": "",
        "cwd": str(cwd),
        "permission_mode": _MODES[mode],
        "hook_event_name": event,
    }


def is_for(hook: Hook, event: HookEvent, matched: str) -> bool:
    """Return whether a hook runs at an event, of a tool or kind where the event has such."""
    return hook.event == event and (event not in _MATCHED or matches(hook.matcher, matched))


class HookedCall(Protocol):
    """A call as hooks are told of it."""

    @property
    def call(self) -> str:
        """Its id."""
        ...

    @property
    def name(self) -> str:
        """The tool."""
        ...


class SessionHooks:
    """Runs the hooks of one session.

    Args:
        hooks: the hooks.
        runner: runs one.
        session: the session's id.
        cwd: its folder.
        mode: returns the permission mode.
        fits: whether a call fits a rule, by its access.
        notify: shows a notice.
        spawn: runs what nothing waits for.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        runner: HookRunner,
        *,
        session: str,
        cwd: Path,
        mode: Callable[[], Mode],
        fits: Callable[[str, Access], bool],
        notify: Callable[[NoticeShown], Awaitable[None]],
        spawn: Callable[[Coroutine[Any, Any, None]], None],
    ) -> None:
        self._hooks = list(hooks)
        self._runner = runner
        self._session = session
        self._cwd = cwd
        self._mode = mode
        self._fits = fits
        self._notify = notify
        self._spawn = spawn
        self._failed: set[str] = set()

    def has(self, event: HookEvent) -> bool:
        """Whether a hook runs at an event."""
        return any(hook.event == event for hook in self._hooks)

    async def before_call(
        self, call: HookedCall, arguments: JsonObject, access: Access, agent: str
    ) -> HookAnswer:
        """Ask about a call that is to be made; its new arguments have our names of fields."""
        answer = await self._of_call("PreToolUse", call, arguments, agent, access=access)
        if answer.arguments is None:
            return answer
        return replace(answer, arguments=own_arguments(call.name, answer.arguments))

    async def on_question(
        self, call: HookedCall, arguments: JsonObject, access: Access, agent: str
    ) -> HookAnswer:
        """Ask in the user's place whether a call may run."""
        return await self._of_call("PermissionRequest", call, arguments, agent, access=access)

    async def refused(
        self, call: HookedCall, arguments: JsonObject, access: Access, agent: str, reason: str
    ) -> None:
        """Tell that a call was refused."""
        await self._of_call(
            "PermissionDenied", call, arguments, agent, access=access, reason=reason
        )

    async def after_call(
        self,
        call: HookedCall,
        arguments: JsonObject,
        access: Access | None,
        agent: str,
        result: str,
        *,
        failed: bool,
    ) -> HookAnswer:
        """Tell how a call ended, and ask what the model is told."""
        event: HookEvent = "PostToolUseFailure" if failed else "PostToolUse"
        told = {"error" if failed else "tool_response": result[:_LONGEST_RESULT]}
        return await self._of_call(event, call, arguments, agent, access=access, **told)

    async def after_batch(self, calls: Sequence[JsonObject], agent: str) -> HookAnswer:
        """Tell that all calls of an answer have ended, each with what `batched_call` returns."""
        told: JsonObject = {"tool_calls": list(calls)}
        if agent:
            told |= {"agent_id": agent, "agent_type": agent}
        return await self.fire("PostToolBatch", told)

    def batched_call(self, call: HookedCall, arguments: JsonObject, result: str) -> JsonObject:
        """Return a call that has ended as `after_batch` has it."""
        return {**self._told(call, arguments), "tool_response": result[:_LONGEST_RESULT]}

    def _told(self, call: HookedCall, arguments: JsonObject) -> JsonObject:
        return {
            "tool_name": hook_name(call.name),
            "tool_input": hook_arguments(call.name, arguments, self._cwd),
            "tool_use_id": call.call,
        }

    async def agent_begins(self, agent: str) -> str:
        """Tell that an agent begins its work; returns what it is told besides."""
        told = {"agent_id": agent, "agent_type": agent}
        return (await self.fire("SubagentStart", told, matched=agent)).context

    async def agent_ends(self, agent: str, rounds: int) -> str:
        """Tell that an agent ended its work; returns what it is told to go on with, if it is.

        Args:
            agent: its name.
            rounds: how often hooks had it go on already.
        """
        told = {"agent_id": agent, "agent_type": agent, "stop_hook_active": rounds > 0}
        answer = await self.fire("SubagentStop", told, matched=agent)
        return answer.reason if answer.blocked and not answer.stop else ""

    def tell_that_user_is_asked(self, title: str) -> None:
        """Tell that a question waits for the user; nothing waits for the hooks."""
        if self.has("Notification"):
            kind = "permission_prompt"
            fields = {"message": title, "notification_type": kind}
            self._spawn(self._tell("Notification", fields, kind))

    async def _tell(self, event: HookEvent, fields: JsonObject, matched: str) -> None:
        await self.fire(event, fields, matched=matched)

    async def _of_call(
        self,
        event: HookEvent,
        call: HookedCall,
        arguments: JsonObject,
        agent: str,
        *,
        access: Access | None = None,
        **fields: str,
    ) -> HookAnswer:
        if not self.has(event):
            return NO_ANSWER
        told = {**self._told(call, arguments), **fields}
        if agent:
            told |= {"agent_id": agent, "agent_type": agent}
        return await self.fire(event, told, matched=call.name, access=access)

    async def fire(
        self,
        event: HookEvent,
        fields: JsonObject,
        *,
        matched: str = "",
        access: Access | None = None,
    ) -> HookAnswer:
        """Run the hooks of an event at the same time, and return what they answered together.

        Args:
            event: the event.
            fields: what they are told of it beside what every hook is told.
            matched: what their matchers are compared with.
            access: what the call would touch, for their conditions.
        """
        chosen = [hook for hook in self._hooks if self._is_for(hook, event, matched, access)]
        if not chosen:
            return NO_ANSWER
        for hook in chosen:
            if hook.once:
                self._hooks.remove(hook)
        told = {**common_fields(event, self._session, self._cwd, self._mode()), **fields}
        for hook in chosen:
            if hook.runs_async:
                self._spawn(self._run_apart(hook, told))
        awaited = [hook for hook in chosen if not hook.runs_async]
        answers = await asyncio.gather(*(self._runner.run(hook, told) for hook in awaited))
        answer = combined([limited(one) for one in answers]) if answers else NO_ANSWER
        await self._report(answer)
        return answer

    async def _run_apart(self, hook: Hook, told: JsonObject) -> None:
        answer = await self._runner.run(hook, told)
        await self._report(HookAnswer(failure=answer.failure))

    def _is_for(self, hook: Hook, event: HookEvent, matched: str, access: Access | None) -> bool:
        if not is_for(hook, event, matched):
            return False
        return not hook.condition or (access is not None and self._fits(hook.condition, access))

    async def _report(self, answer: HookAnswer) -> None:
        """Show what hooks tell the user, and once that one failed."""
        if answer.message:
            await self._notify(NoticeShown(severity="info", title=answer.message))
        if answer.failure and answer.failure not in self._failed:
            self._failed.add(answer.failure)
            title = f"A hook failed: {answer.failure}"
            await self._notify(NoticeShown(severity="warning", title=title))


def limited(answer: HookAnswer) -> HookAnswer:
    """Return an answer without the permission that not every hook may give."""
    if answer.permission == "allow" and (answer.by is None or not answer.by.may_allow):
        return replace(answer, permission=None)
    return answer
