"""Compute the messages for the model from the session's events.

Messages are only added at the end, so every request begins with the bytes of the previous one and
the provider's cache stays valid. There are two exceptions: the protocol removes a refused turn, and
some events shorten the context (`acp_agent.agent.context_view`) or rewind it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar

from acp_agent.agent.context_view import Branches, ContextView, Entry
from acp_agent.agent.pending_messages import PendingAnswer, PendingInput, instruction_part
from acp_agent.agent.token_count import MeasuredTokens, text_tokens
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
    ThoughtEnded,
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
    UserText,
)

CANCELLED_NOTE = "[The user stopped the previous turn before it was finished.]"
INTERRUPTED_NOTE = (
    "[The agent was stopped from outside in the previous turn: an answer or a tool call of it may "
    "be cut off. Look at the state of the files before relying on it.]"
)


class Context:
    """The conversation as messages to a model. Feed it every event, in order.

    Attributes:
        system_prompt: the system prompt; None until it is written.
        measured: the provider's token count of the last request.
        refused: for each model, the lowest number of tokens that it refused as too many.
        turn: the number of turns started.
        pictures: the pictures without a description, by the id of their message or call.
        was_repeated: true if a prompt was repeated.
    """

    def __init__(self) -> None:
        self.system_prompt: str | None = None
        self.measured: MeasuredTokens | None = None
        self.refused: dict[str, int] = {}
        self.turn = 0
        self.pictures: dict[str, tuple[ImageBlock, ...]] = {}
        self.was_repeated = False
        self.view = ContextView()
        self._branches = Branches()
        self._system_tokens = 0
        self._answer_id: MessageId | None = None  # the answer that is being written
        self._request_tokens = 0
        self._compactions: dict[str, int] = {}  # the number of entries when each began
        self._answer: PendingAnswer | None = None
        self._input = PendingInput()
        self._turn_began_at = 0  # index in the entries
        self._has_new_message = False  # the user has sent one since the last request
        # Instruction files: the id of the message or the index of the results, the path, the text.
        self._instructions: list[tuple[MessageId | int, str, str]] = []

    def feed(self, events: Iterable[Event]) -> None:
        """Apply more events."""
        for event in events:
            handle = self._HANDLERS.get(type(event))
            if handle is not None:
                handle(self, event)

    @property
    def messages(self) -> Sequence[Message]:
        """Return the messages to send. Incomplete messages are not included."""
        return self.view.messages

    @property
    def entries(self) -> Sequence[Entry]:
        """Return all messages so far, including those that are no longer sent."""
        return self.view.entries

    @property
    def tokens(self) -> int:
        """Return the estimated tokens of the system prompt and the messages."""
        return self._system_tokens + self.view.tokens

    @property
    def turn_was_answered(self) -> bool:
        """Return whether the model has given an answer or a call in this turn."""
        turn_entries = self.view.entries[self._turn_began_at :]
        return any(isinstance(entry.message, ModelSide) for entry in turn_entries)

    @property
    def is_shortened(self) -> bool:
        """Return whether parts of the conversation are not sent to the model."""
        return self.view.is_shortened

    @property
    def latest(self) -> Message | None:
        """Return the last message of either side, if there is one."""
        entries = self.view.entries
        return entries[-1].message if entries else None

    @property
    def last_answer(self) -> str:
        """The text of the model's last answer; "" if there is none."""
        for entry in reversed(self.view.entries):
            if isinstance(entry.message, ModelSide):
                parts = entry.message.parts
                return "".join(part.text for part in parts if isinstance(part, AnswerText))
        return ""

    @property
    def awaits_answer(self) -> bool:
        """Return whether the last message is of the user's side, so the model must be asked."""
        entries = self.view.entries
        return bool(entries) and isinstance(entries[-1].message, UserSide)

    @property
    def has_unanswered_message(self) -> bool:
        """Return whether the last message is of the user's side and has no results of calls."""
        return self.awaits_answer and not any(
            isinstance(part, ToolResult) for part in self.view.entries[-1].message.parts
        )

    @property
    def has_unsent_message(self) -> bool:
        """Return whether the last message is the user's and has not been sent to a model."""
        return self._has_new_message and self.has_unanswered_message

    def has_instruction(self, path: str, text: str | None) -> bool:
        """Return whether the messages for the model contain an instruction file, or its text.

        An instruction that was summarised, left out or rewound does not count.
        """
        system = self.system_prompt or ""
        if f"## {path}\n" in system or (text is not None and text in system):
            return True
        return any(
            (path == sent_path or text == sent_text)
            and self._is_sent(position, sent_path, sent_text)
            for position, sent_path, sent_text in self._instructions
        )

    def _is_sent(self, position: MessageId | int, path: str, text: str) -> bool:
        if isinstance(position, str) and not self.view.has(position):
            return False
        index = self.view.find_index(position) if isinstance(position, str) else position
        if not self.view.first <= index < len(self.view.entries):
            return False
        return instruction_part(path, text) in self.view.entries[index].message.parts

    def _on_turn_start(self, _event: TurnStarted) -> None:
        self.turn += 1
        self._turn_began_at = len(self.view.entries)

    def _on_system_prompt(self, event: SystemPromptWritten) -> None:
        self.system_prompt, self._system_tokens = event.text, text_tokens(event.text)

    def _on_user_message(self, event: UserMessage) -> None:
        if event.local:
            return
        self._has_new_message = True
        if pictures := self._input.add_message(event):
            self.pictures[event.message] = pictures
        self._instructions += ((event.message, path, text) for path, text in event.instructions)
        self._append_ready()

    def _on_repeated_prompt(self, event: PromptRepeated) -> None:
        self.was_repeated = self.was_repeated or event.rounds > 0  # 0 for a step of a workflow
        self._input.add_repeated(event)
        self._append_ready()

    def _on_notice(self, event: NoticeShown) -> None:
        if event.for_model:
            self._input.add_notice(event)
            self._append_ready()

    def _on_command(self, event: BackgroundCommandChanged) -> None:
        self._input.add_news(event)

    def _on_request(self, event: ModelAsked) -> None:
        if self._answer is not None or self._input.has_calls:
            self._close()  # the last answer was not ended, because its id is damaged
        if event.note:
            self.view.append(UserSide((UserText(event.note),)), None, turn=self.turn)
        self._answer_id, self._request_tokens = event.message, self.tokens
        self._has_new_message = False

    # The agent writes its own messages during an answer or a call, and the model must not see them.
    # Therefore only text of the requested message is added.

    def _on_text(self, event: AgentText) -> None:
        if event.message == self._answer_id:
            self._pending_answer.add_piece(AnswerText, event.text)

    def _on_thought(self, event: AgentThought) -> None:
        if event.message == self._answer_id:
            self._pending_answer.add_piece(AnswerThought, event.text)

    def _on_thought_end(self, event: ThoughtEnded) -> None:
        self._pending_answer.end_thought(event)

    def _on_call(self, event: ToolCalled) -> None:
        if event.provider:
            self._pending_answer.begin_search(event)
            return
        self._pending_answer.add_call(event)
        self._input.add_call(event.call)

    def _on_answer_end(self, event: ModelAnswered) -> None:
        if event.message != self._answer_id:
            return
        if event.discarded:
            # The same request is sent again, without messages that the user wrote meanwhile.
            self._answer = None
            self._input.discard_calls()
            return
        self._append_answer()
        if event.usage and event.complete:  # otherwise the count covers only a part
            self.measured = MeasuredTokens(
                model=event.model,
                input=event.usage.input,
                output=event.usage.output,
                estimated=self._request_tokens,
                after=self.tokens,
                changes=self.view.changes,
            )
        self._append_ready()

    def _on_call_end(self, event: ToolEnded) -> None:
        if self._answer is not None and self._answer.end_search(event):
            return
        index = len(self.view.entries)  # where the results of this answer will be
        self._instructions += ((index, path, text) for path, text in event.instructions)
        if pictures := self._input.add_result(event):
            self.pictures[event.call] = pictures
        self._append_ready()

    def _on_loop(self, event: LoopNoticed) -> None:
        if event.note:
            self.view.add_text(event.call, event.note)

    def _on_description(self, event: PicturesDescribed) -> None:
        self.pictures.pop(event.of, None)
        self.view.add_text(event.of, event.text)

    def _on_compaction(self, event: CompactionChanged) -> None:
        start = self._compactions.setdefault(event.compaction, len(self.view.entries))
        if event.status == "completed":
            before = start if event.keep_from is None else self.view.find_index(event.keep_from)
            self.view.summarize(before, event.summary)

    def _on_trim(self, event: ContextTrimmed) -> None:
        if event.overflow:
            previous = self.refused.get(event.model, event.overflow)
            self.refused[event.model] = min(previous, event.overflow)
        if event.keep_from is not None:
            self.view.leave_out(self.view.find_index(event.keep_from))
        if event.result_limit:
            self.view.cut_results(self.view.find_index(event.results_before), event.result_limit)

    def _on_rewind(self, event: Rewound) -> None:
        if not event.conversation:
            return
        self._input.discard_calls()
        self._input.note = ""
        self._answer, self._answer_id, self.measured = None, None, None
        self._branches.rewind(self.view, event, self.turn)
        self._turn_began_at = min(self._turn_began_at, len(self.view.entries))

    def _on_turn_end(self, event: TurnEnded) -> None:
        self._close()
        if event.stop_reason == "refusal":
            # "The user prompt and everything that comes after it won't be included in the next
            # prompt" (Agent Client Protocol v1, StopReason).
            self.view.truncate(self._turn_began_at)
        elif event.stop_reason == "cancelled":
            self._input.note = CANCELLED_NOTE

    def _on_interruption(self, _event: TurnInterrupted) -> None:
        self._close()
        self._input.note = INTERRUPTED_NOTE

    @property
    def _pending_answer(self) -> PendingAnswer:
        if self._answer is None:
            self._answer = PendingAnswer()
        return self._answer

    def _append_answer(self) -> None:
        answer_parts = () if self._answer is None else self._answer.parts()
        if answer_parts:
            self.view.append(ModelSide(answer_parts), self._answer_id, turn=self.turn)
        self._answer = self._answer_id = None

    def _append_ready(self) -> None:
        """Append the results after their answer, then the user's messages, if all are complete."""
        if self._answer_id is not None or self._answer is not None:
            return
        for message, message_id, opens in self._input.take_ready():
            self.view.append(message, message_id, turn=self.turn, opens=opens)

    def _close(self) -> None:
        """Append the open answer and its calls, even if they are incomplete."""
        self._append_answer()
        self._input.end_calls()
        self._append_ready()

    # Dispatch by type is faster than patterns, which matters when a long session is loaded.
    # Events of a child session are not listed: the child has its own context.
    _HANDLERS: ClassVar[Mapping[type[Event], Callable[[Context, Any], None]]] = {
        AgentText: _on_text,
        AgentThought: _on_thought,
        BackgroundCommandChanged: _on_command,
        CompactionChanged: _on_compaction,
        ContextTrimmed: _on_trim,
        LoopNoticed: _on_loop,
        ModelAnswered: _on_answer_end,
        ModelAsked: _on_request,
        NoticeShown: _on_notice,
        PicturesDescribed: _on_description,
        PromptRepeated: _on_repeated_prompt,
        Rewound: _on_rewind,
        SystemPromptWritten: _on_system_prompt,
        ThoughtEnded: _on_thought_end,
        ToolCalled: _on_call,
        ToolEnded: _on_call_end,
        TurnEnded: _on_turn_end,
        TurnInterrupted: _on_interruption,
        TurnStarted: _on_turn_start,
        UserMessage: _on_user_message,
    }
