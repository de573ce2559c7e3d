"""Convert a session's events to the text of a conversation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from difflib import unified_diff
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from acp_agent import events
from acp_agent.config.localization import ENGLISH, Translator, join_sentences
from acp_agent.content import ContentBlock, ContentPart, DiffPart, TextBlock
from acp_agent.session.localize import localize
from acp_agent.session.store.records import StoredEvent, UnknownEvent

Kind = Literal[
    "user", "agent", "thought", "tool", "output", "added", "removed", "note", "error", "child"
]

MAX_OUTPUT_LINES = 20  # of one tool call

# Events that are not shown, and so do not end a passage.
_HIDDEN_EVENTS = (
    events.ThoughtEnded, events.UsageReported, events.ConfigChanged, events.TitleChanged,
    events.ChildWorked, events.SubagentChanged, events.SessionMessageSent,
)  # fmt: skip
_PLAN_MARKS = {"pending": "[ ]", "in_progress": "[~]", "completed": "[x]"}


class Passage(Struct, frozen=True):
    """A piece of the conversation, of one kind; `text` does not end with a line break.

    Passages of a child session have its id as `child`. They begin with a passage of the kind
    `child`, which has its title; the child's prompt has the kind `user`.
    """

    kind: Kind
    text: str
    child: str = ""


def transcript(
    stored: Iterable[StoredEvent], *, thoughts: bool, translate: Translator = ENGLISH
) -> Iterator[Passage]:
    """Yield the passages of the conversation in order: messages, tool calls, changes.

    The passages of a child session follow the call for which it worked.

    Args:
        thoughts: whether the model's reasoning is included.
        translate: the translator into the reader's language.
    """
    writer = _Writer({}, thoughts=thoughts, translate=translate)
    for item in stored:
        event = item.event
        yield from writer.add(
            event if isinstance(event, UnknownEvent) else localize(event, translate)
        )
    yield from writer.flush()


class _Writer:
    """Converts the events of a session or a child; `titles` has the titles of all children."""

    def __init__(self, titles: dict[str, str], *, thoughts: bool, translate: Translator) -> None:
        self._titles = titles
        self._thoughts = thoughts
        self._translate = translate
        self._text_pieces: list[str] = []
        self._voice: tuple[Kind, str] = ("agent", "")  # kind and message of the current text
        # By call: content, title of an open call, output, and decision.
        self._contents: dict[str, tuple[object, ...]] = {}
        self._open_calls: dict[str, str] = {}
        self._outputs: dict[str, list[str]] = {}
        self._decisions: dict[str, str] = {}
        # By call and child: the child's writer, and its passages so far, with its title.
        self._children: dict[tuple[str, str], tuple[_Writer, list[Passage]]] = {}

    def add(self, event: object) -> Iterator[Passage]:
        """Yield the passages that an event completes."""
        if isinstance(event, events.AgentText | events.AgentThought):
            kind: Kind = "agent" if isinstance(event, events.AgentText) else "thought"
            if (kind, event.message) != self._voice:
                yield from self._flush_text()
                self._voice = (kind, event.message)
            self._text_pieces.append(event.text)
            return
        if not isinstance(event, _HIDDEN_EVENTS):
            yield from self._flush_text()
        match event:
            case events.SubagentChanged(title=title) if title:
                self._titles[event.session] = title
            case events.ChildWorked():
                self._add_child_event(event)
            case events.ToolEnded(call=call):
                passages = list(self._passages(event))
                work = list(self._work_for(call))
                # The call's content is a short version of the child's passages.
                yield from passages if event.failed or not work else passages[:1]
                yield from work
            case events.TurnEnded() | events.TurnInterrupted():
                yield from self._unfinished_calls()
                yield from self._passages(event)
            case _:
                yield from self._passages(event)

    def flush(self) -> Iterator[Passage]:
        """Yield the remaining passages after the last event."""
        yield from self._flush_text()
        yield from self._unfinished_calls()

    def _flush_text(self) -> Iterator[Passage]:
        kind = self._voice[0]
        text = "".join(self._text_pieces).strip("\n")
        self._text_pieces = []
        if text and (self._thoughts or kind != "thought"):
            yield Passage(kind, text)

    def has_open_call(self, call: str) -> bool:
        """Return whether a call is open here or in a child."""
        return call in self._open_calls or any(
            writer.has_open_call(call) for writer, _ in self._children.values()
        )

    def _add_child_event(self, event: events.ChildWorked) -> None:
        """Add an event of a child that works for a call of this session, or of a child."""
        if event.call not in self._open_calls:
            for writer, passages in self._children.values():
                if writer.has_open_call(event.call):
                    passages.extend(writer.add(event))
                    return
        key = event.call, event.session
        if key not in self._children:
            title = self._titles.get(event.session) or event.session
            head = Passage("child", self._translate("Subagent: {title}", title=title))
            child = _Writer(self._titles, thoughts=self._thoughts, translate=self._translate)
            self._children[key] = child, [head]
        writer, passages = self._children[key]
        passages.extend(writer.add(event.did))

    def _work_for(self, call: str) -> Iterator[Passage]:
        """Yield the passages of the children that worked for a call, marked with their ids."""
        for key in [key for key in self._children if key[0] == call]:
            writer, passages = self._children.pop(key)
            passages.extend(writer.flush())
            if len(passages) > 1:
                yield from (replace(passage, child=key[1]) for passage in passages)

    def _unfinished_calls(self) -> Iterator[Passage]:
        """Yield the passages of children whose calls did not end."""
        for call in dict.fromkeys(call for call, _ in self._children):
            if call in self._open_calls:  # otherwise it has ended before
                yield Passage("tool", self._open_calls.pop(call))
            yield from self._work_for(call)

    def _passages(self, event: object) -> Iterator[Passage]:
        translate = self._translate
        match event:
            case events.UserMessage(content=content):
                yield Passage("user", "\n".join(_block(block) for block in content))
            case events.ToolCalled(call=call, title=title, content=content):
                self._open_calls[call] = title
                self._contents[call] = content
                self._outputs[call] = []
            case events.ToolOutput(call=call, text=text):
                self._outputs.setdefault(call, []).append(text)
            case events.ToolShown(call=call, title=title, content=content):
                if title is not None:
                    self._open_calls[call] = title
                if content is not None:
                    self._contents[call] = content
            case events.PermissionDecided(call=call):
                self._decisions[call] = describe_decision(event, translate)
            case events.ToolEnded(call=call):
                yield from self._call_passages(event)
            case events.PlanChanged(entries=entries):
                lines = [f"{_PLAN_MARKS[entry.status]} {entry.content}" for entry in entries]
                yield Passage("note", "\n".join([translate("Plan:"), *lines]))
            case events.NoticeShown(severity=severity, title=title, description=description):
                text = join_sentences(title, description)
                yield Passage("error" if severity == "error" else "note", text)
            case events.TurnEnded(error=error) if error:
                yield Passage("error", error)
            case events.TurnEnded(stop_reason=reason) if reason not in {None, "end_turn"}:
                yield Passage("note", translate("(the turn ended: {reason})", reason=reason))
            case events.TurnInterrupted():
                yield Passage("note", translate("(the agent was interrupted here)"))
            case UnknownEvent(tag=tag):
                yield Passage("note", translate("(written by a newer version: {tag})", tag=tag))

    def _call_passages(self, event: events.ToolEnded) -> Iterator[Passage]:
        translate = self._translate
        outcome = translate(" - failed") if event.failed else ""
        if event.exit_code:
            outcome = translate(" - exit status {code}", code=event.exit_code)
        yield Passage(
            "tool", f"{self._open_calls.pop(event.call, '') or translate('a tool')}{outcome}"
        )
        if decision := self._decisions.pop(event.call, ""):
            yield Passage("note", decision)
        content = event.content if event.content is not None else self._contents.get(event.call, ())
        for part in content:
            match part:
                case DiffPart():
                    yield from _diff(part)
                case ContentPart(content=TextBlock(text=text)) if text.strip():
                    yield Passage("output", _first_lines(text, translate))
        output = "".join(self._outputs.get(event.call, ()))
        if output.strip():
            yield Passage("output", _first_lines(output, translate))


def describe_decision(event: events.PermissionDecided, translate: Translator) -> str:
    """Return a text that says who allowed or refused a call, and why."""
    if event.by == "nobody" or (event.by == "user" and event.why == "not asked"):
        return translate("Refused: nobody to ask")
    deciders = {
        "user": translate("you") if event.known else translate("the client's answer"),
        "mode": translate("mode {name}", name=event.name) if event.name else translate("the mode"),
        "grant": translate("a remembered answer"),
        "rule": translate("a rule"),
        "flag": event.name,
    }
    decider = deciders[event.by]
    why = translate(": {why}", why=event.why) if event.why else ""
    decision = (
        translate("Allowed by {who}", who=decider)
        if event.allowed
        else translate("Refused by {who}", who=decider)
    )
    return f"{decision}{why}"


def _diff(part: DiffPart) -> Iterator[Passage]:
    old, new = (part.old_text or "").splitlines(), part.new_text.splitlines()
    for line in list(unified_diff(old, new, lineterm="", n=1))[2:]:
        kind: Kind = {"+": "added", "-": "removed"}.get(line[:1], "output")  # type: ignore[assignment]  # the values are kinds
        yield Passage(kind, line)


def _first_lines(text: str, translate: Translator) -> str:
    lines = text.strip("\n").splitlines()
    if len(lines) <= MAX_OUTPUT_LINES:
        return "\n".join(lines)
    return "\n".join(
        [
            *lines[:MAX_OUTPUT_LINES],
            translate("... {count} more lines", count=len(lines) - MAX_OUTPUT_LINES),
        ]
    )


def _block(block: ContentBlock) -> str:
    if isinstance(block, TextBlock):
        return block.text
    uri = getattr(block, "uri", None) or getattr(getattr(block, "resource", None), "uri", "")
    kind = type(block).__name__.removesuffix("Block").lower()
    return f"[{kind}{f' {uri}' if uri else ''}]"
