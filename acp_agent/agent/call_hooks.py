"""Run the user's hooks around a tool call: they decide about it and add to its result."""

from __future__ import annotations

from collections.abc import Sequence
from time import monotonic
from typing import NamedTuple

from msgspec import json
from msgspec.structs import replace
from pydantic import BaseModel

from acp_agent.agent.resources import TurnResources
from acp_agent.agent.scrub_events import scrub_object
from acp_agent.agent.tool_calls import ProposedCall
from acp_agent.content import JsonObject, text_part
from acp_agent.errors import PermissionRefusedError
from acp_agent.events import NoticeShown, PermissionDecided, ToolEnded
from acp_agent.hooks.session_hooks import SessionHooks, context_notice
from acp_agent.hooks.types import NO_ANSWER, HookAnswer, combine_answers
from acp_agent.permissions.access import Access, Choice
from acp_agent.tools.base import AnyTool
from acp_agent.tools.calls.argument_json import read_arguments
from acp_agent.tools.calls.effective_calls import effective_calls
from acp_agent.workspace.scrub import scrub

CHANGED_CALL = "A hook changed a call."  # the title of a notice


class _HookedCall(NamedTuple):
    """A call as hooks see it: in our names, of one file, without secrets."""

    call: ProposedCall
    arguments: JsonObject


