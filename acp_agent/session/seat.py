"""The editor's place at a session: who sits there may leave while a turn goes on, and come back.

A session belongs to no connection. What it shows goes to whoever sits there and is in the journal
for everyone else; a question waits for somebody to answer it, and is asked anew of whoever takes
the seat while it is open.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from acp_agent.content import JsonObject
from acp_agent.errors import EditorGoneError, NoEditorFileError, WorkspaceError
from acp_agent.events import AnyEvent
from acp_agent.ids import CallId, SessionId
from acp_agent.session.editor import Editor

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.agent.host import Asking
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask, Decision
    from acp_agent.session.commands import Command
    from acp_agent.tools.base import Answer, Question
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals

# How long a question waits for somebody to take an empty seat. An hour of a turn is dear, but a
# turn must not wait for ever for somebody who will not come back.
ABSENT_SECONDS = 600.0

T = TypeVar("T")


class Seat:
    """The `Editor` of a session, whichever it is at the moment.

    Args:
        session: whose seat it is.
        abandoned: called when a question found nobody to answer it for `patience` seconds.
        patience: how long a question waits at an empty seat, in seconds.
    """

    def __init__(
        self,
        session: SessionId,
        *,
        abandoned: Callable[[], None],
        patience: float = ABSENT_SECONDS,
    ) -> None:
        self._session = session
        self._abandoned = abandoned
        self._patience = patience
        self._editor: Editor | None = None
        self._change = asyncio.Event()  # set, and another put in its place, when the seat changes
        self._asking: set[asyncio.Future[Any]] = set()  # the questions that are open
        self._moving: asyncio.Task[None] | None = None

    # -- who sits there ----------------------------------------------------------------------

    @property
    def taken_by(self) -> Editor | None:
        """Who sits there."""
        return self._editor

    def take(self, editor: Editor, left: Sequence[AnyEvent] = ()) -> None:
        """Let an editor sit down; whoever sat there before is told that the session moved.

        Args:
            editor: who sits down.
            left: what ends for whoever sat there before; shown once their questions are withdrawn.
        """
        before = self._editor
        if before is editor:
            return
        self._seat(editor)
        if before is not None and self._asking:
            self._moving = asyncio.create_task(self._move_away(before, left, set(self._asking)))
        elif before is not None:
            before.replaced(self._session, left)

    async def _move_away(
        self, before: Editor, left: Sequence[AnyEvent], asking: set[asyncio.Future[Any]]
    ) -> None:
        await asyncio.wait(asking)
        if self._editor is not before:  # it may be back
            before.replaced(self._session, left)

    def leave(self, editor: Editor) -> None:
        """An editor gets up. Silent when another sits there by now."""
        if self._editor is editor:
            self._seat(None)

    async def moved_from(self, editor: Editor) -> None:
        """Wait until another editor, or none, sits there."""
        while self._editor is editor:
            await self._change.wait()

    def _seat(self, editor: Editor | None) -> None:
        self._editor = editor
        self._change.set()
        self._change = asyncio.Event()

    # -- what an editor does -----------------------------------------------------------------

    def buffers(self, session: SessionId) -> EditorBuffers:
        """The files of whoever sits there; nobody's files are those on the disk."""
        return _SeatBuffers(self, session)

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """The terminals of whoever sits there now."""
        return None if self._editor is None else self._editor.terminals(session)

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Show events to whoever sits there."""
        if self._editor is not None:
            await self._editor.show(session, events)

    async def ask_permission(self, session: SessionId, asking: Asking, ask: Ask) -> Decision:
        """Let the user decide about a call."""
        from acp_agent.permissions.access import Decision  # noqa: PLC0415 - for prompts only

        decided = await self._asked(lambda editor: editor.ask_permission(session, asking, ask))
        return Decision(by="nobody") if decided is None else decided

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user something. None: the editor cannot show it."""
        return await self._asked(lambda editor: editor.ask_question(session, call, question))

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Let the user fill in a form. None: the editor shows no forms, or failed to."""
        return await self._asked(lambda editor: editor.ask_form(session, form, call=call))

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the editor opens no pages, or failed to."""
        return await self._asked(lambda editor: editor.ask_page(session, page, call=call))

    def trace(self, session: SessionId) -> JsonObject:
        """Which trace the turn is part of, as whoever sits there said."""
        return {} if self._editor is None else self._editor.trace(session)

    def page_done(self, page: Page) -> None:
        """Say that what the user was sent to a page for is done."""
        if self._editor is not None:
            self._editor.page_done(page)

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Say to whoever sits there which slash commands there are now."""
        if self._editor is not None:
            self._editor.offer_commands(session, commands)

    def replaced(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """A seat is not replaced; who sits there is."""

    # -- asking ------------------------------------------------------------------------------

    async def _asked(self, question: Callable[[Editor], Awaitable[T | None]]) -> T | None:
        """Ask whoever sits there, and whoever comes after them while there is no answer."""
        gone: Editor | None = None
        while True:
            editor = await self._somebody(other_than=gone)
            if editor is None:
                self._abandoned()
                return None
            change = self._change
            answer = asyncio.ensure_future(question(editor))
            self._asking.add(answer)
            answer.add_done_callback(self._asking.discard)
            changed = asyncio.create_task(change.wait())
            try:
                await asyncio.wait([answer, changed], return_when=asyncio.FIRST_COMPLETED)
                if answer.done():
                    return answer.result()
            except EditorGoneError:
                gone = editor  # it may still sit there, so that the end of its connection finds it
            finally:
                changed.cancel()
                await _withdrawn(answer)

    async def _somebody(self, *, other_than: Editor | None) -> Editor | None:
        """Whoever sits there, or sits down in time; None: nobody, but maybe `other_than`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._patience):
                while self._editor is None or self._editor is other_than:
                    await self._change.wait()
        # Also after the time: somebody may have come in the moment in which it was over.
        return None if self._editor is other_than else self._editor


async def _withdrawn(answer: asyncio.Future[T]) -> None:
    """End the wait for an answer; the editor is told that the question is withdrawn."""
    answer.cancel()
    await asyncio.wait([answer])
    if not answer.cancelled():
        answer.exception()  # seen by whoever asked, or of no interest any more


class _SeatBuffers:
    """`EditorBuffers` of whoever sits there at the moment of each call."""

    def __init__(self, seat: Seat, session: SessionId) -> None:
        self._seat = seat
        self._session = session
        self._of: Editor | None = None
        self._known: EditorBuffers | None = None

    @property
    def can_read(self) -> bool:
        """Whether there is somebody, and they offer to read."""
        now = self._now()
        return now is not None and now.can_read

    @property
    def can_write(self) -> bool:
        """Whether there is somebody, and they offer to write."""
        now = self._now()
        return now is not None and now.can_write

    async def read_text(self, path: Path, *, lines: int | None = None) -> str:
        """Return a file's text as the editor sees it, or only its first `lines`."""
        now = self._now()
        if now is None:
            raise NoEditorFileError(f"the editor is gone and cannot read {path}")
        return await now.read_text(path, lines=lines)

    async def write_text(self, path: Path, text: str) -> None:
        """Let the editor change and save a file."""
        now = self._now()
        if now is None:
            raise WorkspaceError("the editor is gone; the file was not touched")
        await now.write_text(path, text)

    def _now(self) -> EditorBuffers | None:
        editor = self._seat.taken_by
        if editor is not self._of:
            self._of = editor
            self._known = None if editor is None else editor.buffers(self._session)
        return self._known
