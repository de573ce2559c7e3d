"""The normal form of events and messages: without ids, dates, delays, prices and folders.

Records and replays are compared in this form; no other module normalises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar, cast

import msgspec
from msgspec.structs import replace

from acp_agent.agent.call_hooks import CHANGED_CALL
from acp_agent.content import TextBlock
from acp_agent.events import (
    AgentText,
    AnyEvent,
    BackgroundCommandChanged,
    CheckpointMade,
    ChildWorked,
    ContextTrimmed,
    HookAnswered,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    PermissionAsked,
    PermissionDecided,
    PlanChanged,
    PlanRemoved,
    Rewound,
    ServerToolsOffered,
    SessionMessageSent,
    SessionStarted,
    SubagentChanged,
    SystemPromptWritten,
    TitleChanged,
    ToolCalled,
    ToolEnded,
    ToolOutput,
    ToolShown,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UsageReported,
    UserMessage,
)
from acp_agent.hooks.event_fields import LATER_CONTEXT
from acp_agent.ids import CallId
from acp_agent.models.base import Message
from acp_agent.platform.decoding import convert
from acp_agent.session.history.checkpoints import UNSAVED
from acp_agent.session.store.event_codec import merge_adjacent

# Prices and measurements, checkpoints, and titles, whose time depends on a model.
# A record has the answers of hooks and the tools of servers in its first line.
_IGNORED_EVENTS = (UsageReported, CheckpointMade, TitleChanged, HookAnswered, ServerToolsOffered)
# A replay saves no files. A call changed by a hook shows its arguments, at a place of its own.
_IGNORED_NOTICES = frozenset({UNSAVED, CHANGED_CALL})
# Commands that describe the machine: saved files, configured models, notes, trusted items.
_MACHINE_COMMANDS = ("/rewind", "/model", "/memory", "/trust")
_PLAN_TOOL = "todo"  # the tool that changes the plan
_ID = re.compile(r"\b(sess|turn|msg|call|ckpt|rew|comp)_[0-9a-f]{32}\b")
_VARYING = (
    (re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day, \d{4}-\d\d-\d\d"), "<date>"),
    (re.compile(r"trying again in \d+ s\b"), "trying again in <delay>"),
    (re.compile(r"\(answer [0-9a-f]{8}\)"), "(answer)"),  # derived from the folder's name
    (re.compile(r"(?<=/memory/projects/)[^/\s\"]+"), "<project>"),  # likewise
)
_VARYING_FIELDS: dict[type[Any], dict[str, object]] = {
    ModelAnswered: {"cost": None},
    SubagentChanged: {"agent": ""},  # the calls of the child show it; older records lack it
    ToolEnded: {"wrote": ()},
    PermissionDecided: {"remembered": ()},  # derived from the folder's name
    ContextTrimmed: {"overflow": 0},  # it counts the environment in the system prompt
    SessionStarted: {"directories": ()},
    TurnEnded: {"usage": None},
}
# The sections of the system prompt about the user, folder and system (agent/system_prompt.py).
_ENVIRONMENT_SECTIONS = re.compile(
    r"(?s)\n\n# (?:Instructions of the user and the project"
    r"|Notes of earlier sessions[^\n]*|Environment at the start of the session)\n.*"
)

Text = Callable[[str], str]
_Value = TypeVar("_Value")


class Folders:
    """Placeholders for folders.

    Args:
        folders: pairs of an absolute folder and a placeholder such as `<folder>`.
    """

    def __init__(self, *folders: tuple[str, str]) -> None:
        used = [(path, name) for path, name in folders if len(path) > 1]
        self._folders = {name: path for path, name in reversed(used)}
        names: dict[str, str] = {}
        for path, name in used:
            for spelling in (
                path,
                json.dumps(path)[1:-1],
                json.dumps(path, ensure_ascii=False)[1:-1],
            ):
                names.setdefault(spelling, name)
        longest_first = sorted(names, key=len, reverse=True)
        self._names = names
        # Do not match a folder inside a longer name.
        self._paths = re.compile(f"(?:{'|'.join(map(re.escape, longest_first))})(?![\\w-])")

    def hide(self, text: str) -> str:
        """Return `text` with placeholders for the folders."""
        if not self._names:
            return text
        return self._paths.sub(lambda match: self._names[match.group()], text)

    def expand(self, text: str) -> str:
        """Return `text` with the folders in place of their placeholders."""
        for name, path in self._folders.items():
            text = text.replace(name, path)
        return text


def map_texts(value: _Value, change: Text, kind: Any = None) -> _Value:
    """Return a struct or JSON value with every text changed, including the names in JSON.

    Args:
        kind: the type to convert to, if it is a union.
    """
    changed = _map_value(msgspec.to_builtins(value), change)
    return cast("_Value", convert(changed, kind or type(value)))


def _map_value(value: Any, change: Text) -> Any:  # JSON of any type
    match value:
        case str():
            return change(value)
        case dict():
            return {change(key): _map_value(item, change) for key, item in value.items()}
        case list() | tuple():
            return [_map_value(item, change) for item in value]
        case _:
            return value


class Normaliser:
    """Converts events and messages to the normal form. Numbers ids in the order of their use.

    Args:
        clean: replaces folders, and secrets where necessary.
    """

    def __init__(self, clean: Text) -> None:
        self._clean = clean
        self._ids: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        self._messages: dict[int, tuple[Message, Message]] = {}  # by identity

    def text(self, text: str) -> str:
        """Return a text in the normal form."""
        for pattern, name in _VARYING:
            text = pattern.sub(name, text)
        return self._clean(_ID.sub(self._number_id, text))

    def value(self, value: _Value, kind: Any = None) -> _Value:
        """Return a struct in the normal form; see `map_texts`."""
        return map_texts(value, self.text, kind)

    def messages(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return messages in the normal form; caches them, as requests share most messages."""
        for message in messages:
            if id(message) not in self._messages:
                self._messages[id(message)] = message, self.value(message, Message)
        return tuple(self._messages[id(message)][1] for message in messages)

    def events(self, events: Sequence[AnyEvent]) -> list[AnyEvent]:
        """Return the events of a session in the normal form."""
        return [self.value(event, AnyEvent) for event in arrange(events)]

    def _number_id(self, match: re.Match[str]) -> str:
        name = match.group()
        if name not in self._ids:
            kind = match.group(1)
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._ids[name] = f"{kind}_{self._counts[kind]}"
        return self._ids[name]


