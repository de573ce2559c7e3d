"""The interface of clients, and the client that is attached to a session.

A session does not belong to a connection. The client may disconnect during a turn and reconnect.
Events are written to the journal and shown to the attached client. An open question waits for an
answer; a client that attaches in the meantime is asked again.
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

if TYPE_CHECKING:  # modules for prompts must not be imported at start-up
    from acp_agent.agent.resources import PermissionRequest
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask, Decision
    from acp_agent.session.commands.command import Command
    from acp_agent.tools.base import Answer, Question
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals

# How long a question waits for a client to attach, in seconds. A turn is expensive to lose, but it
# must not wait forever for a client that does not return.
QUESTION_TIMEOUT = 600.0

T = TypeVar("T")


class Client(Protocol):
    """A connected client.

    The methods that ask the user raise `acp_agent.errors.EditorGoneError` if the client disconnects
    before it answers.
    """

    @property
    def asks_outside_turns(self) -> bool:
        """Return whether the client also shows forms while no turn runs."""

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """Return the client's files with unsaved changes; None if it offers none."""

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """Return the client's terminals; None if it offers none or the user did not opt in."""

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Show events of the journal; waits while the client reads too slowly."""

    async def ask_permission(
        self, session: SessionId, request: PermissionRequest, ask: Ask
    ) -> Decision:
        """Ask the user for permission for a tool call.

        Raises:
            EditorFailedError: the user could not be asked, or the answer is invalid.
        """

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user a question. Return None if the client cannot show it."""

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Ask the user to fill in a form. Return None if the client shows no forms or fails."""

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a web page. Return None if the client opens no pages or fails."""

    def trace(self, session: SessionId) -> JsonObject:
        """Return the trace of the turn (W3C Trace Context) as `_meta`; empty if there is none."""

    def page_done(self, page: Page) -> None:
        """Report that the user has finished on a page."""

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Announce the current slash commands."""

    def options_changed(self, session: SessionId) -> None:
        """Announce that the session's options have changed."""

    def replaced(self, session: SessionId, final_events: Sequence[AnyEvent]) -> None:
        """Show `final_events` and nothing more of the session, because another client opened it."""


