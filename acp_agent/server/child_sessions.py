"""The child sessions of a session, for a client that shows such sessions.

A child's events are shown under the child's id, as those of any session. The child's existence, its
state, and its messages with its parent are shown under the parent's id.

Source: Agent Client Protocol v1 and v2, Subagents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import UNSET
from msgspec.structs import replace

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.content import ContentBlock, TextBlock
from acp_agent.events import (
    AnyEvent,
    ChildWorked,
    SessionForked,
    SessionMessageSent,
    SessionMessageText,
    SubagentChanged,
    ToolCalled,
    ToolEnded,
    TurnInterrupted,
    UserMessage,
)
from acp_agent.ids import CallId, SessionId
from acp_agent.server.errors import turn_error
from acp_agent.server.session_tree import ParentEvent, SessionProjector, Target

UpdateT = TypeVar("UpdateT")
ProjectorT = TypeVar("ProjectorT", bound=SessionProjector[Any])


class ChildUpdates(NamedTuple):
    """The types of one version of the protocol that show children to the client of a parent."""

    subagent: Callable[..., Any]
    can_cancel: object  # the capabilities of a child that can be cancelled
    running: Callable[..., Any]
    requires_action: Callable[..., Any]
    idle: Callable[..., Any]
    failed: Callable[..., Any]
    unknown: Callable[..., Any]
    message: Callable[..., Any]
    chunk: Callable[..., Any]
    content: Callable[[ContentBlock], object]

    def show(self, event: ParentEvent) -> Any:
        """Return the parent's update for an event. UNSET is what the event does not change."""
        match event:
            case SubagentChanged():
                return self.subagent(
                    session_id=event.session,
                    title=UNSET if event.title is None else event.title or None,
                    description=UNSET if event.description is None else event.description or None,
                    capabilities=UNSET if event.can_cancel is None else self._capabilities(event),
                    state=UNSET if event.state is None else self._state(event),
                    cwd=UNSET if event.cwd is None else event.cwd or None,
                    additional_directories=_or_unset(event.directories, list),
                )
            case SessionMessageSent():
                return self.message(
                    message_id=event.message,
                    sender_session_id=_or_unset(event.sender),
                    recipient_session_id=_or_unset(event.recipient),
                    sender_message_id=_or_unset(event.sender_message),
                    recipient_message_id=_or_unset(event.recipient_message),
                    content=_or_unset(event.content, lambda content: [*map(self.content, content)]),
                )
            case SessionMessageText():
                content = self.content(TextBlock(text=event.text))
                return self.chunk(message_id=event.message, content=content)

    def _capabilities(self, event: SubagentChanged) -> object:
        return self.can_cancel if event.can_cancel else None

    def _state(self, event: SubagentChanged) -> object:
        match event.state:
            case "running":
                return self.running()
            case "requires_action":
                return self.requires_action()
            case "idle" if event.error:
                return self.failed(error=turn_error(event.error, event.error_kind))
            case "idle":
                return self.idle(stop_reason=event.stop_reason)
            case _:
                return self.unknown()


def _or_unset(value: Any, convert: Callable[[Any], object] = lambda value: value) -> Any:
    return UNSET if value is None else convert(value)


