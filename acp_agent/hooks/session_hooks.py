"""The hooks of a session: choose those of an event, run them, and combine their answers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec.structs import replace

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.events import NoticeShown
from acp_agent.hooks.file_watch import WatchedFiles, is_watched
from acp_agent.hooks.running import HookRunner
from acp_agent.hooks.tasks import TaskChanges
from acp_agent.hooks.tool_names import (
    hook_arguments,
    hook_name,
    hook_response,
    matches,
    program_arguments,
)
from acp_agent.hooks.types import NO_ANSWER, Hook, HookAnswer, combine_answers
from acp_agent.ids import new_message_id
from acp_agent.permissions.access import Access, Mode

# The names of modes in the contract.
_MODES: dict[Mode, str] = {
    "ask": "default",
    "draft": "default",
    "accept-edits": "acceptEdits",
    "plan": "plan",
    "full": "bypassPermissions",
}
# The events at which a matcher counts: for a tool, or for a kind of event.
_EVENTS_WITH_MATCHER: frozenset[HookEvent] = frozenset(
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
        "StopFailure",
        "SubagentStart",
        "SubagentStop",
        "PreCompact",
        "PostCompact",
        "Elicitation",
        "ElicitationResult",
        "ConfigChange",
        "InstructionsLoaded",
    }
)
VERIFIER = "hook"  # the name of the agent that verifies for a hook
_MAX_RESULT_LENGTH = 100_000  # characters of a call's result in an event


def common_fields(event: HookEvent, session: str, cwd: Path, mode: Mode) -> JsonObject:
    """Return the fields that every event has."""
    return {
        "session_id": session,
        "transcript_path": "",
        "cwd": str(cwd),
        "permission_mode": _MODES[mode],
        "hook_event_name": event,
    }


def is_for(hook: Hook, event: HookEvent, matched: str) -> bool:
    """Return whether a hook runs at an event for a tool, or for a kind of event."""
    if event == "FileChanged":
        return hook.event == event and is_watched(hook.matcher, matched)
    return hook.event == event and (
        event not in _EVENTS_WITH_MATCHER or matches(hook.matcher, matched)
    )


class HookedCall(Protocol):
    """A call of a tool."""

    @property
    def call(self) -> str:
        """Return the id of the call."""
        ...

    @property
    def name(self) -> str:
        """Return the name of the tool."""
        ...


class SessionHooks:
    """Runs the hooks of one session.

    Args:
        hooks: the hooks.
        runner: runs one.
        session: the session's id.
        cwd: its folder.
        mode: returns the permission mode.
        fits: returns whether a call matches a permission rule.
        notify: shows a notice.
        spawn: runs a coroutine in the background.
        variables: the variables of commands; those that hooks set are added.
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
        variables: dict[str, str],
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
        self._variables = variables
        self._tasks = TaskChanges()
        self._files = WatchedFiles(cwd, self._hooks)

    def has(self, event: HookEvent) -> bool:
        """Return whether a hook runs at an event."""
        return any(hook.event == event for hook in self._hooks)

    async def before_call(
        self, call: HookedCall, arguments: JsonObject, access: Access, agent: str
    ) -> HookAnswer:
        """Run the hooks before a call; new arguments in the answer have our field names."""
        if call.name == "todo":
            for event, fields in self._tasks.read(agent, arguments):
                report_refusal = await self.fire(event, fields)
                if report_refusal.blocked:
                    return report_refusal
            self._tasks.apply(agent, arguments)
        answer = await self._fire_for_call("PreToolUse", call, arguments, agent, access=access)
        if answer.arguments is None:
            return answer
        return replace(answer, arguments=program_arguments(call.name, answer.arguments))

    async def on_question(
        self, call: HookedCall, arguments: JsonObject, access: Access, agent: str
    ) -> HookAnswer:
        """Run the hooks that may answer a permission question for the user."""
        answer = await self._fire_for_call(
            "PermissionRequest", call, arguments, agent, access=access
        )
        if answer.arguments is None:
            return answer
        return replace(answer, arguments=program_arguments(call.name, answer.arguments))

    async def report_refusal(
        self, call: HookedCall, arguments: JsonObject, access: Access, agent: str, reason: str
    ) -> None:
        """Report a refused call to hooks."""
        await self._fire_for_call(
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
        """Run the hooks after a call."""
        event: HookEvent = "PostToolUseFailure" if failed else "PostToolUse"
        result = result[:_MAX_RESULT_LENGTH]
        fields: JsonObject = {"error": result, "is_interrupt": False}
        if not failed:
            converted = hook_arguments(call.name, arguments, self._cwd)
            fields = {"tool_response": hook_response(call.name, converted, result)}
        return await self._fire_for_call(event, call, arguments, agent, access=access, **fields)

    async def after_batch(self, calls: Sequence[JsonObject], agent: str) -> HookAnswer:
        """Run the hooks after all calls of an answer; `batched_call` describes each call."""
        fields: JsonObject = {"tool_calls": list(calls)}
        if agent:
            fields |= {"agent_id": agent, "agent_type": agent}
        return await self.fire("PostToolBatch", fields)

    def batched_call(self, call: HookedCall, arguments: JsonObject, result: str) -> JsonObject:
        """Return the description of an ended call for `after_batch`."""
        return {**self._call_fields(call, arguments), "tool_response": result[:_MAX_RESULT_LENGTH]}

    def _call_fields(self, call: HookedCall, arguments: JsonObject) -> JsonObject:
        return {
            "tool_name": hook_name(call.name),
            "tool_input": hook_arguments(call.name, arguments, self._cwd),
            "tool_use_id": call.call,
        }

    async def before_agent(self, agent: str) -> str:
        """Run the hooks at the start of an agent; return additional context for it."""
        fields = {"agent_id": agent, "agent_type": agent}
        return (await self.fire("SubagentStart", fields, matched=agent)).context

    async def after_agent(self, agent: str, rounds: int, last_answer: str) -> str:
        """Run the hooks at the end of an agent's work; return the reason to continue, or "".

        Args:
            agent: its name.
            rounds: how often hooks have made it continue.
            last_answer: the text of its last answer.
        """
        fields: JsonObject = {
            "agent_id": agent,
            "agent_type": agent,
            "stop_hook_active": rounds > 0,
        }
        if last_answer:
            fields["last_assistant_message"] = last_answer
        answer = await self.fire("SubagentStop", fields, matched=agent)
        return answer.reason if answer.blocked and not answer.stop else ""

    async def report_files(self) -> None:
        """Run the hooks for watched files that have changed since the last time."""
        if not self.has("FileChanged"):
            return
        for path, kind in await asyncio.to_thread(self._files.changes):
            fields = {"file_path": str(path), "event": kind}
            await self.fire("FileChanged", fields, matched=path.name)

    async def report_instructions(self, path: str, kind: str, reason: str, trigger: str) -> None:
        """Run the hooks for an instruction file that the model gets.

        Args:
            path: the file.
            kind: "User", "Project" or "Local".
            reason: why it is loaded.
            trigger: the file for which it is loaded; "" for none.
        """
        fields = {"file_path": path, "memory_type": kind, "load_reason": reason}
        if trigger:
            fields["trigger_file_path"] = trigger
        await self.fire("InstructionsLoaded", fields, matched=reason)

    def report_question(self, title: str, kind: str = "permission_prompt") -> None:
        """Report a question to hooks, in the background."""
        if self.has("Notification"):
            fields = {"message": title, "notification_type": kind}
            self._spawn(self._fire_in_background("Notification", fields, kind))

    async def _fire_in_background(self, event: HookEvent, fields: JsonObject, matched: str) -> None:
        await self.fire(event, fields, matched=matched)

    async def _fire_for_call(
        self,
        event: HookEvent,
        call: HookedCall,
        arguments: JsonObject,
        agent: str,
        *,
        access: Access | None = None,
        **fields: object,
    ) -> HookAnswer:
        if not self.has(event):
            return NO_ANSWER
        event_fields = {**self._call_fields(call, arguments), **fields}
        if agent:
            event_fields |= {"agent_id": agent, "agent_type": agent}
        return await self.fire(event, event_fields, matched=call.name, access=access)

    async def fire(
        self,
        event: HookEvent,
        fields: JsonObject,
        *,
        matched: str = "",
        access: Access | None = None,
    ) -> HookAnswer:
        """Run the hooks of an event concurrently, and return their combined answer.

        Args:
            event: the event.
            fields: the fields of this event, besides those of every event.
            matched: the tool or kind that matchers are compared with.
            access: what the call would access, for conditions.
        """
        chosen = [hook for hook in self._hooks if self._is_for(hook, event, matched, access)]
        if fields.get("agent_type") == VERIFIER:  # which would be verified without an end
            chosen = [hook for hook in chosen if not hook.verifies]
        if not chosen:
            return NO_ANSWER
        for hook in chosen:
            if hook.once:
                self._hooks.remove(hook)
        payload = {**common_fields(event, self._session, self._cwd, self._mode()), **fields}
        for hook in chosen:
            if hook.runs_async:
                self._spawn(self._run_in_background(hook, payload))
        awaited = [hook for hook in chosen if not hook.runs_async]
        answers = await asyncio.gather(*(self._runner.run(hook, payload) for hook in awaited))
        answer = (
            combine_answers([without_unallowed_decision(hook_answer) for hook_answer in answers])
            if answers
            else NO_ANSWER
        )
        self._variables |= answer.variables
        self._files.add(answer.watch)
        await self._report(answer)
        return answer

    async def _run_in_background(self, hook: Hook, payload: JsonObject) -> None:
        answer = await self._runner.run(hook, payload)
        await self._report(HookAnswer(failure=answer.failure))

    def _is_for(self, hook: Hook, event: HookEvent, matched: str, access: Access | None) -> bool:
        if not is_for(hook, event, matched):
            return False
        return not hook.condition or (access is not None and self._fits(hook.condition, access))

    async def _report(self, answer: HookAnswer) -> None:
        """Show the hooks' messages to the user, and each failure once."""
        if answer.message:
            await self._notify(NoticeShown(severity="info", title=answer.message))
        if answer.failure and answer.failure not in self._failed:
            self._failed.add(answer.failure)
            title = f"A hook failed: {answer.failure}"
            await self._notify(NoticeShown(severity="warning", title=title))


def context_notice(text: str, title: str = "A hook told the model something.") -> NoticeShown:
    """Return the notice that gives the model a text from hooks, without secrets."""
    return NoticeShown(
        severity="info",
        title=title,
        description=text,
        message=new_message_id(),
        for_model=f"[From a hook: {text}]",
    )


def without_unallowed_decision(answer: HookAnswer) -> HookAnswer:
    """Return an answer without a permission or response that its hook may not give."""
    may_allow = answer.by is not None and answer.by.may_allow
    if answer.response is not None and answer.response.action == "accept" and not may_allow:
        answer = replace(answer, response=None)
    if answer.permission == "allow" and not may_allow:
        return replace(answer, permission=None)
    return answer