class AttachedClient:
    """A `Client` that forwards to the client that is attached to a session, if there is one.

    Args:
        on_timeout: called when no client was attached to answer a question for `timeout` seconds.
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
        self._change = asyncio.Event()  # set and replaced when the client changes
        self._questions: set[asyncio.Future[Any]] = set()  # open questions
        self._replacement: asyncio.Task[None] | None = None

    # -- attaching ------------------------------------------------------------------------

    @property
    def current(self) -> Client | None:
        """The attached client."""
        return self._client

    def attach(self, client: Client, final_events: Sequence[AnyEvent] = ()) -> None:
        """Attach a client, and tell the previous one that the session has moved.

        Args:
            final_events: the last events that the previous client is shown, once its questions are
                withdrawn.
        """
        previous = self._client
        if previous is client:
            return
        self._change_to(client)
        if previous is not None and self._questions:
            self._replacement = asyncio.create_task(
                self._replace(previous, final_events, set(self._questions))
            )
        elif previous is not None:
            previous.replaced(self._session, final_events)

    async def _replace(
        self,
        previous: Client,
        final_events: Sequence[AnyEvent],
        questions: set[asyncio.Future[Any]],
    ) -> None:
        await asyncio.wait(questions)
        if self._client is not previous:  # it may be attached again
            previous.replaced(self._session, final_events)

    def detach(self, client: Client) -> None:
        """Detach a client. Does nothing if another one is attached."""
        if self._client is client:
            self._change_to(None)

    async def wait_detached(self, client: Client) -> None:
        """Wait until `client` is no longer attached."""
        while self._client is client:
            await self._change.wait()

    def _change_to(self, client: Client | None) -> None:
        self._client = client
        self._change.set()
        self._change = asyncio.Event()

    # -- Client ------------------------------------------------------------------------------

    @property
    def asks_outside_turns(self) -> bool:
        """Return whether the attached client also shows forms while no turn runs."""
        return self._client is not None and self._client.asks_outside_turns

    def buffers(self, session: SessionId) -> EditorBuffers:
        """Return the files of the client that is attached when they are used."""
        return _AttachedBuffers(self, session)

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """Return the terminals of the attached client."""
        return None if self._client is None else self._client.terminals(session)

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Show events to the attached client."""
        if self._client is not None:
            await self._client.show(session, events)

    async def ask_permission(
        self, session: SessionId, request: PermissionRequest, ask: Ask
    ) -> Decision:
        """Ask the user for permission for a tool call."""
        from acp_agent.permissions.access import Decision  # noqa: PLC0415 - for prompts only

        decision = await self._ask(lambda client: client.ask_permission(session, request, ask))
        return Decision(by="nobody") if decision is None else decision

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user a question. Return None if the client cannot show it."""
        return await self._ask(lambda client: client.ask_question(session, call, question))

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Ask the user to fill in a form. Return None if the client shows no forms or fails."""
        return await self._ask(lambda client: client.ask_form(session, form, call=call))

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a web page. Return None if the client opens no pages or fails."""
        return await self._ask(lambda client: client.ask_page(session, page, call=call))

    def trace(self, session: SessionId) -> JsonObject:
        """Return the trace of the turn as the attached client sent it."""
        return {} if self._client is None else self._client.trace(session)

    def page_done(self, page: Page) -> None:
        """Report that the user has finished on a page."""
        if self._client is not None:
            self._client.page_done(page)

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Announce the current slash commands."""
        if self._client is not None:
            self._client.offer_commands(session, commands)

    def options_changed(self, session: SessionId) -> None:
        """Announce that the session's options have changed."""
        if self._client is not None:
            self._client.options_changed(session)

    def replaced(self, session: SessionId, final_events: Sequence[AnyEvent]) -> None:
        """Do nothing: only the attached client is replaced."""

    # -- asking ------------------------------------------------------------------------------

    async def _ask(self, question: Callable[[Client], Awaitable[T | None]]) -> T | None:
        """Ask the attached client, and each client that attaches later, until one answers."""
        disconnected: Client | None = None
        while True:
            client = await self._wait_for_client(excluded=disconnected)
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
                disconnected = client  # it may still be attached, until its connection is closed
            finally:
                changed.cancel()
                answer.cancel()  # withdraws the question
                await asyncio.wait([answer])
                if not answer.cancelled():
                    answer.exception()  # mark it as retrieved

    async def _wait_for_client(self, *, excluded: Client | None) -> Client | None:
        """Wait for a client other than `excluded`; return None if none attaches in time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._timeout):
                while self._client is None or self._client is excluded:
                    await self._change.wait()
        # Check after a timeout, too: a client may have attached at that moment.
        return None if self._client is excluded else self._client


class _AttachedBuffers:
    """`EditorBuffers` that use the client that is attached at the time of each call."""

    def __init__(self, owner: AttachedClient, session: SessionId) -> None:
        self._owner = owner
        self._session = session
        self._buffers_client: Client | None = None
        self._client_buffers: EditorBuffers | None = None

    @property
    def can_read(self) -> bool:
        """Return whether the attached client can read files."""
        buffers = self._current()
        return buffers is not None and buffers.can_read

    @property
    def can_write(self) -> bool:
        """Return whether the attached client can write files."""
        buffers = self._current()
        return buffers is not None and buffers.can_write

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        """Return a file's text as the client sees it, or only its first `lines`."""
        buffers = self._current()
        if buffers is None:
            raise NoEditorFileError(f"the editor is gone and cannot read {path}")
        return await buffers.read_text(path, lines=lines)

    async def write_text(self, path: Path, text: str) -> None:
        """Have the client change and save a file."""
        buffers = self._current()
        if buffers is None:
            raise WorkspaceError("the editor is gone; the file was not touched")
        await buffers.write_text(path, text)

    def _current(self) -> EditorBuffers | None:
        client = self._owner.current
        if client is not self._buffers_client:
            self._buffers_client = client
            self._client_buffers = None if client is None else client.buffers(self._session)
        return self._client_buffers
