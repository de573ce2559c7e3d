"""Messages between a session and others, each as a note."""

from __future__ import annotations

from collections.abc import Callable

from acp_agent import events
from acp_agent.content import TextBlock
from acp_agent.view.notes import Said
from acp_agent.view.plain import Cleaner
from acp_agent.view.steps import Note


class SessionMessages:
    """The messages of a session. `finish` when all events were read.

    Args:
        clean: takes them into the page.
        new_note: adds a note to the page.
        about: is told of each session that a note is about.
    """

    def __init__(
        self, clean: Cleaner, new_note: Callable[[Said], Note], about: Callable[[str, Note], None]
    ) -> None:
        """There is none yet."""
        self._clean, self._new_note, self._about = clean, new_note, about
        self._known: dict[str, tuple[Note, list[str]]] = {}

    def sent(self, event: events.SessionMessageSent) -> None:
        """One was sent, or more is known of it."""
        known = self._known.get(event.message)
        if known is None:
            said = Said(what="session_message", values={"sender": "?", "recipient": "?"})
            known = self._known[event.message] = self._new_note(said), []
        note, pieces = known
        for side, session in (("sender", event.sender), ("recipient", event.recipient)):
            if session is not None:
                note.values[side] = self._clean.line(session)
                self._about(session, note)
        if event.content is not None:
            pieces[:] = [block.text for block in event.content if isinstance(block, TextBlock)]

    def said(self, event: events.SessionMessageText) -> None:
        """A piece of one."""
        known = self._known.get(event.message)
        if known is not None:
            known[1].append(event.text)

    def finish(self) -> None:
        """Give the notes their texts."""
        for note, pieces in self._known.values():
            note.text = self._clean.text("".join(pieces))
