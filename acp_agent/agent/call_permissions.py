"""Decide whether a call may run: by rules, mode and grants, or by asking the user."""

from __future__ import annotations

import asyncio
import functools
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from acp_agent.agent.resources import PermissionRequest, Tools, TurnResources
from acp_agent.agent.scrub_events import hidden_in_diffs, safe_text, scrub_content
from acp_agent.agent.tool_calls import ProposedCall
from acp_agent.content import text_part
from acp_agent.errors import EditorFailedError, PermissionRefusedError, StoreError
from acp_agent.events import NoticeShown, PermissionAsked, PermissionDecided
from acp_agent.permissions.access import (
    Allow,
    Ask,
    Choice,
    CommandAccess,
    Decision,
    NoAccess,
    ReadAccess,
    Refuse,
    Verdict,
    WriteAccess,
)
from acp_agent.permissions.guarded_files import load_patterns
from acp_agent.tools.base import AnyTool, Prepared
from acp_agent.workspace.threads import in_daemon_thread

if TYPE_CHECKING:  # only needed if there are hooks
    from acp_agent.agent.call_hooks import CallHooks
    from acp_agent.hooks.types import HookAnswer

_STOP_SECONDS = 2.0  # to wait for a cancelled check of a command to end


class Refusal(NamedTuple):
    """The reason why a call did not run, in a text for the model and one for the user."""

    model: str
    user: str


DISMISSED = Refusal(
    "The user dismissed the question without an answer, so the call did not run. Go on without "
    "it, or ask what they want.",
    "You dismissed the question without an answer, so the call did not run.",
)
UNASKED = Refusal(
    "The editor could not ask the user for permission, so the call did not run. Go on with what "
    "needs no permission, and tell the user.",
    "The editor could not ask you for permission, so the call did not run.",
)
UNCLEAR = Refusal(
    "The editor's answer to the question made no sense, so the call did not run. Go on with what "
    "needs no permission, and tell the user.",
    "The editor's answer to the question made no sense, so the call did not run.",
)
REJECTED = Refusal(
    "The user refused this call. Do not try it again in another form; ask what they want.",
    "You refused this call.",
)
NOBODY = Refusal(
    "The call was refused, as there is nobody to ask for permission. Do not try it again in "
    "another form.",
    "The call was refused, as there is nobody to ask for permission.",
)
NOT_BEGUN = Refusal(
    "The user refused another call of this answer, which ends the turn; this one did not run.",
    "You refused another call of this answer, which ends the turn; this one did not run.",
)


