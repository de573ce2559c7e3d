"""The client of a session: what a session needs of it, and the one that is attached at the moment.

A session belongs to no connection. The client may disconnect while a turn goes on, and come back.
Events are shown to the attached client, and are in the journal for everyone else; an open question
waits for an answer, and is asked again of a client that attaches meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from acp_agent.content import JsonObject
from acp_agent.errors import EditorGoneError, NoEditorFileError, WorkspaceError
from acp_agent.events import AnyEvent
from acp_agent.ids import CallId, SessionId

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.agent.resources import PermissionRequest
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask, Decision
    from acp_agent.session.commands.command import Command
    from acp_agent.tools.base import Answer, Question
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals

# How long a question waits for a client to attach. An hour of a turn is expensive, but a turn must
# not wait for ever for a client that does not come back.
QUESTION_TIMEOUT = 600.0

T = TypeVar("T")


class Client(Protocol):
    """A connected client as its sessions see it.

    What asks the user raises `acp_agent.errors.EditorGoneError` when the client disconnects before
    it answered.
    """

    @property
    def asks_outside_turns(self) -> bool:
        """Whether the user can be asked with a form also while no turn runs."""
        ...

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """The client's files, unsaved changes included; None where it offers none."""
        ...

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """The client's terminals; None where it offers none or the user did not opt in."""
        ...

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Show events that are in the journal; waits while the client reads too slowly."""
        ...

    async def ask_permission(
        self, session: SessionId, asking: PermissionRequest, ask: Ask
    ) -> Decision:
        """Let the user decide about a call.

        Raises:
            EditorFailedError: the user could not be asked, or the answer makes no sense.
        """
        ...

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user something. None: the client cannot show it."""
        ...

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Let the user fill in a form. None: the client shows no forms, or failed to."""
        ...

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the client opens no pages, or failed to."""
        ...

    def trace(self, session: SessionId) -> JsonObject:
        """Return the trace that the turn is part of (W3C Trace Context), as a `_meta`; or empty."""
        ...

    def page_done(self, page: Page) -> None:
        """Report that what the user was sent to a page for is done."""
        ...

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Announce the slash commands that there are now."""
        ...

    def options_changed(self, session: SessionId) -> None:
        """Announce the session's options, which are others now."""
        ...

    def replaced(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """Another client opened the session; this one is shown `left` and nothing more of it."""
        ...


class AttachedClient:
    """The `Client` of a session, whichever is attached at the moment; there may be none.

    Args:
        session: the session.
        on_timeout: called when a question found no client to answer it for `timeout` seconds.
        timeout: how long a question waits for a client, in seconds.
    """

    def __init__(
        self,
        session: SessionId,
        *,
        on_timeout: Callable[[], None],
        timeout: float = QUESTION_TIMEOUT,
    ) -> None:
        self._session = session
        self._on_timeout = on_timeout
        self._timeout = timeout
        self._client: Client | None = None
        self._change = asyncio.Event()  # set, and replaced by another, when the client changes
        self._questions: set[asyncio.Future[Any]] = set()  # those that are open
        self._moving: asyncio.Task[None] | None = None

    # -- attaching ------------------------------------------------------------------------

    @property
    def current(self) -> Client | None:
        """The client that is attached."""
        return self._client

    def attach(self, client: Client, left: Sequence[AnyEvent] = ()) -> None:
        """Attach a client; the one before is told that the session moved.

        Args:
            client: the new client.
            left: what ends for the client before; shown once its questions are withdrawn.
        """
        before = self._client
        if before is client:
            return
        self._change_to(client)
        if before is not None and self._questions:
            self._moving = asyncio.create_task(self._replace(before, left, set(self._questions)))
        elif before is not None:
            before.replaced(self._session, left)

    async def _replace(
        self, before: Client, left: Sequence[AnyEvent], questions: set[asyncio.Future[Any]]
    ) -> None:
        await asyncio.wait(questions)
        if self._client is not before:  # it may be back
            before.replaced(self._session, left)

    def detach(self, client: Client) -> None:
        """Detach a client. Does nothing where another one is attached by now."""
        if self._client is client:
            self._change_to(None)

    async def wait_detached(self, client: Client) -> None:
        """Wait until another client, or none, is attached."""
        while self._client is client:
            await self._change.wait()

    def _change_to(self, client: Client | None) -> None:
        self._client = client
        self._change.set()
        self._change = asyncio.Event()

    # -- what a client does ------------------------------------------------------------------

    @property
    def asks_outside_turns(self) -> bool:
        """Whether a client is attached that shows forms also while no turn runs."""
        return self._client is not None and self._client.asks_outside_turns

    def buffers(self, session: SessionId) -> EditorBuffers:
        """The files of the attached client; without one, those on the disk."""
        return _AttachedBuffers(self, session)

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """The terminals of the client that is attached now."""
        return None if self._client is None else self._client.terminals(session)

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Show events to the attached client."""
        if self._client is not None:
            await self._client.show(session, events)

    async def ask_permission(
        self, session: SessionId, asking: PermissionRequest, ask: Ask
    ) -> Decision:
        """Let the user decide about a call."""
        from acp_agent.permissions.access import Decision  # noqa: PLC0415 - for prompts only

        decided = await self._ask(lambda client: client.ask_permission(session, asking, ask))
        return Decision(by="nobody") if decided is None else decided

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user something. None: the client cannot show it."""
        return await self._ask(lambda client: client.ask_question(session, call, question))

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Let the user fill in a form. None: the client shows no forms, or failed to."""
        return await self._ask(lambda client: client.ask_form(session, form, call=call))

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the client opens no pages, or failed to."""
        return await self._ask(lambda client: client.ask_page(session, page, call=call))

    def trace(self, session: SessionId) -> JsonObject:
        """Return the trace that the turn is part of, as the attached client said."""
        return {} if self._client is None else self._client.trace(session)

    def page_done(self, page: Page) -> None:
        """Report that what the user was sent to a page for is done."""
        if self._client is not None:
            self._client.page_done(page)

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Announce the slash commands that there are now."""
        if self._client is not None:
            self._client.offer_commands(session, commands)

    def options_changed(self, session: SessionId) -> None:
        """Announce the session's options, which are others now."""
        if self._client is not None:
            self._client.options_changed(session)

    def replaced(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """Do nothing: the client that is attached is replaced, not this."""

    # -- asking ------------------------------------------------------------------------------

    async def _ask(self, question: Callable[[Client], Awaitable[T | None]]) -> T | None:
        """Ask the attached client, and each that attaches later while there is no answer."""
        gone: Client | None = None
        while True:
            client = await self._wait_for_client(other_than=gone)
            if client is None:
                self._on_timeout()
                return None
            change = self._change
            answer = asyncio.ensure_future(question(client))
            self._questions.add(answer)
            answer.add_done_callback(self._questions.discard)
            changed = asyncio.create_task(change.wait())
            try:
                await asyncio.wait([answer, changed], return_when=asyncio.FIRST_COMPLETED)
                if answer.done():
                    return answer.result()
            except EditorGoneError:
                gone = client  # it may still be attached, until its connection is closed
            finally:
                changed.cancel()
                await _withdrawn(answer)

    async def _wait_for_client(self, *, other_than: Client | None) -> Client | None:
        """Return the attached client, or one that attaches in time; None: none but `other_than`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                while self._client is None or self._client is other_than:
                    await self._change.wait()
        # Also after a timeout: a client may have attached in that moment.
        return None if self._client is other_than else self._client


async def _withdrawn(answer: asyncio.Future[T]) -> None:
    """Stop waiting for an answer; the client is told that the question is withdrawn."""
    answer.cancel()
    await asyncio.wait([answer])
    if not answer.cancelled():
        answer.exception()  # seen by the caller, or of no interest any more


class _AttachedBuffers:
    """`EditorBuffers` of the client that is attached at the moment of each call."""

    def __init__(self, attached: AttachedClient, session: SessionId) -> None:
        self._attached = attached
        self._session = session
        self._of: Client | None = None
        self._known: EditorBuffers | None = None

    @property
    def can_read(self) -> bool:
        """Whether a client is attached that can read."""
        now = self._now()
        return now is not None and now.can_read

    @property
    def can_write(self) -> bool:
        """Whether a client is attached that can write."""
        now = self._now()
        return now is not None and now.can_write

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        """Return a file's text as the client sees it, or only its first `lines`."""
        now = self._now()
        if now is None:
            raise NoEditorFileError(f"the editor is gone and cannot read {path}")
        return await now.read_text(path, lines=lines)

    async def write_text(self, path: Path, text: str) -> None:
        """Let the client change and save a file."""
        now = self._now()
        if now is None:
            raise WorkspaceError("the editor is gone; the file was not touched")
        await now.write_text(path, text)

    def _now(self) -> EditorBuffers | None:
        client = self._attached.current
        if client is not self._of:
            self._of = client
            self._known = None if client is None else client.buffers(self._session)
        return self._known
