"""The host of another agent: permission questions, files, and the events of its child session."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from msgspec import json
from msgspec.structs import replace

from acp_agent.acp_client.agent import PermissionOption
from acp_agent.acp_client.updates import ExternalCall
from acp_agent.agent.call_runner import CallRunner
from acp_agent.agent.resources import PermissionRequest
from acp_agent.agent.scrub_events import safe_text, scrub_content, scrub_json
from acp_agent.agent.tool_calls import ProposedCall
from acp_agent.content import CallContent, DiffPart, JsonObject, TextBlock, printable_line
from acp_agent.errors import EditorFailedError, MissingFileError, ToolError
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    PermissionAsked,
    PermissionDecided,
    ToolCalled,
    ToolEnded,
    ToolKind,
    ToolShown,
    UsageReported,
    UserMessage,
)
from acp_agent.events.turns import DecidedBy
from acp_agent.ids import new_call_id, new_message_id
from acp_agent.permissions.access import Allow, Ask, Choice, Decision, ReadAccess, Refuse
from acp_agent.permissions.mode_refusals import READ_ONLY_REFUSALS
from acp_agent.session.children.child import ChildSession, ChildUser
from acp_agent.session.core import SessionCore
from acp_agent.trust.store import TRUST_OPTION
from acp_agent.workspace.file_io import display_path
from acp_agent.workspace.scrub import incomplete_tail, scrub

_MAX_LABEL = 100  # characters of the label of an option
_MAX_OPTIONS = 10
_KINDS = ("allow_once", "allow_always", "reject_once", "reject_always")  # in the order of buttons


class OtherAgentUser(ChildUser):
    """The user, asked by another agent, whose name precedes every question."""

    def __init__(self, core: SessionCore, child: ChildSession, name: str) -> None:
        super().__init__(core, child.id)
        self._name = name
        self._approved: dict[str, DiffPart] = {}  # changes that the user allowed, by path

    def approve(self, content: Sequence[CallContent]) -> None:
        """Record the changes shown by a call that the user allowed."""
        for part in content:
            if isinstance(part, DiffPart):
                self._approved[_real_path(part.path)] = part

    async def ask_permission(self, request: PermissionRequest, ask: Ask) -> Decision:
        """Ask the user, unless they have just allowed the agent exactly this change."""
        changes = [part for part in request.content if isinstance(part, DiffPart)]
        allow_once = next((choice for choice in ask.choices if choice.kind == "allow_once"), None)
        if changes and allow_once is not None and not (ask.warning or ask.rule):
            approved = [self._approved.pop(_real_path(change.path), None) for change in changes]
            if all(map(_is_same_change, approved, changes)):
                return Decision(choice=allow_once)
        title = f"{self._name}: {request.title}"
        return await super().ask_permission(replace(request, title=title), ask)


class OtherAgentHost:
    """The host of another agent (`acp_agent.acp_client.agent.Host`).

    Args:
        limit: the agent's time limit, which is paused while the user is asked.
    """

    def __init__(
        self, core: SessionCore, child: ChildSession, name: str, limit: asyncio.Timeout
    ) -> None:
        self._core = core
        self._child = child
        self._limit = limit
        self._questions = 0
        self._remaining = 0.0
        self._user = OtherAgentUser(core, child, name)
        self._pending_text: AgentText | AgentThought | None = None  # may end inside a secret
        self._searched = 0  # events of the child already searched for user messages
        child.resources = replace(child.resources, user=self._user)

    # -- events ----------------------------------------------------------------------------------

    async def show(self, events: Sequence[AnyEvent]) -> None:
        """Show events of the agent without secrets, and add their cost."""
        clean_events = self._without_secrets(events)
        for index, event in enumerate(clean_events):
            if isinstance(event, ModelAnswered) and event.cost is not None:
                self._core.state.charge(event.cost)
                self._child.budget.add_cost(event.cost)
            elif isinstance(event, UsageReported):
                clean_events[index] = replace(event, cost=self._child.budget.cost)
        await self._child.emit(*clean_events)

    def _without_secrets(self, events: Sequence[AnyEvent]) -> list[AnyEvent]:
        secrets, clean = self._child.secrets, list[AnyEvent]()
        for event in events:
            pending, self._pending_text = self._pending_text, None
            if isinstance(event, AgentText | AgentThought):
                continues = pending is not None and (type(pending), pending.message) == (
                    type(event), event.message,
                )  # fmt: skip
                prefix = pending.text if pending is not None and continues else ""
                if pending is not None and not continues:
                    clean.append(_scrub_text(pending, secrets))
                text = prefix + event.text
                tail = incomplete_tail(text, secrets)
                if tail:
                    self._pending_text = replace(event, text=text[len(text) - tail :])
                if tail < len(text):
                    safe = replace(event, text=text[: len(text) - tail])
                    clean.append(_scrub_text(safe, secrets))
                continue
            if pending is not None:
                clean.append(_scrub_text(pending, secrets))
            clean.append(_without_secrets(event, secrets))
        return clean

    async def unsent_messages(self) -> str:
        """Return the user's messages since the last call; empty if there are none."""
        events = await self._child.history()
        new = events[self._searched :]
        self._searched = len(events)
        messages = [event for event in new if isinstance(event, UserMessage) and event.steering]
        blocks = [block for message in messages for block in message.content]
        return "\n\n".join(block.text for block in blocks if isinstance(block, TextBlock))

    # -- permissions -----------------------------------------------------------------------------

    async def ask(self, call: ExternalCall, options: Sequence[PermissionOption]) -> str | None:
        """Decide by the mode, or ask the user, about a call of the agent.

        The effects of the agent's tools are unknown, so only the mode that allows everything allows
        them without a question, and the read-only modes refuse them. Only the user decides whether
        to trust a folder.
        """
        mode = self._user.mode
        refused = READ_ONLY_REFUSALS.get(mode)
        about_trust = any(candidate.id == TRUST_OPTION for candidate in options)
        if (mode == "full" and not about_trust) or refused is not None:
            kinds = ("reject_once", "reject_always") if refused else ("allow_once", "allow_always")
            option = next(
                (option for kind in kinds for option in options if option.kind == kind), None
            )
            if option is not None or refused is not None:
                why = refused.why if refused is not None else ""
                await self._record_decision(
                    call, allowed=refused is None, why=why, by="mode", name=mode
                )
                return None if option is None else option.id
        ordered = sorted(options, key=lambda each: _KINDS.index(each.kind))
        return await self._ask_user(call, ordered[:_MAX_OPTIONS])

    async def _ask_user(
        self, call: ExternalCall, options: Sequence[PermissionOption]
    ) -> str | None:
        secrets = self._child.secrets
        choices = tuple(
            Choice(
                id=TRUST_OPTION if option.id == TRUST_OPTION else f"{option.kind}_{number}",
                label=printable_line(safe_text(option.label, secrets), _MAX_LABEL),
                kind=option.kind,
            )
            for number, option in enumerate(options)
        )
        if not choices:
            return None
        await self._child.emit(
            PermissionAsked(call=call.call, options=tuple(choice.id for choice in choices))
        )
        request = PermissionRequest(
            call=call.call,
            title=safe_text(call.title, secrets),
            kind=call.kind,
            arguments=scrub_json(call.arguments, secrets),
            content=scrub_content(call.content, secrets) or (),
            locations=call.locations,
        )
        with self._pause_limit():
            try:
                decision = await self._user.ask_permission(request, Ask(choices=choices))
            except EditorFailedError:
                decision = Decision(by="nobody")
        choice = decision.choice
        allowed = choice is not None and choice.kind.startswith("allow")
        await self._record_decision(
            call,
            allowed=allowed,
            why="dismissed" if choice is None else choice.label,
            by=decision.by,
            name=decision.name,
        )
        if choice is None:
            return None
        if allowed:
            self._user.approve(call.content)
        return options[choices.index(choice)].id

    async def _record_decision(
        self, call: ExternalCall, *, allowed: bool, why: str, by: DecidedBy, name: str
    ) -> None:
        await self._child.emit(
            PermissionDecided(
                call=call.call, allowed=allowed, by=by, why=why, name=name, known=True
            )
        )

    @contextmanager
    def _pause_limit(self) -> Iterator[None]:
        """Pause the agent's time limit inside the `with` block."""
        loop, deadline = asyncio.get_running_loop(), self._limit.when()
        if self._questions == 0 and deadline is not None:
            self._remaining = deadline - loop.time()
            self._limit.reschedule(None)
        self._questions += 1
        try:
            yield
        finally:
            self._questions -= 1
            if self._questions == 0 and not self._limit.expired():
                self._limit.reschedule(loop.time() + self._remaining)

    # -- files -----------------------------------------------------------------------------------

    async def read_file(self, path: str) -> str:
        """Return the text of a file in the session's folders. Raises AcpAgentError."""
        tools, files = self._child.resources.tools, self._child.resources.tools.workspace.files
        resolved = files.resolve(path, to_read=True)
        verdict = tools.gate.judge(
            ReadAccess((str(resolved),), (path,)),
            mode=self._user.mode,
            project=str(tools.workspace.cwd),
            agent=self._child.resources.agent,
        )
        match verdict:
            case Refuse():
                raise ToolError(verdict.why)
            case Ask():
                await self._call("read", "read", f"Read {self._display_path(path)}", {"path": path})
            case Allow():
                pass
        file = await files.read_text(resolved)
        files.mark_seen(file)
        return file.text

    async def write_file(self, path: str, text: str) -> None:
        """Write a file like our own tool `write`: with permission and a checkpoint.

        Raises:
            AcpAgentError: it cannot be written, or writing is not allowed.
        """
        # Some agents also write the file themselves.
        if await self._has_text(path, text):
            return
        try:
            title = f"Write {self._display_path(path)}"
            await self._call("write", "edit", title, {"path": path, "content": text})
        except ToolError:
            if not await self._has_text(path, text):
                raise

    def _display_path(self, path: str) -> str:
        files = self._child.resources.tools.workspace.files
        return display_path(files.resolve(path, to_read=True), files.roots[0])

    async def _has_text(self, path: str, text: str) -> bool:
        """Return whether a file already has this text, and mark it as read."""
        files = self._child.resources.tools.workspace.files
        try:
            file = await files.read_text(files.resolve(path))
        except MissingFileError:
            return False
        files.mark_seen(file)
        return file.text == text

    async def _call(self, tool: str, kind: ToolKind, title: str, arguments: JsonObject) -> None:
        """Call one of our own tools for the agent.

        Raises:
            ToolError: the call failed or was refused.
        """
        arguments_json = json.encode(arguments).decode()
        safe_arguments = scrub_json(arguments_json, self._child.secrets)
        call = new_call_id()
        await self._child.emit(
            ToolCalled(
                call=call,
                message=new_message_id(),
                name=tool,
                arguments=safe_arguments,
                title=printable_line(title),
                kind=kind,
            )
        )
        proposed = ProposedCall(
            call=call, name=tool, arguments=arguments_json, safe_arguments=safe_arguments
        )
        with self._pause_limit():
            await CallRunner(self._child.resources).run([proposed])
        await self._child.flush()
        for event in reversed(await self._child.history()):
            if isinstance(event, ToolEnded) and event.call == call:
                if event.failed:
                    raise ToolError(event.result)
                return


def _real_path(path: str) -> str:
    return os.path.realpath(path)


def _is_same_change(approved: DiffPart | None, change: DiffPart) -> bool:
    """Return whether the user saw a change: as whole texts, or as the replaced piece."""
    if approved is None:
        return False
    if approved.new_text == change.new_text:
        return True
    old, old_text = approved.old_text, change.old_text
    return (
        bool(old)
        and old_text is not None
        and (old_text.replace(old or "", approved.new_text, 1) == change.new_text)
    )


def _scrub_text(event: AgentText | AgentThought, secrets: Sequence[str]) -> AnyEvent:
    return replace(event, text=scrub(event.text, secrets))


def _without_secrets(event: AnyEvent, secrets: Sequence[str]) -> AnyEvent:
    """Return an event of a call without secrets; the journal cleans titles and plans."""
    match event:
        case ToolCalled():
            return replace(
                event,
                arguments=scrub_json(event.arguments, secrets),
                content=scrub_content(event.content, secrets) or (),
            )
        case ToolShown():
            return replace(event, content=scrub_content(event.content, secrets))
        case ToolEnded():
            return replace(
                event,
                content=scrub_content(event.content, secrets),
                result=scrub(event.result, secrets),
            )
        case _:
            return event