class CallPermissions:
    """Decides about the calls of one answer.

    Attributes:
        end_turn: true if the user refused a call and a refusal ends the turn by the settings.
    """

    def __init__(self, turn: TurnResources, hooks: CallHooks | None = None) -> None:
        self._turn = turn
        self._hooks = hooks
        self.end_turn = False

    async def judge(self, prepared: Prepared) -> Verdict:
        """Return the verdict of the rules, the mode and the grants."""
        turn, access = self._turn, prepared.access
        if isinstance(access, WriteAccess):
            await asyncio.to_thread(load_patterns)
            access = replace(access, output_folder=turn.limits.output_folder)
            if turn.user.mode == "full":
                is_named = await turn.tools.workspace.is_named(_files(turn, access))
                access = replace(access, user_named=is_named)
        stopped = threading.Event()
        judge = functools.partial(
            turn.tools.gate.judge,
            access,
            mode=turn.user.mode,
            project=str(turn.tools.workspace.cwd),
            agent=turn.agent,
            stopped=stopped.is_set,
        )
        if not isinstance(access, CommandAccess):
            return judge()
        judgement = asyncio.create_task(in_daemon_thread(judge))
        try:
            return await asyncio.shield(judgement)
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.wait([judgement], timeout=_STOP_SECONDS)
            raise

    async def require(
        self,
        call: ProposedCall,
        tool: AnyTool,
        prepared: Prepared,
        hooked: HookAnswer | None = None,
        *,
        reprepare: Callable[[HookAnswer], Awaitable[Prepared]],
        wait_to_ask: Callable[[], Awaitable[None]],
    ) -> Prepared:
        """Require permission for a call; ask the user if neither rules, mode nor grants decide.

        Args:
            hooked: the answer of the hooks that run before every call.
            reprepare: prepares and shows the call with arguments from a hook.
            wait_to_ask: waits until all earlier calls are decided.

        Returns:
            The prepared call; its access shows if it was allowed because it only reads.

        Raises:
            PermissionRefusedError: the call may not run; the message is for the model.
            StoreError: the journal could not be written.
        """
        verdict = self._with_hook(await self.judge(prepared), hooked)
        if isinstance(verdict, Ask):
            await wait_to_ask()
            # The answer to an earlier question may have been remembered.
            verdict = self._with_hook(await self.judge(prepared), hooked)
        if self.end_turn:
            raise _refusal_error(NOT_BEGUN)
        match verdict:
            case Allow():
                if verdict.rule or not isinstance(prepared.access, NoAccess | ReadAccess):
                    await self._record_decision(call, verdict)
                if verdict.only_reads and isinstance(prepared.access, CommandAccess):
                    return replace(prepared, access=replace(prepared.access, only_reads=True))
            case Refuse():
                await self._record_decision(call, verdict)
                if self._hooks is not None:
                    await self._hooks.report_refusal(call, prepared.access, verdict.why)
                raise PermissionRefusedError(
                    verdict.why, advice=verdict.advice, shown=verdict.user_reason
                )
            case Ask():
                answer = await self._permission_by_hook(call, prepared, verdict, hooked)
                if answer is None:
                    await self._ask(call, tool, prepared, verdict)
                elif answer.changes_call and answer is not hooked:
                    changed = await reprepare(answer)
                    return await self.require(
                        call,
                        tool,
                        changed,
                        answer,
                        reprepare=reprepare,
                        wait_to_ask=wait_to_ask,
                    )
                elif self._hooks is not None:
                    await self._hooks.record_permission(call, answer)
        return prepared

    def _with_hook(self, verdict: Verdict, hooked: HookAnswer | None) -> Verdict:
        """Return the verdict, or a question with the hook's reason if a hook requires one."""
        if hooked is None or hooked.permission not in {"ask", "defer"}:
            return verdict
        if isinstance(verdict, Ask):
            return replace(verdict, warning=verdict.warning or hooked.reason)
        if isinstance(verdict, Refuse):
            return verdict
        from acp_agent.permissions.choices import gate_texts, once_choices  # noqa: PLC0415 - rare

        choices = once_choices(gate_texts(self._turn.user.translate.language))
        return Ask(choices=choices, warning=hooked.reason)

    async def _permission_by_hook(
        self, call: ProposedCall, prepared: Prepared, ask: Ask, hooked: HookAnswer | None
    ) -> HookAnswer | None:
        """Return the answer of a user's hook that allows the call in place of a question.

        None: the user is asked. That holds for every hook if a rule of the policy requires the
        question, or if the question has a warning.
        """
        if self._hooks is None or ask.rule or ask.warning:
            return None
        if hooked is None or hooked.permission != "allow":
            hooked = await self._hooks.ask_permission(call, prepared.access, ask.choices)
        return hooked if hooked.permission == "allow" else None

    async def _record_decision(self, call: ProposedCall, verdict: Allow | Refuse) -> None:
        """Record a decision that was made without a question."""
        await self._turn.journal.emit(
            PermissionDecided(
                call=call.call,
                allowed=isinstance(verdict, Allow),
                by=verdict.by,
                why=_why(verdict),
                name=self._turn.user.mode if verdict.by == "mode" else "",
                known=True,
                rule=verdict.rule,
                tier=verdict.tier or "",
            )
        )

    async def _ask(self, call: ProposedCall, tool: AnyTool, prepared: Prepared, ask: Ask) -> None:
        turn = self._turn
        content = scrub_content(prepared.content, turn.journal.secrets) or ()
        if hidden := hidden_in_diffs(content):
            warning = turn.tools.gate.invisible_warning.format(places=hidden)
            ask = replace(ask, warning=f"{ask.warning} {warning}".strip())
        if ask.warning:
            content = (text_part(safe_text(ask.warning, turn.journal.secrets)), *content)
        await turn.journal.emit(
            PermissionAsked(call=call.call, options=tuple(choice.id for choice in ask.choices))
        )
        access = prepared.access if isinstance(prepared.access, CommandAccess) else None
        request = PermissionRequest(
            call=call.call,
            title=safe_text(_title(turn.tools, call, prepared), turn.journal.secrets),
            kind="edit" if isinstance(prepared.access, WriteAccess) else tool.kind,
            arguments=call.safe_arguments,
            content=content,
            locations=prepared.locations,
            command=None if access is None else safe_text(access.command, turn.journal.secrets),
            cwd=None if access is None else access.cwd,
        )
        if turn.hooks is not None:
            turn.hooks.report_question(request.title)
        default = ("dismissed", DISMISSED)
        try:
            decision = await turn.user.ask_permission(
                request, _safe_question(ask, turn.journal.secrets)
            )
        except EditorFailedError as error:
            default = ("unclear", UNCLEAR) if error.answered else ("not asked", UNASKED)
            decision = Decision(by="nobody")
        choice = decision.choice
        if choice is None and decision.by != "user" and default[0] == "dismissed":
            default = ("not asked", UNASKED)
        button = choice.label if choice is not None and decision.by == "user" else ""
        allowed = choice is not None and choice.kind.startswith("allow")
        await turn.journal.emit(
            PermissionDecided(
                call=call.call,
                allowed=allowed,
                by=decision.by,
                why=button if choice is not None else default[0],
                name=decision.name,
                known=True,
                rule=ask.rule,
                tier=ask.tier or "",
                remembered=() if choice is None else tuple(grant.id for grant in choice.grants),
            )
        )
        if choice is not None and choice.grants:
            await self._remember(choice)
        if not allowed:
            if turn.limits.refusal_ends_turn:
                self.end_turn = True
            raise _refusal_error(default[1] if choice is None else _refusal(decision))

    async def _remember(self, choice: Choice) -> None:
        """Remember a choice for later calls. If that fails, it holds only for this call."""
        try:
            await asyncio.to_thread(self._turn.tools.gate.remember, choice)
        except StoreError as error:
            title = f"“{choice.label}” was not remembered: {error}"
            await self._turn.journal.emit(NoticeShown(severity="warning", title=title))


