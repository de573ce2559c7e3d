"""The hooks of a session: choose those of an event, run them, and combine their answers."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Iterator, Sequence
from uuid import uuid4

from msgspec import json
from msgspec.structs import replace

from acp_agent.config.hook_types import HookEvent
from acp_agent.content import JsonObject
from acp_agent.events import HookAnswered, NoticeShown
from acp_agent.hooks.event_fields import (
    CALL_EVENTS,
    CONTEXT,
    SESSION_EVENTS,
    HookedCall,
    HookedSession,
    common_fields,
    is_for,
)
from acp_agent.hooks.file_watch import WatchedFiles
from acp_agent.hooks.permission_rules import PermissionRules, suggestions
from acp_agent.hooks.running import HookRunner
from acp_agent.hooks.tasks import TaskChanges
from acp_agent.hooks.tool_names import hook_arguments, hook_name, hook_response, program_arguments
from acp_agent.hooks.types import (
    NO_ANSWER,
    Hook,
    HookAnswer,
    combine_answers,
    recorded_fields,
    without_unallowed_decision,
)
from acp_agent.ids import CallId, new_message_id
from acp_agent.permissions.access import Access, Choice

VERIFIER = "hook"  # the name of the agent that verifies for a hook
# The fields of an event that do not say what it is about.
_COMMON_FIELDS = frozenset(
    {
        "agent_id", "agent_transcript_path", "cwd", "duration_ms", "effort", "hook_event_name",
        "permission_mode", "permission_suggestions", "prompt_id", "session_id", "tool_use_id",
        "transcript_path",
    }
)  # fmt: skip
_MAX_RESULT_LENGTH = 100_000  # characters of a call's result in an event


class SharedHookState:
    """State that the hooks of a session share with those of its agents and with later hooks."""

    def __init__(self, watched: WatchedFiles) -> None:
        self.failed: set[str] = set()
        self.spent: list[Hook] = []  # those that run once, and have run
        self.tasks = TaskChanges()
        self.rules = PermissionRules()
        self.files = watched
        self.prompt_id = ""
        self.wakes = False  # a hook in the background has a text for the model


class SessionHooks:
    """Runs the hooks of one session, or of an agent in it.

    Args:
        variables: the variables of commands; those that hooks set are added.
        active: the hooks of the skills that are in use; the list may grow.
        shared: the state that outlives these hooks; None: a new one.

    Attributes:
        shared: the argument of that name.
    """

    def __init__(
        self,
        hooks: Sequence[Hook],
        runner: HookRunner,
        *,
        session: HookedSession,
        variables: dict[str, str],
        active: Sequence[Hook] = (),
        shared: SharedHookState | None = None,
    ) -> None:
        self._hooks = tuple(hooks)
        self._active = active
        self._agent_hooks: tuple[Hook, ...] = ()
        self.runner = runner
        self._session = session
        self._variables = variables
        self.shared = shared or SharedHookState(WatchedFiles(session.cwd))
        self.shared.files.add_matchers(self._hooks)
        self._agent_fields: JsonObject = {}  # the fields of events that describe the agent

    def for_agent(
        self,
        agent: str,
        hooks: Sequence[Hook] = (),
        *,
        agent_id: str = "",
        place: tuple[HookedSession, HookRunner] | None = None,
    ) -> SessionHooks:
        """Return the hooks for an agent: those of the session, and its own.

        Args:
            agent_id: the id of its child session; "" for the agent that the session runs as.
            place: the session and the runner for the folder of its own; None: the same as these.
        """
        inherited = [hook for hook in self._agent_hooks if hook.event in CALL_EVENTS]
        if agent_id:  # its end is that of a subagent
            hooks = [
                replace(hook, event="SubagentStop", matcher="") if hook.event == "Stop" else hook
                for hook in hooks
            ]
        fields: JsonObject = {"agent_id": agent_id} if agent_id else {}
        clone = copy.copy(self)
        clone._agent_hooks = (*inherited, *hooks)  # noqa: SLF001 - its own class
        clone._agent_fields = {**fields, "agent_type": agent}  # noqa: SLF001 - likewise
        if place is not None:
            clone._session, clone.runner = place  # noqa: SLF001 - likewise
        return clone

    def _all(self) -> Iterator[Hook]:
        for hook in (*self._hooks, *self._active, *self._agent_hooks):
            if hook not in self.shared.spent:
                yield hook

    async def add_context(self, text: str) -> None:
        """Add a text for the model to the session's conversation."""
        await self._session.add_context(text)

    def begin_prompt(self) -> None:
        """Give the events from now on the id of a new prompt."""
        self.shared.prompt_id = str(uuid4())

    def take_wake(self) -> bool:
        """Return whether a hook in the background woke the model since the last call."""
        woken, self.shared.wakes = self.shared.wakes, False
        return woken

    def has(self, event: HookEvent) -> bool:
        """Return whether a hook runs at an event."""
        return any(hook.event == event for hook in self._all())

    async def before_call(
        self, call: HookedCall, arguments: JsonObject, access: Access
    ) -> HookAnswer:
        """Run the hooks before a call; new arguments in the answer have our field names."""
        if call.name == "todo":
            tasks, planner = self.shared.tasks, str(self._agent_fields.get("agent_id", ""))
            for event, fields in tasks.read(planner, arguments):
                refusal = await self.fire(event, fields)
                if refusal.blocked:
                    return refusal
            tasks.apply(planner, arguments)
        answer = await self._fire_for_call("PreToolUse", call, arguments, access=access)
        ruled = await self.shared.rules.answer(self._session.verdict, access)
        if ruled is not None and ruled.permission != "allow":
            answer = combine_answers([answer, ruled])
        if answer.arguments is None:
            return answer
        return replace(answer, arguments=program_arguments(call.name, answer.arguments))

    async def on_question(
        self,
        call: HookedCall,
        arguments: JsonObject,
        access: Access,
        choices: Sequence[Choice] = (),
    ) -> HookAnswer:
        """Run the hooks that may answer a permission question with the buttons `choices`."""
        ruled = await self.shared.rules.answer(self._session.verdict, access)
        if ruled is not None and ruled.permission == "allow":
            return ruled
        suggested = suggestions(choices)
        answer = await self._fire_for_call(
            "PermissionRequest", call, arguments, access=access, permission_suggestions=suggested
        )
        if answer.arguments is None:
            return answer
        return replace(answer, arguments=program_arguments(call.name, answer.arguments))

    async def report_refusal(
        self, call: HookedCall, arguments: JsonObject, access: Access, reason: str
    ) -> None:
        """Report a refused call to hooks."""
        await self._fire_for_call("PermissionDenied", call, arguments, access=access, reason=reason)

    async def after_call(
        self,
        call: HookedCall,
        arguments: JsonObject,
        access: Access | None,
        result: str,
        *,
        failed: bool,
        duration: float | None = None,
    ) -> HookAnswer:
        """Run the hooks after a call; `duration` is how long its tool ran, in seconds."""
        event: HookEvent = "PostToolUseFailure" if failed else "PostToolUse"
        result = result[:_MAX_RESULT_LENGTH]
        fields: JsonObject = {"error": result, "is_interrupt": False}
        if not failed:
            converted = hook_arguments(call.name, arguments, self._session.cwd)
            fields = {"tool_response": hook_response(call.name, converted, result)}
        if duration is not None:
            fields["duration_ms"] = round(duration * 1_000)
        return await self._fire_for_call(event, call, arguments, access=access, **fields)

    async def after_batch(self, calls: Sequence[JsonObject]) -> HookAnswer:
        """Run the hooks after all calls of an answer; `batched_call` describes each call."""
        return await self.fire("PostToolBatch", {"tool_calls": list(calls)})

    def batched_call(self, call: HookedCall, arguments: JsonObject, result: str) -> JsonObject:
        """Return the description of an ended call for `after_batch`."""
        return {**self._call_fields(call, arguments), "tool_response": result[:_MAX_RESULT_LENGTH]}

    def _call_fields(self, call: HookedCall, arguments: JsonObject) -> JsonObject:
        return {
            "tool_name": hook_name(call.name),
            "tool_input": hook_arguments(call.name, arguments, self._session.cwd),
            "tool_use_id": call.call,
        }

    async def before_agent(self) -> str:
        """Run the hooks at the start of an agent; return additional context for it."""
        agent = str(self._agent_fields.get("agent_type", ""))
        return (await self.fire("SubagentStart", {}, matched=agent)).context

    async def after_agent(self, rounds: int, last_answer: str, transcript: str) -> str:
        """Run the hooks at the end of an agent's work; return the reason to continue, or "".

        Args:
            rounds: how often hooks have made it continue.
        """
        fields: JsonObject = {"stop_hook_active": rounds > 0, "agent_transcript_path": transcript}
        if last_answer:
            fields["last_assistant_message"] = last_answer
        agent = str(self._agent_fields.get("agent_type", ""))
        answer = await self.fire("SubagentStop", fields, matched=agent)
        return "" if answer.stop else answer.feedback

    async def report_files(self) -> None:
        """Run the hooks for watched files that have changed since the last time."""
        if not self.has("FileChanged"):
            return
        for path, kind in await asyncio.to_thread(self.shared.files.changes):
            fields = {"file_path": str(path), "event": kind}
            await self.fire("FileChanged", fields, matched=path.name)

    async def report_instructions(self, path: str, kind: str, reason: str, trigger: str) -> None:
        """Run the hooks for an instruction file that the model gets.

        Args:
            kind: "User", "Project" or "Local".
            reason: why it is loaded.
        """
        fields = {"file_path": path, "memory_type": kind, "load_reason": reason}
        if trigger:
            fields["trigger_file_path"] = trigger
        await self.fire("InstructionsLoaded", fields, matched=reason)

    def report_question(self, title: str, kind: str = "permission_prompt") -> None:
        """Report a question to hooks, in the background."""
        if self.has("Notification"):
            fields = {"message": title, "notification_type": kind}
            self._session.spawn(self._fire_in_background("Notification", fields, kind))

    async def _fire_in_background(self, event: HookEvent, fields: JsonObject, matched: str) -> None:
        await self.fire(event, fields, matched=matched)

    async def _fire_for_call(
        self,
        event: HookEvent,
        call: HookedCall,
        arguments: JsonObject,
        *,
        access: Access | None = None,
        **fields: object,
    ) -> HookAnswer:
        if not self.has(event):
            return NO_ANSWER
        event_fields = {**self._call_fields(call, arguments), **fields}
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
            fields: the fields of this event, besides those of every event.
            matched: the tool or kind that matchers are compared with.
            access: what the call would access, for conditions.
        """
        chosen = [hook for hook in self._all() if self._is_for(hook, event, matched, access)]
        if self._agent_fields.get("agent_type") == VERIFIER:  # it would be verified without an end
            chosen = [hook for hook in chosen if not hook.verifies]
        if not chosen:
            return NO_ANSWER
        self.shared.spent += [hook for hook in chosen if hook.once]
        payload = {**await self._base_fields(event), **fields}
        for hook in chosen:
            if hook.runs_async:
                self._session.spawn(self._run_in_background(hook, payload))
        awaited = [hook for hook in chosen if not hook.runs_async]
        answers = await asyncio.gather(*(self.runner.run(hook, payload) for hook in awaited))
        answer = (
            combine_answers([without_unallowed_decision(hook_answer) for hook_answer in answers])
            if answers
            else NO_ANSWER
        )
        self._variables |= answer.variables
        self.shared.files.add(answer.watch)
        await self._report(answer)
        for why in [why for each in answers for why in self.shared.rules.apply(each)]:
            await self._warn(f"A hook's change of permissions is not applied: {why}")
        if effects := recorded_fields(answer):
            await self._session.record(_answered(event, payload, answer, effects))
        return answer

    async def _base_fields(self, event: HookEvent) -> JsonObject:
        session = self._session
        fields = common_fields(event, session.id, session.cwd, session.mode)
        fields["transcript_path"] = await session.transcript()
        if self.shared.prompt_id:
            fields["prompt_id"] = self.shared.prompt_id
        if session.effort is not None and event not in SESSION_EVENTS:
            fields["effort"] = {"level": session.effort}
        return fields | self._agent_fields

    async def _run_in_background(self, hook: Hook, payload: JsonObject) -> None:
        answer = await self.runner.run(hook, payload)
        await self._report(HookAnswer(failure=answer.failure, message=answer.message))
        rewakes = hook.rewakes and answer.blocked
        if text := "\n".join(filter(None, [answer.reason if rewakes else "", answer.context])):
            effects = recorded_fields(HookAnswer(context=text, blocked=rewakes))
            answered = _answered(hook.event, payload, answer, effects)
            await self._session.record(replace(answered, later=True))
            await self._session.add_context(text, later=True)
        self.shared.wakes = self.shared.wakes or rewakes

    def _is_for(self, hook: Hook, event: HookEvent, matched: str, access: Access | None) -> bool:
        if not is_for(hook, event, matched):
            return False
        return not hook.condition or (
            access is not None and self._session.fits(hook.condition, access)
        )

    async def _report(self, answer: HookAnswer) -> None:
        """Show the hooks' messages to the user, and each failure once."""
        if answer.message:
            await self._session.notify(NoticeShown(severity="info", title=answer.message))
        if answer.failure:
            await self._warn(f"A hook failed: {answer.failure}")

    async def _warn(self, title: str) -> None:
        """Show a warning once."""
        if title not in self.shared.failed:
            self.shared.failed.add(title)
            await self._session.notify(NoticeShown(severity="warning", title=title))


def event_subject(payload: JsonObject) -> str:
    """Return the fields that say what an event is about, as JSON."""
    fields = {name: value for name, value in payload.items() if name not in _COMMON_FIELDS}
    return json.encode(fields).decode()


def _answered(
    event: HookEvent, payload: JsonObject, answer: HookAnswer, effects: JsonObject
) -> HookAnswered:
    by, call = answer.by, payload.get("tool_use_id")
    return HookAnswered(
        on=event,
        subject=event_subject(payload),
        call=CallId(call) if isinstance(call, str) else None,
        name="" if by is None else by.name,
        source="" if by is None else by.source,
        answer=effects,
    )


def context_notice(text: str, title: str = CONTEXT) -> NoticeShown:
    """Return the notice that gives the model a text from hooks, without secrets."""
    return NoticeShown(
        severity="info",
        title=title,
        description=text,
        message=new_message_id(),
        for_model=f"[From a hook: {text}]",
    )