class CallHooks:
    """Runs the hooks around the calls of one answer.

    Hooks see what a call does, in whatever form the model made it: a call that edits several files
    is an event for each file and each replacement.
    """

    def __init__(self, turn: TurnResources, hooks: SessionHooks) -> None:
        self._turn = turn
        self._hooks = hooks
        self._accesses: dict[str, Access] = {}
        self._calls: dict[str, list[_HookedCall]] = {}
        self._arguments: dict[str, tuple[JsonObject, ...]] = {}  # of the same calls, with secrets
        self._batch: list[JsonObject] = []  # ended calls, for the hooks on all calls together
        self._notes: dict[str, list[str]] = {}  # for the model, from the hooks before each call
        self._started_at: dict[str, float] = {}
        self._ends_turn = False

    async def before_call(
        self, call: ProposedCall, tool: AnyTool, params: BaseModel, access: Access
    ) -> HookAnswer:
        """Ask the hooks about a call before its permission is checked.

        Args:
            tool: the tool that the call means.
            params: its parameters.

        Returns:
            The answer of the hooks. If it changes the call, its arguments replace the call's.

        Raises:
            PermissionRefusedError: a hook refuses the call.
            StoreError: the journal could not be written.
        """
        self._accesses[call.call] = access
        secrets, effective = self._turn.journal.secrets, effective_calls(tool, params, access)
        self._arguments[call.call] = tuple(each.arguments for each in effective)
        self._calls[call.call] = [
            _HookedCall(replace(call, name=each.tool), scrub_object(each.arguments, secrets) or {})
            for each in effective
        ]
        answers = []
        for hooked, arguments in self._hooked_calls(call):
            answers.append(await self._hooks.before_call(hooked, arguments, access))
            if answers[-1].blocked or answers[-1].stop:
                break
        answer = await self._decided(call, answers)
        if answer.context:
            self._note(call, answer.context)
        if answer.changes_call:
            await self._record_change(call, answer)
        return answer

    async def ask_permission(
        self, call: ProposedCall, access: Access, choices: Sequence[Choice] = ()
    ) -> HookAnswer:
        """Ask the hooks for permission before the user is asked.

        Args:
            choices: the buttons of the question to the user.

        Raises:
            PermissionRefusedError: a hook refuses the call.
            StoreError: the journal could not be written.
        """
        answers = [
            await self._hooks.on_question(hooked, arguments, access, choices)
            for hooked, arguments in self._hooked_calls(call)
        ]
        answer = await self._decided(call, answers)
        if answer.permission == "allow" and answer.changes_call:
            await self._record_change(call, answer)
        return answer

    async def _decided(self, call: ProposedCall, answers: Sequence[HookAnswer]) -> HookAnswer:
        """Return the answers about all that a call does as one. Only all together allow it.

        Raises:
            PermissionRefusedError: a hook refuses the call.
            StoreError: the journal could not be written.
        """
        answer = combine_answers(answers) if answers else NO_ANSWER
        if answer.arguments is not None and len(answers) > 1:
            given = zip(answers, self._arguments[call.call], strict=False)
            parts = tuple(old if each.arguments is None else each.arguments for each, old in given)
            answer = replace(answer, arguments=None, parts=parts)
        if answer.blocked or answer.stop:
            raise await self._record_refusal(call, answer)
        if answer.permission == "allow" and any(each.permission is None for each in answers):
            return replace(answer, permission=None)
        return answer

    def _hooked_calls(self, call: ProposedCall) -> list[_HookedCall]:
        """Return what a call does, or the call itself if that is unknown."""
        return self._calls.get(call.call) or [_HookedCall(call, _arguments(call))]

    def _note(self, call: ProposedCall, text: str) -> None:
        self._notes.setdefault(call.call, []).append(text)

    async def _record_change(self, call: ProposedCall, answer: HookAnswer) -> None:
        """Record and show the arguments that replace those of a call."""
        arguments = answer.parts or (answer.arguments or {},)
        secrets = self._turn.journal.secrets
        safe = [scrub_object(part, secrets) or {} for part in arguments]
        given = zip(self._hooked_calls(call), safe, strict=False)
        self._arguments[call.call] = arguments
        self._calls[call.call] = [_HookedCall(hooked.call, part) for hooked, part in given]
        changed = json.encode(safe if answer.parts else safe[0]).decode()
        self._note(call, f"A hook changed the arguments to: {changed}")
        await self._turn.journal.emit(
            NoticeShown(
                severity="info",
                title=CHANGED_CALL,
                description=f"{_name(answer)}: {call.name} {changed}"[:2_000],
            )
        )

    async def report_refusal(self, call: ProposedCall, access: Access, reason: str) -> None:
        """Tell the hooks that a call was refused."""
        for hooked, arguments in self._hooked_calls(call):
            await self._hooks.report_refusal(hooked, arguments, access, reason)

    def record_start(self, call: ProposedCall) -> None:
        """Note that the tool of a call begins to run."""
        self._started_at[call.call] = monotonic()

    async def record_permission(self, call: ProposedCall, answer: HookAnswer) -> None:
        """Record that a hook allowed a call. Raises StoreError."""
        await self._record(call, answer, allowed=True)

    async def after_call(self, call: ProposedCall, end: ToolEnded) -> tuple[ToolEnded, bool]:
        """Return the end of a call as changed by the hooks, and whether the turn ends here."""
        started_at = self._started_at.pop(call.call, None)
        files = {  # a program that formats a file runs once for it
            (hooked.call.name, hooked.arguments.get("path")): hooked
            for hooked in reversed(self._hooked_calls(call))
        }
        answers = [
            await self._hooks.after_call(
                hooked,
                arguments,
                self._accesses.get(call.call),
                end.result,
                failed=end.failed,
                duration=None if started_at is None else monotonic() - started_at,
            )
            for hooked, arguments in reversed(files.values())
        ]
        answer = combine_answers(answers)
        secrets = self._turn.journal.secrets
        result = end.result if answer.output is None else scrub(answer.output, secrets)
        if self._hooks.has("PostToolBatch"):
            self._batch += [
                self._hooks.batched_call(hooked, arguments, result)
                for hooked, arguments in self._hooked_calls(call)
            ]
        notes = [*self._notes.get(call.call, ()), answer.reason if answer.blocked else ""]
        notes.append(answer.context)
        text = scrub("\n".join(filter(None, notes)), secrets)
        if text:
            result = f"{result}\n\n[From hooks: {text}]"
        if result == end.result:
            return end, answer.stop
        content = end.content
        if answer.blocked and answer.reason:
            reason = text_part(f"{_name(answer)}: {scrub(answer.reason, secrets)}")
            content = (*(content or ()), reason)
        return replace(end, result=result, content=content), answer.stop

    async def after_calls(self) -> bool:
        """Tell the hooks that all calls of an answer have ended; return whether the turn ends.

        Raises:
            StoreError: the journal could not be written.
        """
        await self._hooks.report_files()
        if not self._batch:
            return self._ends_turn
        answer = await self._hooks.after_batch(self._batch)
        self._batch = []
        ends_turn = self._ends_turn or answer.stop or answer.blocked
        notes = [answer.reason if answer.blocked else "", answer.context]
        if text := scrub("\n".join(filter(None, notes)), self._turn.journal.secrets):
            notice = context_notice(text)
            if ends_turn:  # text for the model would have it continue
                notice = NoticeShown(
                    severity="info", title="A hook ended the turn.", description=text
                )
            await self._turn.journal.emit(notice)
        return ends_turn

    async def _record_refusal(
        self, call: ProposedCall, answer: HookAnswer
    ) -> PermissionRefusedError:
        self._ends_turn = self._ends_turn or answer.stop
        await self._record(call, answer, allowed=False)
        reason = scrub(answer.reason, self._turn.journal.secrets) or "it gives no reason"
        return PermissionRefusedError(
            f"a hook refused this call: {reason}",
            advice="do what it says, or ask the user; do not try the same in another form",
            shown=f"The hook {_name(answer)} refused this call: {reason}",
        )

    async def _record(self, call: ProposedCall, answer: HookAnswer, *, allowed: bool) -> None:
        source = "" if answer.by is None else f" ({answer.by.source})"
        await self._turn.journal.emit(
            PermissionDecided(
                call=call.call,
                allowed=allowed,
                by="rule",
                why=scrub(answer.reason, self._turn.journal.secrets),
                known=True,
                rule=f"{'allow' if allowed else 'deny'} hook {_name(answer)}{source}",
            )
        )


def _name(answer: HookAnswer) -> str:
    return "" if answer.by is None else answer.by.name


def _arguments(call: ProposedCall) -> JsonObject:
    """Return a call's arguments as the model wrote them, without secrets."""
    try:
        return read_arguments(call.safe_arguments)
    except ValueError:
        return {}
