"""What the model is sent: a pure fold of the session's events.

The list only ever grows at its end, so every request begins with the bytes of the one before and
the provider's cache holds. The exceptions are a refusal, whose turn the protocol takes out, and the
events that shorten it when it has become too long (`acp_agent.agent.view`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from acp_agent.agent.coming import Coming
from acp_agent.agent.rewinding import Branches
from acp_agent.agent.tokens import Counted, text_tokens
from acp_agent.agent.view import Entry, View
from acp_agent.content import ImageBlock
from acp_agent.events import (
    AgentText,
    AgentThought,
    BackgroundCommandChanged,
    CompactionChanged,
    ContextTrimmed,
    Event,
    LoopNoticed,
    ModelAnswered,
    ModelAsked,
    NoticeShown,
    PicturesDescribed,
    PromptRepeated,
    Rewound,
    SystemPromptWritten,
    ThoughtSealed,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import MessageId
from acp_agent.models.base import (
    AnswerText,
    AnswerThought,
    Message,
    ModelSide,
    ToolResult,
    UserSide,
)

if TYPE_CHECKING:  # for sessions in which something was said
    from acp_agent.agent.open_answer import OpenAnswer

CANCELLED_NOTE = "[The user stopped the previous turn before it was finished.]"
INTERRUPTED_NOTE = (
    "[The agent was stopped from outside in the previous turn: an answer or a tool call of it may "
    "be cut off. Look at the state of the files before relying on it.]"
)


class Context:
    """The conversation as messages to a model. Feed it every event, in order.

    Attributes:
        system_prompt: what the model is told first; None before it was written.
        counted: what a provider counted of the last request.
        refused: by model, the least estimate that was too much for it.
        turn: how many turns began.
        pictures: those that nobody described, by their message or call.
    """

    def __init__(self) -> None:
        self.system_prompt: str | None = None
        self.counted: Counted | None = None
        self.refused: dict[str, int] = {}
        self.turn = 0
        self.pictures: dict[str, tuple[ImageBlock, ...]] = {}
        self._view = View()
        self._branches = Branches()
        self._system_tokens = 0
        self._asked: MessageId | None = None
        self._asked_tokens = 0
        self._compactions: dict[str, int] = {}  # the place at which each began
        self._answer: OpenAnswer | None = None
        self._coming = Coming()
        self._turn_began_at = 0
        self._said_since = False  # whether the user said something since the model was asked

    def feed(self, events: Iterable[Event]) -> None:
        """Take further events in."""
        for event in events:
            take = self._TAKES.get(type(event))
            if take is not None:
                take(self, event)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages so far, complete ones only."""
        return self._view.messages

    @property
    def entries(self) -> Sequence[Entry]:
        """Every message so far, with those that are not sent any more."""
        return self._view.entries

    @property
    def view(self) -> View:
        """What of the entries the model is sent. To be changed by events only."""
        return self._view

    @property
    def tokens(self) -> int:
        """The estimate for the system prompt and the messages."""
        return self._system_tokens + self._view.tokens

    @property
    def turn_was_answered(self) -> bool:
        """Whether the model said or called anything in this turn."""
        began = self._view.entries[self._turn_began_at :]
        return any(isinstance(entry.message, ModelSide) for entry in began)

    @property
    def is_shortened(self) -> bool:
        """Whether the model is sent less than all that was said."""
        return self._view.is_shortened

    @property
    def latest(self) -> Message | None:
        """What was said last, by either side."""
        entries = self._view.entries
        return entries[-1].message if entries else None

    @property
    def awaits_answer(self) -> bool:
        """Whether the user's side spoke last, so that the model is to be asked."""
        entries = self._view.entries
        return bool(entries) and isinstance(entries[-1].message, UserSide)

    @property
    def has_unanswered_words(self) -> bool:
        """Whether what came last is something the user said, rather than the results of calls."""
        return self.awaits_answer and not any(
            isinstance(part, ToolResult) for part in self._view.entries[-1].message.parts
        )

    @property
    def has_unheard_words(self) -> bool:
        """Whether what came last is something the user said, and no model was asked about it."""
        return self._said_since and self.has_unanswered_words

    # Only what the model was asked for is its own: the agent says things by itself too, in the
    # middle of an answer or of a call, and the model never learns of them.

    def _said(self, event: AgentText) -> None:
        if event.message == self._asked:
            self._writing.flow(AnswerText, event.text)

    def _thought(self, event: AgentThought) -> None:
        if event.message == self._asked:
            self._writing.flow(AnswerThought, event.text)

    def _sealed(self, event: ThoughtSealed) -> None:
        self._writing.seal(event)

    def _called(self, event: ToolCalled) -> None:
        self._writing.call(event)
        self._coming.called(event.call)

    def _ask(self, event: ModelAsked) -> None:
        if self._answer is not None or self._coming.waits:
            self._close()  # what should have ended before has a damaged id: send it as it is
        self._asked, self._asked_tokens = event.message, self.tokens
        self._said_since = False

    def _heard(self, event: BackgroundCommandChanged) -> None:
        self._coming.heard(event)

    def _repeat(self, event: PromptRepeated) -> None:
        self._coming.repeated(event)
        self._settle()

    def _begin_turn(self, event: TurnStarted) -> None:
        del event
        self.turn += 1
        self._turn_began_at = len(self._view.entries)

    def _interrupt(self, event: TurnInterrupted) -> None:
        del event
        self._close()
        self._coming.note = INTERRUPTED_NOTE

    def _instruct(self, event: SystemPromptWritten) -> None:
        self.system_prompt, self._system_tokens = event.text, text_tokens(event.text)

    def _describe(self, event: PicturesDescribed) -> None:
        self.pictures.pop(event.of, None)
        self._view.amend(event.of, event.text)

    def _notice_loop(self, event: LoopNoticed) -> None:
        if event.note:
            self._view.amend(event.call, event.note)

    def _note(self, event: NoticeShown) -> None:
        if event.for_model:
            self._coming.noted(event)
            self._settle()

    @property
    def _writing(self) -> OpenAnswer:
        """The answer that is being written; begun, where there is none."""
        if self._answer is None:
            from acp_agent.agent.open_answer import OpenAnswer  # noqa: PLC0415 - not at start

            self._answer = OpenAnswer()
        return self._answer

    def _answered(self, event: ModelAnswered) -> None:
        if event.message != self._asked:
            return
        if event.discarded:
            # The same request is made again: what the user said meanwhile is no part of it.
            self._answer = None
            self._coming.forget_calls()
            return
        self._take_answer()
        if event.usage and event.complete:  # else the count is that of a part
            self.counted = Counted(
                model=event.model,
                input=event.usage.input,
                output=event.usage.output,
                asked=self._asked_tokens,
                after=self.tokens,
                changes=self._view.changes,
            )
        self._settle()

    def _take_answer(self) -> None:
        parts = () if self._answer is None else self._answer.parts()
        if parts:
            self._view.append(ModelSide(parts), said=self._asked, turn=self.turn)
        self._answer = self._asked = None

    def _compact(self, event: CompactionChanged) -> None:
        began = self._compactions.setdefault(event.compaction, len(self._view.entries))
        if event.status == "completed":
            before = began if event.keep_from is None else self._view.place(event.keep_from)
            self._view.sum_up(before, event.summary)

    def _rewind(self, event: Rewound) -> None:
        """Go back, and leave behind what was about to be said."""
        if not event.conversation:
            return
        self._coming.forget_calls()
        self._coming.note = ""
        self._answer, self._asked, self.counted = None, None, None
        self._branches.go(self._view, event, self.turn)
        self._turn_began_at = min(self._turn_began_at, len(self._view.entries))

    def _trim(self, event: ContextTrimmed) -> None:
        if event.overflow:
            known = self.refused.get(event.model, event.overflow)
            self.refused[event.model] = min(known, event.overflow)
        if event.keep_from is not None:
            self._view.leave_out(self._view.place(event.keep_from))
        if event.result_limit:
            self._view.cut_results(self._view.place(event.results_before), event.result_limit)

    def _ended(self, event: ToolEnded) -> None:
        if pictures := self._coming.ended(event):
            self.pictures[event.call] = pictures
        self._settle()

    def _say(self, event: UserMessage) -> None:
        if event.local:
            return
        self._said_since = True
        if pictures := self._coming.said(event):
            self.pictures[event.message] = pictures
        self._settle()

    def _end_turn(self, event: TurnEnded) -> None:
        self._close()
        if event.stop_reason == "refusal":
            # "The user prompt and everything that comes after it won't be included in the next
            # prompt" (Agent Client Protocol v1, StopReason).
            self._view.truncate(self._turn_began_at)
        elif event.stop_reason == "cancelled":
            self._coming.note = CANCELLED_NOTE

    def _close(self) -> None:
        """Take what is open as it is: a cut-off answer, calls without a result."""
        self._take_answer()
        self._coming.cut_off()
        self._settle()

    def _settle(self) -> None:
        """Move on what is complete: results behind their answer, then what the user said."""
        if self._asked is not None or self._answer is not None:
            return
        for message, said, opens in self._coming.take():
            self._view.append(message, said=said, turn=self.turn, opens=opens)

    # By type and not by pattern: a session that is opened again has thousands of events. What a
    # child did is none of them; it has a context of its own.
    _TAKES: ClassVar[Mapping[type[Event], Callable[[Context, Any], None]]] = {
        AgentText: _said,
        AgentThought: _thought,
        BackgroundCommandChanged: _heard,
        CompactionChanged: _compact,
        ContextTrimmed: _trim,
        LoopNoticed: _notice_loop,
        ModelAnswered: _answered,
        ModelAsked: _ask,
        NoticeShown: _note,
        PicturesDescribed: _describe,
        PromptRepeated: _repeat,
        Rewound: _rewind,
        SystemPromptWritten: _instruct,
        ThoughtSealed: _sealed,
        ToolCalled: _called,
        ToolEnded: _ended,
        TurnEnded: _end_turn,
        TurnInterrupted: _interrupt,
        TurnStarted: _begin_turn,
        UserMessage: _say,
    }
