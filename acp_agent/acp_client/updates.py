"""Turns the updates of another agent's session into our events."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import UNSET, Struct, UnsetType

from acp_agent.content import (
    CallContent,
    ContentBlock,
    ContentPart,
    DiffPart,
    Location,
    TextBlock,
    printable_line,
)
from acp_agent.errors import ToolError
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    ModelAnswered,
    ModelAsked,
    PlanChanged,
    PlanEntry,
    PlanRemoved,
    ToolCalled,
    ToolEnded,
    ToolKind,
    ToolShown,
    ToolStarted,
    Usage,
    UsageReported,
)
from acp_agent.ids import CallId, MessageId, new_call_id, new_message_id
from protocol.codec import typed_json
from protocol.v1 import types as acp

_MAX_PARTS = 50  # of a call's content, and of its locations
_MAX_STEPS = 200  # of a plan
_MAX_CALLS = 5_000  # that are shown of one task
_MAX_TITLE_LENGTH = 300  # characters
_MAX_TEXT_LENGTH = 50_000  # characters of one text of a call
_MAX_DIFF_LENGTH = 1_000_000  # characters of one side of a diff
_MAX_ARGUMENTS_BYTES = 200_000  # bytes of a call's arguments, as JSON

_UNFINISHED_CALL = "The agent ended before this call did; it may have taken effect in part."

_CONTENT_DECODER: Final = msgspec.json.Decoder[ContentBlock](ContentBlock)


class ExternalCall(Struct):
    """A call of another agent's, as it was shown last."""

    call: CallId
    title: str
    kind: ToolKind
    arguments: str = "{}"
    content: tuple[CallContent, ...] = ()
    locations: tuple[Location, ...] = ()
    started: bool = False
    ended: bool = False


class UpdateReader:
    """Turns updates into events, in order.

    Its texts are answers of a model that bears the agent's name, so that the child session reads
    as any other.
    """

    def __init__(self, agent: str) -> None:
        self._agent = agent
        self._calls: dict[str, ExternalCall] = {}
        self._message: MessageId | None = None
        self._wire_message: str | None = None
        self._window = UsageReported(used=0, size=0)  # as last reported
        self._cost = self._recorded_cost = (
            0.0  # US dollars: of its session, and what was recorded of it
        )

    def read(self, update: acp.SessionUpdate) -> list[AnyEvent]:
        """Return the events that an update stands for; none for one that is of no use here."""
        return list(self._events(update))

    def read_call(self, update: acp.ToolCallUpdate) -> tuple[ExternalCall, list[AnyEvent]]:
        """Return the call of a permission request, and the events that show it as it is now.

        Raises:
            ToolError: the agent made more calls than are shown.
        """
        events = list(self._call_events(update))
        call = self._calls.get(update.tool_call_id)
        if call is None:
            raise ToolError(f"no more than {_MAX_CALLS:,} calls are shown")
        return call, events

    def end_message(self) -> list[AnyEvent]:
        """Return the events that end the message that is open; what follows is another one."""
        return list(self._end_message(complete=True))

    def usage_events(self, usage: acp.Usage | None) -> list[AnyEvent]:
        """Return the events that record the tokens and cost of a prompt, if reported."""
        cost, self._recorded_cost = self._cost - self._recorded_cost, self._cost
        tokens = Usage() if usage is None else _convert_usage(usage)
        if not tokens and not cost:
            return []
        answered = ModelAnswered(
            message=new_message_id(),
            model=self._agent,
            usage=tokens,
            cost=cost or None,
            discarded=True,
        )
        return [answered, self._window]

    def end(self, *, cancelled: bool) -> list[AnyEvent]:
        """Return the events that end what is open."""
        events = list(self._end_message(complete=not cancelled))
        for call in self._calls.values():
            if not call.ended:
                call.ended = True
                events.append(
                    ToolEnded(
                        call=call.call, failed=True, cancelled=cancelled, result=_UNFINISHED_CALL
                    )
                )
        return events

    def _events(self, update: acp.SessionUpdate) -> Iterator[AnyEvent]:
        match update:
            case acp.AgentMessageChunk():
                yield from self._start_message(update.message_id or None)
                assert self._message is not None
                yield AgentText(message=self._message, text=_block_text(update.content))
            case acp.AgentThoughtChunk():
                yield from self._start_message(None)
                assert self._message is not None
                yield AgentThought(message=self._message, text=_block_text(update.content))
            case acp.ToolCall() | acp.ToolCallProgress():
                yield from self._call_events(update)
            case acp.Plan():
                steps = tuple(
                    PlanEntry(
                        content=printable_line(entry.content, _MAX_TITLE_LENGTH),
                        priority=entry.priority,
                        status=entry.status,
                    )
                    for entry in update.entries[:_MAX_STEPS]
                )
                yield PlanChanged(entries=steps) if steps else PlanRemoved()
            case acp.UsageUpdate():
                if update.cost and update.cost.currency == "USD":
                    self._cost = max(self._cost, update.cost.amount)
                self._window = UsageReported(used=update.used, size=update.size)
                yield self._window

    # -- messages ------------------------------------------------------------------------------

    def _start_message(self, wire_id: str | None) -> Iterator[AnyEvent]:
        if self._message is not None:
            if wire_id is None or self._wire_message in {None, wire_id}:
                self._wire_message = self._wire_message or wire_id
                return
            yield from self._end_message(complete=True)
        self._message, self._wire_message = new_message_id(), wire_id
        yield ModelAsked(message=self._message, model=self._agent)

    def _end_message(self, *, complete: bool) -> Iterator[AnyEvent]:
        if self._message is not None:
            yield ModelAnswered(message=self._message, model=self._agent, complete=complete)
            self._message = self._wire_message = None

    # -- calls ---------------------------------------------------------------------------------

    def _call_events(self, update: acp.ToolCall | acp.ToolCallUpdate) -> Iterator[AnyEvent]:
        call = self._calls.get(update.tool_call_id)
        if call is not None and call.ended and not isinstance(update, acp.ToolCallProgress):
            call = None  # another call by the same id
        content, locations = _content(update.content), _locations(update.locations)
        title = printable_line(update.title, _MAX_TITLE_LENGTH) if update.title else None
        if call is None:
            if len(self._calls) >= _MAX_CALLS:
                return
            yield from self._end_message(complete=True)
            call = ExternalCall(
                call=new_call_id(),
                title=title or printable_line(update.name or "", _MAX_TITLE_LENGTH) or "…",
                kind=update.kind or "other",
                arguments=_arguments(update.raw_input),
                content=content or (),
                locations=locations or (),
            )
            self._calls[update.tool_call_id] = call
            yield ToolCalled(
                call=call.call,
                message=new_message_id(),
                name=printable_line(update.name or call.kind, _MAX_TITLE_LENGTH),
                arguments=call.arguments,
                title=call.title,
                kind=call.kind,
                locations=call.locations,
                content=call.content,
            )
            title = content = locations = None
        if call.ended:
            return
        status = update.status or None
        if status in {"in_progress", "completed"} and not call.started:
            call.started = True
            yield ToolStarted(call=call.call)
        if isinstance(update.raw_input, dict) and update.raw_input:
            call.arguments = _arguments(update.raw_input)
        title = None if title == call.title else title
        content = None if content == call.content else content
        locations = None if locations == call.locations else locations
        call.title = title or call.title
        call.content = call.content if content is None else content
        call.locations = call.locations if locations is None else locations
        if status in {"completed", "failed"}:
            call.ended = True
            if title is not None:
                yield ToolShown(call=call.call, title=title)
            yield ToolEnded(
                call=call.call,
                failed=status == "failed",
                result=_result(call.content),
                content=content,
                locations=locations,
            )
        elif title is not None or content is not None or locations is not None:
            yield ToolShown(call=call.call, title=title, content=content, locations=locations)


