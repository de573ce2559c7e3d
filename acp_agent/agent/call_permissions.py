"""Whether a call may run: the gate's word, or the user's."""

from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Sequence

from msgspec.structs import replace

from acp_agent.agent.answer import ProposedCall
from acp_agent.agent.call_order import Place
from acp_agent.agent.cleaning import clean_content, clean_words
from acp_agent.agent.endings import (
    DISMISSED,
    NOBODY,
    NOT_BEGUN,
    REJECTED,
    UNASKED,
    UNCLEAR,
    Refusal,
    refused_by,
)
from acp_agent.agent.labels import label
from acp_agent.agent.resources import PermissionRequest, Tools, TurnResources
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
)
from acp_agent.tools.base import AnyTool, Prepared
from acp_agent.workspace.threads import in_daemon_thread

_STOP_SECONDS = 2.0  # for the judging of a command to end where nobody waits for it any more


class CallPermissions:
    """Decides about the calls of one answer.

    Args:
        turn: what the turn works with.

    Attributes:
        end_turn: whether the user refused a call, and the settings say that this ends the turn.
    """

    def __init__(self, turn: TurnResources) -> None:
        self._turn = turn
        self.end_turn = False

    async def judge(self, prepared: Prepared) -> Verdict:
        """What the rules, the mode and the grants say."""
        turn, access = self._turn, prepared.access
        stopped = threading.Event()
        judge = functools.partial(
            turn.tools.gate.judge,
            access,
            mode=turn.user.mode,
            project=str(turn.tools.workspace.cwd),
            stopped=stopped.is_set,
        )
        if not isinstance(access, CommandAccess):
            return judge()
        judging = asyncio.create_task(in_daemon_thread(judge))
        try:
            return await asyncio.shield(judging)
        except asyncio.CancelledError:
            stopped.set()
            await asyncio.wait([judging], timeout=_STOP_SECONDS)
            raise

    async def ask_for(self, place: Place, tool: AnyTool, prepared: Prepared) -> Prepared:
        """Find out whether a call may run; asks the user where that is not clear.

        Returns:
            The call, whose access says whether it was let run since it only reads.

        Raises:
            PermissionRefusedError: it may not; the message is for the model.
            StoreError: the journal could not be written.
        """
        call = place.call
        verdict = await self.judge(prepared)
        if isinstance(verdict, Ask):
            await place.next_to_ask()
            verdict = await self.judge(
                prepared
            )  # what was answered meanwhile may have been for good
        if self.end_turn:
            raise _refused(NOT_BEGUN)
        match verdict:
            case Allow():
                if not isinstance(prepared.access, NoAccess | ReadAccess):
                    await self._decided(call, verdict)
                if verdict.only_reads and isinstance(prepared.access, CommandAccess):
                    return replace(prepared, access=replace(prepared.access, only_reads=True))
            case Refuse():
                await self._decided(call, verdict)
                raise PermissionRefusedError(
                    verdict.why, advice=verdict.advice, shown=verdict.shown
                )
            case Ask():
                await self._ask(call, tool, prepared, verdict)
        return prepared

    async def _decided(self, call: ProposedCall, verdict: Allow | Refuse) -> None:
        """Record what was decided without a question."""
        await self._turn.journal.emit(
            PermissionDecided(
                call=call.call,
                allowed=isinstance(verdict, Allow),
                by=verdict.by,
                why=_why(verdict),
                name=self._turn.user.mode if verdict.by == "mode" else "",
                known=True,
            )
        )

    async def _ask(self, call: ProposedCall, tool: AnyTool, prepared: Prepared, ask: Ask) -> None:
        turn = self._turn
        content = clean_content(prepared.content, turn.journal.secrets) or ()
        if ask.warning:
            content = (text_part(clean_words(ask.warning, turn.journal.secrets)), *content)
        await turn.journal.emit(
            PermissionAsked(call=call.call, options=tuple(choice.id for choice in ask.choices))
        )
        access = prepared.access if isinstance(prepared.access, CommandAccess) else None
        asking = PermissionRequest(
            call=call.call,
            title=clean_words(_title(turn.tools, call, prepared), turn.journal.secrets),
            kind=tool.kind,
            arguments=call.shown,
            content=content,
            locations=prepared.locations,
            command=None if access is None else clean_words(access.command, turn.journal.secrets),
            cwd=None if access is None else access.cwd,
        )
        unchosen = ("dismissed", DISMISSED)
        try:
            decision = await turn.user.ask_permission(asking, _as_shown(ask, turn.journal.secrets))
        except EditorFailedError as error:
            unchosen = ("unclear", UNCLEAR) if error.answered else ("not asked", UNASKED)
            decision = Decision(by="nobody")
        choice = decision.choice
        if choice is None and decision.by != "user" and unchosen[0] == "dismissed":
            unchosen = ("not asked", UNASKED)
        button = choice.label if choice is not None and decision.by == "user" else ""
        allowed = choice is not None and choice.kind.startswith("allow")
        await turn.journal.emit(
            PermissionDecided(
                call=call.call,
                allowed=allowed,
                by=decision.by,
                why=button if choice is not None else unchosen[0],
                name=decision.name,
                known=True,
            )
        )
        if choice is not None and choice.grants:
            await self._remember(choice)
        if not allowed:
            if turn.limits.refusal_ends_turn:
                self.end_turn = True
            raise _refused(unchosen[1] if choice is None else _refusal(decision))

    async def _remember(self, choice: Choice) -> None:
        """Keep what the user decided for good. Where that fails, it holds for this call alone."""
        try:
            await asyncio.to_thread(self._turn.tools.gate.remember, choice)
        except StoreError as error:
            title = f"“{choice.label}” was not remembered: {error}"
            await self._turn.journal.emit(NoticeShown(severity="warning", title=title))


def _refused(why: Refusal) -> PermissionRefusedError:
    return PermissionRefusedError(why.model, shown=why.user)


def _refusal(decision: Decision) -> Refusal:
    """Return why a call did not run that a button refused."""
    match decision.by:
        case "user":
            return REJECTED
        case "flag":
            return refused_by(decision.name)
        case "nobody":
            return NOBODY


def _why(verdict: Allow | Refuse) -> str:
    """Return the reason as the user is shown it."""
    return (verdict.shown or verdict.why) if isinstance(verdict, Refuse) else verdict.why


def _as_shown(ask: Ask, secrets: Sequence[str]) -> Ask:
    """The question with buttons whose words may be shown as they are."""
    choices = (replace(one, label=clean_words(one.label, secrets)) for one in ask.choices)
    return replace(ask, choices=tuple(choices))


def _title(tools: Tools, call: ProposedCall, prepared: Prepared) -> str:
    """The call's title; where it is made of the arguments alone, of those without secrets.

    In a title that was cut the rest of a secret may not be told any more.
    """
    if prepared.title == label(tools.toolset, call.name, call.arguments)[0]:
        return label(tools.toolset, call.name, call.shown)[0]
    return prepared.title