class ChildSessions(Generic[UpdateT, ProjectorT]):
    """What a client was sent about a session's children. Needs every event about them."""

    def __init__(
        self,
        updates: ChildUpdates,
        projector: ProjectorT,
        make_projector: Callable[[], ProjectorT],
        translate: Translator = ENGLISH,
    ) -> None:
        self._updates = updates
        self._projector = projector
        self._make_projector = make_projector
        self._translate = translate
        self._projectors: dict[SessionId, ProjectorT] = {}
        self._changes: dict[SessionId, SubagentChanged] = {}  # all that was sent of each, combined
        self._calls: dict[CallId, SessionId] = {}  # the child of each open call
        # The parent's calls with their children.
        self._references: set[tuple[CallId, SessionId]] = set()
        self._unread_messages: dict[
            SessionId, SessionMessageSent
        ] = {}  # to each child, and not yet read

    def project(
        self, parent: SessionId, event: ParentEvent | ChildWorked
    ) -> Iterator[tuple[SessionId, UpdateT]]:
        """Return the updates that show `event`, each with its session."""
        if isinstance(event, ChildWorked):
            if event.session not in self._changes:  # a client must know of it before anything else
                yield from self.project(parent, SubagentChanged(session=event.session))
            if (event.call, event.session) not in self._references:
                self._references.add((event.call, event.session))
                for update in self._projector.refer(event.call, event.session):
                    yield parent, update
            yield from self._project_work(parent, event)
            return
        if isinstance(event, SubagentChanged):
            self._changes[event.session] = _merge_changes(self._changes.get(event.session), event)
        elif isinstance(event, SessionMessageSent) and event.recipient in self._changes:
            self._unread_messages[event.recipient] = event
        yield from self._parent_update(parent, event)

    def target(self, parent: SessionId, call: CallId) -> Target:
        """Return where the user is asked about a call."""
        return Target(self._calls.get(call, parent), call)

    def missed_updates(self, parent: SessionId) -> Iterator[tuple[SessionId, UpdateT]]:
        """Return the updates about working children for a client that did not see them start."""
        for child, change in self._changes.items():
            if self._is_active(child):
                yield from self._parent_update(parent, change)

    def end_turn(self, parent: SessionId) -> Iterator[tuple[SessionId, UpdateT]]:
        """End what is still open, as the parent's turn ended."""
        for child in tuple(self._changes):
            for update in self._session(child).cut_off():
                yield child, update
            if self._is_working(child):
                ended = SubagentChanged(session=child, state="idle", stop_reason="cancelled")
                yield from self.project(parent, ended)
        self._calls.clear()

    def _session(self, child: SessionId) -> ProjectorT:
        projector = self._projectors.get(child)
        if projector is None:
            projector = self._projectors[child] = self._make_projector()
        return projector

    def _is_active(self, child: SessionId) -> bool:
        """Return whether a child has more to show."""
        return self._is_working(child)

    def _is_working(self, child: SessionId) -> bool:
        return self._changes[child].state in {"running", "requires_action"}

    def _project_work(
        self, parent: SessionId, event: ChildWorked
    ) -> Iterator[tuple[SessionId, UpdateT]]:
        match event.did:
            case UserMessage():
                yield from self._read(parent, event.session, event.did)
                return
            case ToolCalled():
                self._calls[event.did.call] = event.session
            case ToolEnded():
                self._calls.pop(event.did.call, None)
            case TurnInterrupted():
                for call in event.did.calls:
                    self._calls.pop(call, None)
        for update in self._session(event.session).project(event.did):
            yield event.session, update

    def _read(
        self, parent: SessionId, child: SessionId, task: UserMessage
    ) -> Iterator[tuple[SessionId, UpdateT]]:
        """Show the parent's message in the child; each side's message names the other's."""
        original = self._unread_messages.pop(child, None)
        view = SessionMessageSent(
            message=task.message,
            sender=parent,
            recipient=child,
            sender_message=None if original is None else original.message,
            content=task.content,
        )
        yield from self._parent_update(child, view)
        if original is not None:
            receipt = SessionMessageSent(message=original.message, recipient_message=task.message)
            yield from self._parent_update(parent, receipt)

    def _parent_update(
        self, session: SessionId, event: ParentEvent
    ) -> Iterator[tuple[SessionId, UpdateT]]:
        if self._translate is not ENGLISH and isinstance(event, SubagentChanged):
            from acp_agent.session.localize import localize  # noqa: PLC0415 - not in English

            translated = localize(event, self._translate)
            assert isinstance(translated, SubagentChanged)
            event = translated
        yield session, self._updates.show(event)


def _merge_changes(before: SubagentChanged | None, event: SubagentChanged) -> SubagentChanged:
    """Combine what is known of a child with an event; what the event leaves out stays."""
    if before is None:
        return event
    changed = {
        name: value
        for name in ("title", "description", "cwd", "directories", "can_cancel")
        if (value := getattr(event, name)) is not None
    }
    if event.state is not None:
        for name in ("state", "stop_reason", "error", "error_kind"):
            changed[name] = getattr(event, name)
    return replace(before, **changed)


def without_inherited(events: Sequence[AnyEvent]) -> Sequence[AnyEvent]:
    """Return a session's events without the children that it inherited by a fork.

    A child has one parent, the session that started it. The parent's call still shows its work.
    """
    fork = next(
        (
            index
            for index in reversed(range(len(events)))
            if isinstance(events[index], SessionForked)
        ),
        0,
    )
    inherited = {event.session for event in events[:fork] if isinstance(event, SubagentChanged)}
    if not inherited:
        return events
    messages = {
        event.message
        for event in events
        if isinstance(event, SessionMessageSent) and {event.sender, event.recipient} & inherited
    }
    return [
        event
        for event in events
        if not (
            (isinstance(event, SubagentChanged | ChildWorked) and event.session in inherited)
            or (
                isinstance(event, SessionMessageSent | SessionMessageText)
                and event.message in messages
            )
        )
    ]
