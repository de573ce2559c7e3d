"""A record as a script: the model's answers, the results of calls, and the user's prompts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from itertools import zip_longest

from msgspec import DecodeError, Struct, field, json

from acp_agent.content import ContentBlock, ContentPart, TextBlock
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    BackgroundCommandChanged,
    ChildWorked,
    CompactionChanged,
    CompactionSummaryText,
    ConfigChanged,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    PermissionAsked,
    PermissionDecided,
    PicturesDescribed,
    Rewound,
    SessionForked,
    ThoughtEnded,
    ToolCalled,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import SessionId
from acp_agent.models.base import Cited, SearchEnded, SearchStarted, Source
from acp_agent.replay.record import Record, RecordedRequest

_AT_START = frozenset({"mode", "model"})  # a new session sets them
MAIN = SessionId("")  # the session itself, in contrast to its children

_LINKED = re.compile(r'<file path="([^"]+)">\n(.*?)\n</file>', re.DOTALL)  # agent/attachments.py

# The pages that an answer cites, as shown below it (`shown_pages` in tools/web_search.py).
_CITED = re.compile(r"\n\n[^\n]+\n(?:- .*: <[^<> ]*>\n)+")
_PAGE = re.compile(r"^- (.*): <([^<> ]*)>$", re.MULTILINE)
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
_SEARCH_TITLE = re.compile(r"\[Search the web for (.*)\]")
_SEARCH_FAILED = "The search failed: "

Piece = AgentText | AgentThought | ThoughtEnded | UserMessage | SearchStarted | SearchEnded | Cited
# Events between turns that the replay repeats.
Action = BackgroundCommandChanged | ConfigChanged | Rewound | SessionForked


class Call(Struct, kw_only=True):
    """A recorded call of a tool.

    Attributes:
        called: the event of the call, in `session`.
        before: the events that it showed before it ran, and `shown` those while it ran, in order.
        asked: the permission question, and `decided` the answer.
        started: whether it ran.
        ended: its end; None if the record ends before.
        ends_turn: whether its tool ended the turn.
        stopped_turn: whether the user stopped the turn while it ran.
        used: whether the replay ran it.
    """

    called: ToolCalled
    session: SessionId
    before: list[AnyEvent] = field(default_factory=list)
    shown: list[AnyEvent] = field(default_factory=list)
    asked: PermissionAsked | None = None
    decided: PermissionDecided | None = None
    started: bool = False
    ended: ToolEnded | None = None
    ends_turn: bool = False
    stopped_turn: bool = False
    used: bool = False


class Answer(Struct, kw_only=True):
    """A recorded request and its answer.

    Attributes:
        asked: the event of the request, and `request` its content.
        turn: the number of its turn.
        number: its number among all requests of the record.
        pieces: the streamed pieces, in order, with the user's steering messages.
        ends: the ends of background commands before the next request.
        calls: the calls that it made.
        ended: its end; None if the turn was stopped before.
        stop: why it stopped: a value of `Finished.stop` or a kind of `Failed`.
        failure: the error message; "" if it succeeded.
        stopped_turn: whether the user stopped the turn while it was streamed.
    """

    asked: ModelAsked
    request: RecordedRequest
    turn: int
    number: int
    pieces: list[Piece] = field(default_factory=list)
    ends: list[BackgroundCommandChanged] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    ended: ModelAnswered | None = None
    stop: str = ""
    failure: str = ""
    stopped_turn: bool = False


class Prompt(Struct, kw_only=True):
    """The prompt of a turn: the actions before it, its content, and the files it links."""

    actions: tuple[Action, ...]
    words: tuple[ContentBlock, ...]
    linked: dict[str, str]


class Script:
    """A record, sorted by the component that repeats each part.

    Args:
        record: the record; its events contain the folders of the replay.

    Attributes:
        start: the mode and the model at the beginning of the session, by option.
        prompts: the turns.
        answers: the answers by session, in order; children have the ids of the record.
        calls: all calls, in order.
        instructions: the instruction files that were read with other files, by path.
        side_answers: the answers to requests outside the conversation; None: it failed.
        last_actions: the actions after the last turn.
        points: the user messages that began turns, and `rewinds` the rewinds, in order.
    """

    def __init__(self, record: Record) -> None:
        self.start: dict[str, str] = {}
        self.prompts: list[Prompt] = []
        self.answers: dict[SessionId, list[Answer]] = {}
        self.calls: list[Call] = []
        self.instructions: dict[str, str] = {}
        self.side_answers: deque[str | None] = deque()
        self._by_call: dict[str, Call] = {}
        self._open: dict[SessionId, Answer] = {}
        self.last_actions: list[Action] = []
        self.points: list[str] = []
        self.rewinds: list[str] = []
        self._searches: dict[str, tuple[Answer, str]] = {}  # by call: the answer and the query
        self._in_turn = False
        self._in_command = False  # a command of the user that the agent itself answers
        self._summary: list[str] = []
        self._number = 0
        for step in record.steps:
            event, session = step.event, MAIN
            if isinstance(event, ChildWorked):
                session, event = event.session, event.did
            self._add(session, event, step.request)
        for answers in self.answers.values():
            _tell_stops(answers)

    def _add(self, session: SessionId, event: AnyEvent, request: RecordedRequest | None) -> None:
        if session == MAIN and self._begins_turn(event):
            return
        match event:
            case UserMessage() if event.steering:
                self._steer(session, event)
            case TurnEnded() if event.stop_reason == "cancelled" and session == MAIN:
                self._in_turn = self._in_command = False
                self._stopped()
            case TurnEnded():
                if session == MAIN:
                    self._in_turn = self._in_command = False
                self._turn_ended(session, event)
            case CompactionSummaryText():
                self._summary.append(event.text)
            case CompactionChanged() if event.status == "completed":
                self.side_answers.append("".join(self._summary) or event.summary)
                self._summary.clear()
            case CompactionChanged() if event.status == "failed":
                self.side_answers.append("".join(self._summary) or None)
                self._summary.clear()
            case PicturesDescribed():
                self.side_answers.append(event.text)
            case _:
                self._add_answer(session, event, request)
                self._add_call(session, event)

    def _begins_turn(self, event: AnyEvent) -> bool:
        """Add an action between turns or the prompt of a turn; return false for other events."""
        match event:
            case ConfigChanged() if event.option in _AT_START - self.start.keys() and (
                not self.prompts
            ):
                self.start[event.option] = event.value
            case ConfigChanged():
                if not self._in_command:
                    self.last_actions.append(event)
            case TurnStarted():
                self._in_turn = True
            case Rewound() | SessionForked():
                if isinstance(event, Rewound):
                    self.rewinds.append(event.rewind)
                if not self._in_turn:
                    self.last_actions.append(event)
            case UserMessage() if not event.steering:
                self._in_command = event.local
                self._drop_changes_of(event)
                actions, self.last_actions = tuple(self.last_actions), []
                linked = dict(_LINKED.findall(event.attached))
                self.points.append(event.message)
                self.prompts.append(Prompt(actions=actions, words=event.content, linked=linked))
                self.instructions |= dict(event.instructions)
            case _:
                return False
        return True

    def _drop_changes_of(self, event: UserMessage) -> None:
        """Drop option changes made by a command; they precede its turn."""
        first = next((one.text for one in event.content if isinstance(one, TextBlock)), "")
        command = first.split(maxsplit=1)[0].removeprefix("/") if event.local and first else ""
        while self.last_actions:
            last = self.last_actions[-1]
            if not isinstance(last, ConfigChanged) or last.option.partition(".")[0] != command:
                return
            self.last_actions.pop()

    def _add_answer(
        self, session: SessionId, event: AnyEvent, request: RecordedRequest | None
    ) -> None:
        answers = self.answers.setdefault(session, [])
        answer = self._open.get(session)
        match event:
            case ModelAsked() if request is not None:
                self._number += 1
                answer = Answer(
                    asked=event, request=request, turn=len(self.prompts), number=self._number
                )
                answers.append(answer)
                self._open[session] = answer
            case ModelAsked():  # no request: the user made the call
                self._open.pop(session, None)
            case AgentText() | AgentThought() | ThoughtEnded() if answer is not None:
                if event.message == answer.asked.message:
                    answer.pieces.append(event)
                elif isinstance(event, AgentText) and answer.ended is not None:
                    running = self._running(session)
                    if running:
                        running[0].shown.append(event)
                    else:
                        answer.pieces += _cited(event.text)
            case ModelAnswered() if answer is not None:
                if event.message == answer.asked.message and answer.ended is None:
                    answer.ended, answer.stop = event, event.stop
            case NoticeShown() if answer is not None and answer.ended is not None:
                if answer.ended.discarded and not answer.failure:
                    fell_back = "answers instead of" in event.title
                    answer.stop = "unreachable" if fell_back else "overloaded"
                    answer.failure = event.description if fell_back else _reason(event.title)
            case _:
                pass

    def _add_call(self, session: SessionId, event: AnyEvent) -> None:
        if isinstance(event, ToolCalled):
            if event.provider:
                self._search_started(event)  # it ran as part of the answer
                return
            call = Call(called=event, session=session)
            self.calls.append(call)
            self._by_call[event.call] = call
            for answer in self._open.values():
                if answer.asked.message == event.message:
                    answer.calls.append(call)
            return
        if isinstance(event, ToolEnded) and event.call in self._searches:
            answer, query = self._searches[event.call]
            if not event.cancelled:  # the agent ends the searches of an answer that is cut off
                answer.pieces.append(_search_ended(event, query))
            return
        found = self._by_call.get(getattr(event, "call", ""))
        if found is None:
            return
        match event:
            case PermissionAsked():
                found.asked = event
            case PermissionDecided():
                found.decided = event
            case ToolStarted():
                found.started = True
            case ToolEnded():
                found.ended = event
                self.instructions |= dict(event.instructions)
            case _ if found.ended is None:
                (found.shown if found.started else found.before).append(event)
            case BackgroundCommandChanged():
                open_answer = self._open.get(MAIN) if self._in_turn else None
                ends = self.last_actions if open_answer is None else open_answer.ends
                ends.append(event)
            case _:
                pass

    def _search_started(self, event: ToolCalled) -> None:
        query = ""
        with suppress(DecodeError):
            query = str(json.decode(event.arguments, type=dict[str, str]).get("query", ""))
        for answer in self._open.values():
            if answer.asked.message == event.message:
                answer.pieces.append(SearchStarted(search=event.call, query=query))
                self._searches[event.call] = answer, query

    def _steer(self, session: SessionId, event: UserMessage) -> None:
        """Add a steering message at its place: in an answer, or in a running call."""
        answer = self._open.get(session)
        running = self._running()
        if running:
            running[0].shown.append(event)
        elif answer is not None:
            answer.pieces.append(event)

    def _running(self, session: SessionId | None = None) -> list[Call]:
        """Return the running calls of all sessions or of one."""
        return [
            call
            for call in self.calls
            if call.started and call.ended is None and session in {None, call.session}
        ]

    def _stopped(self) -> None:
        """Mark the calls and answers that were running when the user stopped the turn."""
        if not self.prompts:
            return
        cancelled = [call for call in self.calls if call.ended is not None and call.ended.cancelled]
        started = [call for call in cancelled if call.started]
        for call in started or cancelled:
            call.stopped_turn = True
        for answer in self._open.values():
            ended = answer.ended
            if not cancelled and (ended is None or not (ended.complete or ended.discarded)):
                answer.stopped_turn = True

    def _turn_ended(self, session: SessionId, event: TurnEnded) -> None:
        answer = self._open.pop(session, None)
        if answer is None or answer.ended is None:
            return
        if event.error and not answer.ended.complete:
            answer.failure = event.error
        elif event.stop_reason == "refusal" and not answer.stop:
            answer.stop = "refusal"
        elif event.stop_reason == "end_turn":
            for call in answer.calls:
                refused = call.decided is not None and not call.decided.allowed
                call.ends_turn = call.started and not refused


def _search_ended(event: ToolEnded, query: str) -> SearchEnded:
    """Return the end of a provider's search."""
    title = _SEARCH_TITLE.match(event.result)
    pages = (event.raw_output or {}).get("sources", [])
    shown = [
        part.content.text
        for part in event.content or ()
        if isinstance(part, ContentPart) and isinstance(part.content, TextBlock)
    ]
    return SearchEnded(
        search=event.call,
        query=query or (title.group(1) if title else ""),
        sources=tuple(Source(page.get("url", ""), page.get("title", "")) for page in pages),
        error="".join(shown).removeprefix(_SEARCH_FAILED) if event.failed else "",
        provider_data=event.provider_data or {},
    )


def _cited(text: str) -> list[Cited]:
    """Return the pages that an answer cites, parsed from the list below it."""
    if not _CITED.fullmatch(text):
        return []
    pages = [(_ESCAPE.sub(r"\1", title), url) for title, url in _PAGE.findall(text)]
    return [Cited(tuple(Source(url, "" if title == url else title) for title, url in pages))]


def _reason(title: str) -> str:
    return title.partition("; trying again in")[0]


def _tell_stops(answers: Sequence[Answer]) -> None:
    """Set the reason why each answer stopped, if its event does not have it."""
    for answer, following in zip_longest(answers, answers[1:]):
        if answer.stop:
            continue
        if following is not None and following.asked.continues == answer.asked.message:
            answer.stop = "max_tokens"
        else:
            answer.stop = "tool_calls" if answer.calls else "end_turn"
