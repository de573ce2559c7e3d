"""The editor as a session sees it. The server's surface implements this over the wire."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

from acp_agent.events import AnyEvent
from acp_agent.ids import CallId, SessionId

if TYPE_CHECKING:  # what is first needed when a prompt runs must not be imported before
    from acp_agent.agent.host import Asking
    from acp_agent.content import JsonObject
    from acp_agent.elicitation import Form, Page, Response
    from acp_agent.permissions.access import Ask, Decision
    from acp_agent.session.commands import Command
    from acp_agent.tools.base import Answer, Question
    from acp_agent.workspace.editor_files import EditorBuffers
    from acp_agent.workspace.processes import EditorTerminals


class Editor(Protocol):
    """What a connected editor can do for its sessions.

    What asks the user raises `acp_agent.errors.EditorGoneError` when the editor leaves before it
    answered.
    """

    def buffers(self, session: SessionId) -> EditorBuffers | None:
        """The editor's files, unsaved changes included; None where it offers none."""
        ...

    def terminals(self, session: SessionId) -> EditorTerminals | None:
        """The editor's terminals; None where it offers none or the user did not opt in."""
        ...

    async def show(self, session: SessionId, events: Sequence[AnyEvent]) -> None:
        """Show events that are in the journal now; waits while the editor reads too slowly."""
        ...

    async def ask_permission(self, session: SessionId, asking: Asking, ask: Ask) -> Decision:
        """Let the user decide about a call.

        Raises:
            EditorFailedError: the user could not be asked, or the answer makes no sense.
        """
        ...

    async def ask_question(
        self, session: SessionId, call: CallId, question: Question
    ) -> Answer | None:
        """Ask the user something. None: the editor cannot show it."""
        ...

    async def ask_form(
        self, session: SessionId, form: Form, *, call: CallId | None = None
    ) -> Response | None:
        """Let the user fill in a form. None: the editor shows no forms, or failed to."""
        ...

    async def ask_page(
        self, session: SessionId, page: Page, *, call: CallId | None = None
    ) -> Response | None:
        """Send the user to a page. None: the editor opens no pages, or failed to."""
        ...

    def trace(self, session: SessionId) -> JsonObject:
        """Which trace the session's turn is part of (W3C Trace Context), as a `_meta`; or empty."""
        ...

    def page_done(self, page: Page) -> None:
        """Say that what the user was sent to a page for is done."""
        ...

    def offer_commands(self, session: SessionId, commands: Sequence[Command]) -> None:
        """Say which slash commands there are now."""
        ...

    def replaced(self, session: SessionId, left: Sequence[AnyEvent]) -> None:
        """Another editor opened the session; this one is shown `left` and nothing more of it."""
        ...