def _files(turn: TurnResources, access: WriteAccess) -> list[tuple[str, ...]]:
    """Return the absolute paths of each file: the resolved path and the requested one."""
    folder = turn.tools.workspace.cwd
    requested = [os.path.normpath(folder / name) for name in access.requested_names]
    if len(requested) == len(access.paths):
        return list(zip(access.paths, requested, strict=True))
    return [(path,) for path in (*access.paths, *requested)]


def _refusal_error(why: Refusal) -> PermissionRefusedError:
    return PermissionRefusedError(why.model, shown=why.user)


def _refusal(decision: Decision) -> Refusal:
    """Return the reason for a call that was refused by a choice."""
    match decision.by:
        case "user":
            return REJECTED
        case "flag":
            why = f"The call was refused by {decision.name}, so it did not run."
            return Refusal(f"{why} Do not try it again in another form.", why)
        case "nobody":
            return NOBODY


def _why(verdict: Allow | Refuse) -> str:
    """Return the reason of a verdict for the user."""
    return (verdict.user_reason or verdict.why) if isinstance(verdict, Refuse) else verdict.why


def _safe_question(ask: Ask, secrets: Sequence[str]) -> Ask:
    """Return the question with labels that are safe to show."""
    choices = (replace(choice, label=safe_text(choice.label, secrets)) for choice in ask.choices)
    return replace(ask, choices=tuple(choices))


def _title(tools: Tools, call: ProposedCall, prepared: Prepared) -> str:
    """Return the call's title, made from the arguments without secrets if possible.

    If a title is made from the arguments and then cut, a secret that is cut cannot be recognised.
    """
    if prepared.title == tools.toolset.call_title(call.name, call.arguments)[0]:
        return tools.toolset.call_title(call.name, call.safe_arguments)[0]
    return prepared.title
