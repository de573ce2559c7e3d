"""Child sessions: what each did is shown below the call that it worked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

from acp_agent import events
from acp_agent.view.page import Section
from acp_agent.view.plain import Cleaner
from acp_agent.view.steps import Call, Child, Note


class Reads(Protocol):
    """Goes through the events of a child session."""

    def finish(self) -> list[Section]:
        """What it read."""
        ...


Reader = TypeVar("Reader", bound=Reads)


class Children(Generic[Reader]):
    """The child sessions of a session. `finish` when all events were read."""

    def __init__(self, clean: Cleaner, new_reader: Callable[[], Reader]) -> None:
        """There is none yet.

        Args:
            clean: takes their titles into the page.
            new_reader: makes what goes through the events of one.
        """
        self._clean, self._new_reader = clean, new_reader
        self._known: dict[tuple[str, str], tuple[Child, Reader]] = {}
        self._titles: dict[str, str] = {}
        self._notes: list[tuple[str, Note]] = []

    def reader(self, event: events.ChildWorked, call: Call | None) -> Reader:
        """What goes through the events of a child; it shows what it read in the `call`."""
        key = event.call, event.session
        if key not in self._known:
            child = Child(session=self._clean.line(event.session))
            self._known[key] = child, self._new_reader()
            if call is not None:
                call.children.append(child)
        return self._known[key][1]

    def changed(self, event: events.SubagentChanged, note: Note) -> None:
        """A child began or is no longer as it was, which `note` tells."""
        if event.title:
            self._titles[event.session] = self._clean.line(event.title)
        self.told(event.session, note)

    def told(self, session: str, note: Note) -> None:
        """`note` tells something of a child, which it need not where the child is shown."""
        self._notes.append((session, note))

    def finish(self) -> None:
        """Put what each did into the page."""
        for (_, session), (child, reader) in self._known.items():
            child.title = self._titles.get(session, "")
            for section in reader.finish():
                child.steps += section.steps
                child.requests += section.requests
                child.spend.add(section.spend)
                if section.number is not None:
                    child.outcome, child.error = section.outcome, section.error
        shown = {session for _, session in self._known}
        for session, note in self._notes:
            if session in shown:
                note.what = ""