def arrange(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Return the relevant events, with the events of parallel calls ordered by call."""
    events = _order_background_events(list(_hide_restored_files(events)))
    order: dict[str, int] = {}
    calls: dict[str, str] = {
        event.session: event.call for event in events if isinstance(event, ChildWorked)
    }
    request_ids = {event.message for event in events if isinstance(event, ModelAsked)}
    unstarted = _stopped_before_start(events)
    delegating = set(calls.values())  # they show the progress of parallel calls
    relevant = [
        _clear_varying_fields(event)
        for event in events
        if not _is_ignored(event, request_ids)
        and not (isinstance(event, ToolShown | PermissionDecided) and event.call in unstarted)
        and not (isinstance(event, ToolShown) and event.call in delegating)
    ]
    events_with_calls = list(zip(relevant, _event_calls(relevant, calls), strict=True))
    for _, call in events_with_calls:
        order.setdefault(call, len(order))
    result: list[AnyEvent] = []
    for in_call, run in groupby(events_with_calls, key=lambda pair: bool(pair[1])):
        part = list(run)
        if in_call:
            part.sort(key=lambda pair: order[pair[1]])
            result += _arrange_children([event for event, _ in part])
        else:
            result += [event for event, _ in part]
    return merge_adjacent(result)


def _event_calls(events: Sequence[AnyEvent], calls: Mapping[str, str]) -> Iterator[str]:
    """Yield for each event the call that it belongs to, "" for none."""
    planning: list[str] = []  # calls that may change the plan; plan events do not name them
    for event in events:
        if isinstance(event, ToolCalled) and event.name == _PLAN_TOOL:
            planning.append(event.call)
        elif isinstance(event, ToolEnded) and event.call in planning:
            planning.remove(event.call)
        is_plan = isinstance(event, PlanChanged | PlanRemoved)
        yield planning[0] if is_plan and planning else _event_call(event, calls)


def _hide_restored_files(events: Sequence[AnyEvent]) -> Iterator[AnyEvent]:
    """Yield the events without what commands say of files, models and notes of the machine."""
    is_hidden = False
    for event in events:
        match event:
            case UserMessage():
                is_hidden = event.local and any(
                    isinstance(block, TextBlock)
                    and block.text.lstrip().startswith(_MACHINE_COMMANDS)
                    for block in event.content
                )
                yield event
            case AgentText() if is_hidden:
                yield replace(event, text="<what going back changes>")
            case Rewound() if event.conversation:
                yield replace(event, restored="", replaced="", changed=0)
            case Rewound():
                pass
            case _:
                yield event


def _order_background_events(events: Sequence[AnyEvent]) -> list[AnyEvent]:
    """Return the events, with those of background work at places independent of timing.

    Output moves into the call that started the command. So does the end, unless the model was asked
    since then: it moves after the last answer of the turn, or after the previous turn. So do the
    answers of hooks that nothing waited for.
    """
    positions: list[tuple[int, int]] = []  # for each event: an index, and before, at or after it
    waiting_ends: list[int] = []  # ends that arrived while an answer was streamed
    end_indexes: dict[CallId, int] = {}
    request_index = answer_index = turn_index = turn_end_index = -1  # indexes in `events`; -1: none
    open_message = None
    for index, event in enumerate(events):
        position = (index, 0)
        match event:
            case TurnStarted():
                turn_index, answer_index, open_message = index, -1, None
            case TurnEnded():
                turn_index, turn_end_index, open_message = -1, index, None
                for waiting_index in waiting_ends:
                    positions[waiting_index] = (index, -1)
                waiting_ends.clear()
            case ModelAsked():
                request_index, open_message = index, event.message
            case ModelAnswered() if event.message == open_message:
                answer_index, open_message = index, None
                for waiting_index in waiting_ends:
                    positions[waiting_index] = (index, 1)
                waiting_ends.clear()
            case ToolEnded():
                end_indexes[event.call] = index
            case ToolOutput() if event.call in end_indexes:
                position = (end_indexes[event.call], -1)
            case BackgroundCommandChanged() if (
                event.call in end_indexes
                and event.status != "running"
                and request_index < end_indexes[event.call]
            ):
                position = (end_indexes[event.call], -1)
            case _ if _is_background_end(event, end_indexes):
                if turn_index < 0:
                    position = (turn_end_index, 1)
                elif open_message is not None:
                    waiting_ends.append(index)
                elif answer_index >= 0:
                    position = (answer_index, 1)
                elif isinstance(event, BackgroundCommandChanged):
                    position = (turn_index, -1)
        positions.append(position)
    order = sorted(range(len(events)), key=lambda index: (*positions[index], index))
    return [events[index] for index in order]


def _is_background_end(event: AnyEvent, ended: Container[CallId]) -> bool:
    """Return whether an event is the end of a background command or hook."""
    match event:
        case BackgroundCommandChanged():
            return event.call in ended and event.status != "running"
        case HookAnswered():
            return event.later
        case NoticeShown():
            return event.title == LATER_CONTEXT
        case _:
            return False


def _stopped_before_start(events: Sequence[AnyEvent]) -> set[CallId]:
    """Return calls that the user stopped before they ran; their progress depends on timing."""
    stopped = {event.call for event in events if isinstance(event, ToolEnded) if event.cancelled}
    return stopped - {
        event.call for event in events if isinstance(event, ToolStarted | PermissionAsked)
    }


def _arrange_children(events: Sequence[AnyEvent]) -> Iterator[AnyEvent]:
    for child, group in groupby(
        events, key=lambda event: event.session if isinstance(event, ChildWorked) else None
    ):
        if child is None:
            yield from group
            continue
        wrapped = [event for event in group if isinstance(event, ChildWorked)]
        for inner in arrange([wrapper.did for wrapper in wrapped]):
            yield replace(wrapped[0], did=inner)


def _event_call(event: AnyEvent, calls: Mapping[str, str]) -> str:
    """Return the call that an event belongs to, "" for none."""
    match event:
        case SubagentChanged():
            return calls.get(event.session, "")
        case SessionMessageSent():
            return calls.get(event.sender or "", "") or calls.get(event.recipient or "", "")
        case _:
            return getattr(event, "call", "")


def _is_ignored(event: AnyEvent, request_ids: set[Any]) -> bool:
    match event:
        case ModelAnswered():  # of a request outside the conversation
            return bool(event.model) and event.discarded and event.message not in request_ids
        case NoticeShown(title=title) if title in _IGNORED_NOTICES:
            return True
        case ChildWorked():
            return isinstance(event.did, _IGNORED_EVENTS)
        case HookAnswered(later=True):
            return False  # its place is when the answer came
        case _:
            return isinstance(event, _IGNORED_EVENTS)


def _clear_varying_fields(event: AnyEvent) -> AnyEvent:
    """Return an event without data that depends on the day or the computer."""
    match event:
        case ChildWorked():
            return replace(event, did=_clear_varying_fields(event.did))
        case SystemPromptWritten():
            return replace(event, text=_ENVIRONMENT_SECTIONS.sub("", event.text))
        case ToolOutput():  # bytes that are no text
            return replace(event, invalid=type(event.invalid)())
        case _:
            return replace(event, **_VARYING_FIELDS.get(type(event), {}))