def _block_text(block: acp.ContentBlock) -> str:
    """Return a block as text: Markdown stands for what is none."""
    match block:
        case acp.TextContent():
            return block.text
        case acp.ResourceLink():
            return (
                f"[{printable_line(block.name, _MAX_TITLE_LENGTH)}](<{printable_line(block.uri)}>)"
            )
        case acp.EmbeddedResource(resource=acp.TextResourceContents(text=text)):
            return text
        case _:
            return f"[{block.__struct_config__.tag}]"


def _content(
    content: Sequence[acp.ToolCallContent] | UnsetType | None,
) -> tuple[CallContent, ...] | None:
    """Return what a call shows; None: nothing changed. Terminals are not offered, and dropped."""
    if not isinstance(content, Sequence):
        return None
    return tuple(filter(None, map(_part, content[:_MAX_PARTS])))


def _part(part: acp.ToolCallContent) -> CallContent | None:
    match part:
        case acp.Diff():
            if max(len(part.new_text), len(part.old_text or "")) > _MAX_DIFF_LENGTH:
                return ContentPart(TextBlock(text=f"{printable_line(part.path)}: …"))
            return DiffPart(part.path, part.new_text, part.old_text)
        case acp.Content(content=acp.TextContent(text=text)):
            shortened = text if len(text) <= _MAX_TEXT_LENGTH else f"{text[:_MAX_TEXT_LENGTH]}…"
            return ContentPart(TextBlock(text=shortened))
        case acp.Content(content=block):
            return ContentPart(_CONTENT_DECODER.decode(typed_json.encode(block)))
        case _:
            return None


def _locations(
    locations: Sequence[acp.ToolCallLocation] | UnsetType | None,
) -> tuple[Location, ...] | None:
    if not isinstance(locations, Sequence):
        return None
    return tuple(
        Location(path=location.path, line=location.line) for location in locations[:_MAX_PARTS]
    )


def _arguments(raw: Any) -> str:  # JSON, of any kind
    if raw is None or raw is UNSET:
        return "{}"
    arguments = raw if isinstance(raw, dict) else {"input": raw}
    encoded = msgspec.json.encode(arguments)
    return encoded.decode() if len(encoded) <= _MAX_ARGUMENTS_BYTES else "{}"


def _result(content: Sequence[CallContent]) -> str:
    """Return the text of what a call showed at its end, for the journal."""
    texts = [
        part.content.text
        for part in content
        if isinstance(part, ContentPart) and isinstance(part.content, TextBlock)
    ]
    return "\n".join(texts)[:_MAX_TEXT_LENGTH]


def _convert_usage(usage: acp.Usage) -> Usage:
    """Return token counts as they are recorded: what is sent has what a cache had, too."""
    cache_read, cache_write = usage.cached_read_tokens or 0, usage.cached_write_tokens or 0
    return Usage(
        input=usage.input_tokens + cache_read + cache_write,
        output=usage.output_tokens,
        cache_read=cache_read,
        cache_write=cache_write,
        reasoning=usage.thought_tokens or 0,
    )
