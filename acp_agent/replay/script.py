"""What a record says of each party: the model's answers, the calls' results, the user's words."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from msgspec import Struct, field

from acp_agent.content import ContentBlock
from acp_agent.events import (
    AgentText,
    AgentThought,
    AnyEvent,
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
    ThoughtEnded,
    ToolCalled,
    ToolEnded,
    ToolStarted,
    TurnEnded,
    UserMessage,
)
from acp_agent.ids import SessionId
from acp_agent.replay.record import Record, RecordedRequest

_AT_START = frozenset({"mode", "model"})  # a new session has them
MAIN = SessionId("")  # the session itself, beside its children

_LINKED = re.compile(r'<file path="([^"]+)">\n(.*?)\n</file>', re.DOTALL)  # agent/attachments.py

Piece = AgentText | AgentThought | ThoughtEnded | UserMessage


class Call(Struct, kw_only=True):
    """A recorded call of a tool.

    Attributes:
        called: how the model made it, in `session`.
        before: what it showed before it ran, and `shown` while it ran, in order.
        asked: the question about it, and `decided` the answer.
        started: whether it ran.
        ended: how it ended; None where the record ends before.
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
        asked: the request's event, and `request` what it sent.
        turn: the number of the turn that it was made in.
        number: its number among all requests of the record.
        pieces: what was streamed, in order, with what the user said meanwhile.
        calls: the calls that it made.
        ended: how it ended; None where the turn was stopped before.
        stop: why it stopped, as `Finished.stop` or a kind of `Failed` says it.
        failure: what went wrong; "" where nothing did.
        stopped_turn: whether the user stopped the turn while it was streamed.
    """

    asked: ModelAsked
    request: RecordedRequest
    turn: int
    number: int
    pieces: list[Piece] = field(default_factory=list)
    calls: list[Call] = field(default_factory=list)
    ended: ModelAnswered | None = None
    stop: str = ""
    failure: str = ""
    stopped_turn: bool = False


class Prompt(Struct, kw_only=True):
    """A turn as the user began it: the settings before it, the words, and the files they link."""

    settings: tuple[ConfigChanged, ...]
    words: tuple[ContentBlock, ...]
    linked: dict[str, str]


class Script:
    """A record, sorted by who has to repeat it.

    Args:
        record: the record; its events have the folders of the replay in them.

    Attributes:
        start: the mode and the model that the session began with, by option.
        prompts: the turns.
        answers: the answers by session, in order; children have the ids of the record.
        calls: all calls, in order.
        instructions: the instruction files that were read with other files, by path.
        side_answers: the answers to requests beside the conversation; None: it failed.
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
        self._settings: list[ConfigChanged] = []
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
        match event:
            case ConfigChanged() if event.option in _AT_START - self.start.keys() and (
                not self.prompts
            ):
                self.start[event.option] = event.value
            case ConfigChanged():
                self._settings.append(event)
            case UserMessage() if session == MAIN and not event.steering:
                settings, self._settings = tuple(self._settings), []
                linked = dict(_LINKED.findall(event.attached))
                self.prompts.append(Prompt(settings=settings, words=event.content, linked=linked))
                self.instructions |= dict(event.instructions)
            case UserMessage() if event.steering:
                self._steer(session, event)
            case TurnEnded() if event.stop_reason == "cancelled" and session == MAIN:
                self._stopped()
            case TurnEnded():
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
            case ModelAsked():  # no request: a call that the user made
                self._open.pop(session, None)
            case AgentText() | AgentThought() | ThoughtEnded() if answer is not None:
                if event.message == answer.asked.message:
                    answer.pieces.append(event)
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
                return  # it ran within the answer
            call = Call(called=event, session=session)
            self.calls.append(call)
            self._by_call[event.call] = call
            for answer in self._open.values():
                if answer.asked.message == event.message:
                    answer.calls.append(call)
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
            case _:
                pass

    def _steer(self, session: SessionId, event: UserMessage) -> None:
        """Keep a message where the user said it: in an answer, or while a call ran."""
        answer = self._open.get(session)
        running = [call for call in self.calls if call.started and call.ended is None]
        if running:
            running[0].shown.append(event)
        elif answer is not None:
            answer.pieces.append(event)

    def _stopped(self) -> None:
        """Find what ran when the user stopped the turn."""
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


def _reason(title: str) -> str:
    return title.partition("; trying again in")[0]


def _tell_stops(answers: Sequence[Answer]) -> None:
    """Say of each answer why it stopped, where its event does not."""
    for answer, following in zip(answers, [*answers[1:], None], strict=True):
        if answer.stop:
            continue
        if following is not None and following.asked.continues == answer.asked.message:
            answer.stop = "max_tokens"
        else:
            answer.stop = "tool_calls" if answer.calls else "end_turn"
