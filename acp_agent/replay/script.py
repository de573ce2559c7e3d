"""A record as a script: the model's answers, the results of calls, and the user's prompts."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import zip_longest

from msgspec import DecodeError, Struct, json

from acp_agent.content import ContentBlock, TextBlock
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
    BackgroundCommandChanged,
    ChildWorked,
    CompactionChanged,
    CompactionSummaryText,
    ConfigChanged,
    HookAnswered,
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
from acp_agent.models.base import Cited, Failed, SearchEnded, SearchStarted
from acp_agent.replay.provider_searches import parse_citations, search_end
from acp_agent.replay.record import Record, RecordedRequest

_START_OPTIONS = frozenset({"mode", "model"})  # a new session sets them
MAIN = SessionId("")  # the session itself, in contrast to its children

# As agent/attachments.py writes it.
_LINKED_FILE = re.compile(r'<file path="([^"]+)">\n(.*?)\n</file>', re.DOTALL)

# A prompt has this note if it is the first in the process, or if the mode has changed.
_MODE_NOTE = re.compile(r"^\[Today is [^\n]*\n\n(\[Mode: [a-z-]+)", re.MULTILINE)
Piece = AgentText | AgentThought | ThoughtEnded | UserMessage | SearchStarted | SearchEnded | Cited


class Reopened(Struct, frozen=True):
    """The session was closed and opened again before a prompt."""


# Events between turns that the replay repeats.
End = BackgroundCommandChanged | HookAnswered  # of background work
Action = End | ConfigChanged | Rewound | SessionForked | Reopened


class Call(Struct, kw_only=True):
    """A recorded call of a tool.

    Attributes:
        setup_events: the events that it showed before it ran.
        run_events: the events that it showed while it ran.
        question: the permission question, and `decision` the answer.
        started: whether it ran.
        end: its end; None if the record ends before.
        ends_turn: whether its tool ended the turn.
        stopped_turn: whether the user stopped the turn while it ran.
        used: whether the replay ran it.
        hook_answers: what hooks answered about it.
    """

    event: ToolCalled
    session: SessionId
    setup_events: list[AnyEvent] = []
    run_events: list[AnyEvent] = []
    question: PermissionAsked | None = None
    decision: PermissionDecided | None = None
    started: bool = False
    end: ToolEnded | None = None
    ends_turn: bool = False
    stopped_turn: bool = False
    used: bool = False
    hook_answers: list[HookAnswered] = []


class Answer(Struct, kw_only=True):
    """A recorded request and its answer.

    Attributes:
        number: its number among all requests of the record.
        pieces: the streamed pieces, in order, with the user's steering messages.
        ends: the ends of background work before the next request.
        end: its end; None if the turn was stopped before.
        stop: why it stopped: a value of `Finished.stop` or a kind of `Failed`.
        failure: the error message; "" if it succeeded.
        stopped_turn: whether the user stopped the turn while it was streamed.
    """

    event: ModelAsked
    request: RecordedRequest
    turn: int
    number: int
    pieces: list[Piece] = []
    ends: list[End] = []
    calls: list[Call] = []
    end: ModelAnswered | None = None
    stop: str = ""
    failure: str = ""
    stopped_turn: bool = False


class Prompt(Struct, kw_only=True):
    """The prompt of a turn: the actions before it, its content, and the files it links."""

    actions: tuple[Action, ...]
    content: tuple[ContentBlock, ...]
    files: dict[str, str]


class Script:
    """A record, sorted by the component that repeats each part.

    Args:
        record: the record; its events contain the folders of the replay.

    Attributes:
        start: the mode and the model at the beginning of the session, by option.
        answers: the answers by session, in order; children have the ids of the record.
        instructions: the instruction files that were read with other files, by path.
        side_answers: the answers to requests outside the conversation, or why they failed.
        last_actions: the actions after the last turn.
        turn_messages: the user messages that began turns, and `rewinds` the rewinds, in order.
    """

    def __init__(self, record: Record) -> None:
        self.start: dict[str, str] = {}
        self.prompts: list[Prompt] = []
        self.answers: dict[SessionId, list[Answer]] = {}
        self.calls: list[Call] = []
        self.instructions: dict[str, str] = {}
        self.side_answers: deque[str | Failed] = deque()
        self._calls_by_id: dict[str, Call] = {}
        self._open_answers: dict[SessionId, Answer] = {}
        self.last_actions: list[Action] = []
        self.turn_messages: list[str] = []
        self.rewinds: list[str] = []
        self._searches: dict[str, tuple[Answer, str]] = {}  # by call: the answer and the query
        self._mode_note = ""
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
            _set_stop_reasons(answers)
        for answered in record.head.hooks:
            if answered.call in self._calls_by_id and not answered.later:
                self._calls_by_id[answered.call].hook_answers.append(answered)

    def _add(self, session: SessionId, event: AnyEvent, request: RecordedRequest | None) -> None:
        if session == MAIN and self._add_between_turns(event):
            return
        match event:
            case UserMessage() if event.steering:
                self._steer(session, event)
            case TurnEnded() if event.stop_reason == "cancelled" and session == MAIN:
                self._in_turn = self._in_command = False
                self._mark_stopped()
            case TurnEnded():
                if session == MAIN:
                    self._in_turn = self._in_command = False
                self._end_turn(session, event)
            case CompactionSummaryText():
                self._summary.append(event.text)
            case CompactionChanged() if event.status == "completed":
                self.side_answers.append("".join(self._summary) or event.summary)
                self._summary.clear()
            case CompactionChanged() if event.status == "failed":
                failure = Failed(kind="bad_request", message=event.error)
                self.side_answers.append("".join(self._summary) or failure)
                self._summary.clear()
            case PicturesDescribed():
                self.side_answers.append(event.text)
            case _:
                self._add_answer(session, event, request)
                self._add_call(session, event)

    def _add_between_turns(self, event: AnyEvent) -> bool:
        """Add an action between turns or the prompt of a turn; return false for other events."""
        match event:
            case ConfigChanged() if event.option in _START_OPTIONS - self.start.keys() and (
                not self.prompts
            ):
                self.start[event.option] = event.value
            case ConfigChanged():
                if not self._in_command:
                    self.last_actions.append(event)
            case TurnStarted():
                self._in_turn = True
            case HookAnswered() if self._in_turn and MAIN not in self._open_answers:
                self.prompts[-1].actions += (event,)  # it is given as soon as it is asked for
            case HookAnswered():
                self._end(event)
            case Rewound() | SessionForked():
                self._mode_note = ""  # the notes are repeated
                if isinstance(event, Rewound):
                    self.rewinds.append(event.rewind)
                if not self._in_turn:
                    self.last_actions.append(event)
            case UserMessage() if not event.steering:
                self._in_command = event.local
                self._note_mode(event)
                self._drop_option_changes(event)
                actions, self.last_actions = tuple(self.last_actions), []
                files = dict(_LINKED_FILE.findall(event.attached))
                self.turn_messages.append(event.message)
                self.prompts.append(Prompt(actions=actions, content=event.content, files=files))
                self.instructions |= dict(event.instructions)
            case _:
                return False
        return True

    def _note_mode(self, event: UserMessage) -> None:
        """Add an action if a prompt repeats the notes, as the first one in a process does."""
        note = _MODE_NOTE.search(event.attached)
        if note is None:
            return
        if note.group(1) == self._mode_note:
            self.last_actions.append(Reopened())
        self._mode_note = note.group(1)

    def _drop_option_changes(self, event: UserMessage) -> None:
        """Drop option changes made by a command; they precede its turn."""
        text = next((block.text for block in event.content if isinstance(block, TextBlock)), "")
        command = text.split(maxsplit=1)[0].removeprefix("/") if event.local and text else ""
        while self.last_actions:
            last = self.last_actions[-1]
            if not isinstance(last, ConfigChanged) or last.option.partition(".")[0] != command:
                return
            self.last_actions.pop()

    def _add_answer(
        self, session: SessionId, event: AnyEvent, request: RecordedRequest | None
    ) -> None:
        answers = self.answers.setdefault(session, [])
        answer = self._open_answers.get(session)
        match event:
            case ModelAsked() if request is not None:
                self._number += 1
                answer = Answer(
                    event=event, request=request, turn=len(self.prompts), number=self._number
                )
                answers.append(answer)
                self._open_answers[session] = answer
            case ModelAsked():  # no request: the user made the call
                self._open_answers.pop(session, None)
            case AgentText() | AgentThought() | ThoughtEnded() if answer is not None:
                if event.message == answer.event.message:
                    answer.pieces.append(event)
                elif isinstance(event, AgentText) and answer.end is not None:
                    running = self._running(session)
                    if running:
                        running[0].run_events.append(event)
                    else:
                        answer.pieces += parse_citations(event.text)
            case ModelAnswered() if answer is not None:
                if event.message == answer.event.message and answer.end is None:
                    answer.end, answer.stop = event, event.stop
            case NoticeShown():
                _add_failure(self._open_answers.values(), event)

    def _add_call(self, session: SessionId, event: AnyEvent) -> None:
        if isinstance(event, ToolCalled):
            if event.provider:
                self._start_search(event)  # it ran as part of the answer
                return
            call = Call(event=event, session=session)
            self.calls.append(call)
            self._calls_by_id[event.call] = call
            for answer in self._open_answers.values():
                if answer.event.message == event.message:
                    answer.calls.append(call)
            return
        if isinstance(event, ToolEnded) and event.call in self._searches:
            answer, query = self._searches[event.call]
            if not event.cancelled:  # the agent ends the searches of an answer that is cut off
                answer.pieces.append(search_end(event, query))
            return
        recorded = self._calls_by_id.get(getattr(event, "call", ""))
        if recorded is None:
            return
        match event:
            case PermissionAsked():
                recorded.question = event
            case PermissionDecided():
                recorded.decision = event
            case ToolStarted():
                recorded.started = True
            case ToolEnded():
                recorded.end = event
                self.instructions |= dict(event.instructions)
            case _ if recorded.end is None:
                (recorded.run_events if recorded.started else recorded.setup_events).append(event)
            case BackgroundCommandChanged():
                self._end(event)

    def _end(self, event: End) -> None:
        """Add the end of background work: before the next request, or before the next turn."""
        open_answer = self._open_answers.get(MAIN) if self._in_turn else None
        ends = self.last_actions if open_answer is None else open_answer.ends
        ends.append(event)

    def _start_search(self, event: ToolCalled) -> None:
        query = ""
        with suppress(DecodeError):
            query = str(json.decode(event.arguments, type=dict[str, str]).get("query", ""))
        for answer in self._open_answers.values():
            if answer.event.message == event.message:
                answer.pieces.append(SearchStarted(search=event.call, query=query))
                self._searches[event.call] = answer, query

    def _steer(self, session: SessionId, event: UserMessage) -> None:
        """Add a steering message at its place: in an answer, or in a running call."""
        answer = self._open_answers.get(session)
        running = self._running()
        if running:
            running[0].run_events.append(event)
        elif answer is not None:
            answer.pieces.append(event)

    def _running(self, session: SessionId | None = None) -> list[Call]:
        """Return the running calls of all sessions or of one."""
        return [
            call
            for call in self.calls
            if call.started and call.end is None and session in {None, call.session}
        ]

    def _mark_stopped(self) -> None:
        """Mark the calls and answers that were running when the user stopped the turn."""
        if not self.prompts:
            return
        cancelled = [call for call in self.calls if call.end is not None and call.end.cancelled]
        started = [call for call in cancelled if call.started]
        for call in started or cancelled:
            call.stopped_turn = True
        for answer in self._open_answers.values():
            end = answer.end
            if not cancelled and (end is None or not (end.complete or end.discarded)):
                answer.stopped_turn = True

    def _end_turn(self, session: SessionId, event: TurnEnded) -> None:
        answer = self._open_answers.pop(session, None)
        if answer is None or answer.end is None:
            return
        if event.error and not answer.end.complete:
            answer.failure = event.error
        elif event.stop_reason == "refusal" and not answer.stop:
            answer.stop = "refusal"
        elif event.stop_reason == "end_turn":
            for call in answer.calls:
                refused = call.decision is not None and not call.decision.allowed
                call.ends_turn = call.started and not refused


def _add_failure(answers: Iterable[Answer], notice: NoticeShown) -> None:
    """Add the reason to the answer that failed; a session has the notices of its children."""
    for answer in answers:
        if answer.end is not None and answer.end.discarded and not answer.failure:
            fell_back = "answers instead of" in notice.title
            answer.stop = "unreachable" if fell_back else "overloaded"
            reason = notice.title.partition("; trying again in")[0]
            answer.failure = notice.description if fell_back else reason
            return


def _set_stop_reasons(answers: Sequence[Answer]) -> None:
    """Set the reason why each answer stopped, if its event does not have it."""
    for answer, next_answer in zip_longest(answers, answers[1:]):
        if answer.stop:
            continue
        if next_answer is not None and next_answer.event.continues == answer.event.message:
            answer.stop = "max_tokens"
        else:
            answer.stop = "tool_calls" if answer.calls else "end_turn"
