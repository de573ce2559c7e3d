"""A replay: the updates of a conversation, combined.

All updates of one message, call, terminal, plan or compaction become one, at the place of the
first. States and notices are not replayed.

Source: Agent Client Protocol v2, Session Setup, Resuming Sessions; SessionUpdate.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import UNSET, Struct

from acp_agent.config.localization import ENGLISH, Translator
from acp_agent.events import AnyEvent
from acp_agent.ids import SessionId
from acp_agent.server.v2.session_tree import SessionTreeV2
from protocol.v2 import types as acp, unstable_subagents as unstable

_Key = tuple[SessionId, str, str]

# Updates of a thing with an id: the field with the id, and the field that chunks append to.
_UPSERTS: dict[type[acp.SessionUpdate], tuple[str, str]] = {
    acp.UserMessage: ("message_id", "content"),
    acp.AgentMessage: ("message_id", "content"),
    acp.AgentThought: ("message_id", "content"),
    acp.ToolCallProgress: ("tool_call_id", "content"),
    acp.TerminalUpdate: ("terminal_id", "output"),
    acp.CompactionUpdate: ("compaction_id", "summary"),
    unstable.SubagentUpdate: ("session_id", ""),
    unstable.SessionMessage: ("message_id", "content"),
}
_CHUNKS: dict[type[acp.SessionUpdate], type[acp.SessionUpdate]] = {
    acp.AgentMessageChunk: acp.AgentMessage,
    acp.AgentThoughtChunk: acp.AgentThought,
    acp.ToolCallContentChunk: acp.ToolCallProgress,
    acp.CompactionSummaryChunk: acp.CompactionUpdate,
    unstable.SessionMessageChunk: unstable.SessionMessage,
}
_STATES = (acp.RunningStateUpdate, acp.RequiresActionStateUpdate, acp.UnknownStateUpdate)
_TRANSIENT = (*_STATES, acp.IdleStateUpdate, acp.ErrorIdleStateUpdate, acp.Notice)


def replay(
    session: SessionId, events: Iterable[AnyEvent], translate: Translator = ENGLISH
) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
    """Return the updates of the whole conversation, each with its session: this one or a child.

    A running turn is included as far as it is; later updates continue from there. This takes about
    ten microseconds an event, so call it in a thread.
    """
    tree = SessionTreeV2(session, translate)
    combined = _CombinedUpdates()
    for event in events:
        for target, update in tree.updates(event):
            combined.apply(target, update)
    return combined.updates()


class _CombinedUpdates:
    """The combined updates, in the order in which their things were first shown."""

    def __init__(self) -> None:
        self._entities: dict[_Key, _Entity] = {}

    def apply(self, session: SessionId, update: acp.SessionUpdate) -> None:
        kind = type(update)
        if kind in _UPSERTS:
            self._entity(session, kind, update).patch(update)
        elif kind in _CHUNKS:
            assert isinstance(update, Struct)
            self._entity(session, _CHUNKS[kind], update).append(update)
        elif isinstance(update, acp.TerminalOutputChunk):
            self._entity(session, acp.TerminalUpdate, update).append_output(b64decode(update.data))
        elif isinstance(update, acp.PlanUpdate):
            assert isinstance(update.plan, acp.PlanItems)
            self._entities.setdefault(
                (session, "plan", update.plan.plan_id), _Entity(kind)
            ).latest = update
        elif isinstance(update, acp.PlanRemoved):
            self._entities.pop((session, "plan", update.plan_id), None)
        elif not isinstance(update, _TRANSIENT):  # a session has one of each
            self._entities.setdefault((session, kind.__name__, ""), _Entity(kind)).patch(update)

    def updates(self) -> Iterator[tuple[SessionId, acp.SessionUpdate]]:
        entities = self._entities
        for key, entity in list(entities.items()):
            for child in entity.references():  # a client must know a child before it is referred to
                child_update = entities.pop((key[0], unstable.SubagentUpdate.__name__, child), None)
                if child_update is not None:
                    yield key[0], child_update.combined_update()
            if key in entities:
                yield key[0], entity.combined_update()

    def _entity(
        self, session: SessionId, kind: type[acp.SessionUpdate], update: acp.SessionUpdate
    ) -> _Entity:
        name = getattr(update, _UPSERTS[kind][0])
        key = (session, kind.__name__, name)
        entity = self._entities.get(key)
        if entity is None:
            entity = self._entities[key] = _Entity(kind)
            entity.fields[_UPSERTS[kind][0]] = name
        return entity


class _Entity:
    """One thing that updates are about."""

    def __init__(self, kind: type[acp.SessionUpdate]) -> None:
        self.fields: dict[str, Any] = {}
        self.latest: acp.SessionUpdate | None = None  # if an update replaces the previous one
        self._kind = kind
        self._pieces: list[Any] = []
        self._output = bytearray()

    def patch(self, update: acp.SessionUpdate) -> None:
        assert isinstance(update, Struct)
        appended_field = _UPSERTS[self._kind][1] if self._kind in _UPSERTS else ""
        for name in update.__struct_fields__:
            value = getattr(update, name)
            if value is UNSET:
                continue
            if name == appended_field:
                self._pieces = list(value or ())
            else:
                self.fields[name] = value

    def append(self, chunk: acp.SessionUpdate) -> None:
        piece = chunk.content  # type: ignore[attr-defined]  # every kind of chunk has one
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, list) and type(piece) is acp.TextContent:
            last.append(piece.text)
        elif type(piece) is acp.TextContent and piece.annotations is None and piece.meta is None:
            self._pieces.append([piece.text])  # joined at the end: a long answer has many
        else:
            self._pieces.append(piece)

    def references(self) -> Iterator[SessionId]:
        for piece in self._pieces:
            if type(piece) is acp.SessionReference:
                yield SessionId(piece.session_id)

    def append_output(self, data: bytes) -> None:
        self._output += data

    def combined_update(self) -> acp.SessionUpdate:
        if self.latest is not None:
            return self.latest
        # A new client does not need to know what was cleared.
        fields = {name: value for name, value in self.fields.items() if value is not None}
        if self._pieces:
            fields[_UPSERTS[self._kind][1]] = [
                acp.TextContent(text="".join(piece)) if isinstance(piece, list) else piece
                for piece in self._pieces
            ]
        if self._output:
            fields["output"] = acp.TerminalOutput(data=b64encode(self._output).decode("ascii"))
        return self._kind(**fields)
