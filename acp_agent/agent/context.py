"""What the model is sent: a pure fold of the session's events.

The list only ever grows at its end (but for a refusal, whose turn the protocol takes out), so every
request begins with the bytes of the one before and the provider's cache holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from acp_agent.content import (
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)
from acp_agent.events import (
    AgentText,
    AgentThought,
    Event,
    ModelAnswered,
    ModelAsked,
    SystemPromptWritten,
    ThoughtSealed,
    ToolCalled,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
    TurnStarted,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId
from acp_agent.models.base import (
    AnswerCall,
    AnswerText,
    AnswerThought,
    Message,
    ModelSide,
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)

CANCELLED_NOTE = "[The user stopped the previous turn before it was finished.]"
INTERRUPTED_NOTE = (
    "[The agent was stopped from outside in the previous turn: an answer or a tool call of it may "
    "be cut off. Look at the state of the files before relying on it.]"
)
NO_RESULT = "The call was cut off before it ended; it may or may not have taken effect."

_Part = AnswerText | AnswerThought | AnswerCall


class Context:
    """The conversation as messages to a model. Feed it every event, in order."""

    def __init__(self) -> None:
        self.system_prompt: str | None = None
        self._messages: list[Message] = []
        self._asked: MessageId | None = None
        self._answer: list[_Part] = []
        self._run: list[str] = []  # pieces of the text or thought that is being written
        self._run_kind: type[AnswerText | AnswerThought] | None = None
        self._calls: list[CallId] = []
        self._results: dict[CallId, ToolResult] = {}
        self._waiting: list[UserSide] = []
        self._note = ""
        self._turn_began_at = 0

    def feed(self, events: Iterable[Event]) -> None:
        """Take further events in."""
        for event in events:
            self._take(event)

    @property
    def messages(self) -> Sequence[Message]:
        """The messages so far, complete ones only."""
        return self._messages

    @property
    def awaits_answer(self) -> bool:
        """Whether the user's side spoke last, so that the model is to be asked."""
        return bool(self._messages) and isinstance(self._messages[-1], UserSide)

    @property
    def has_unanswered_words(self) -> bool:
        """Whether what came last is something the user said, rather than the results of calls."""
        return self.awaits_answer and not any(
            isinstance(part, ToolResult) for part in self._messages[-1].parts
        )

    def _take(self, event: Event) -> None:
        match event:
            # Only what the model was asked for is its own: the agent says things by itself too,
            # in the middle of an answer or of a call, and the model never learns of them.
            case AgentText() if event.message == self._asked:
                self._flow(AnswerText, event.text)
            case AgentThought() if event.message == self._asked:
                self._flow(AnswerThought, event.text)
            case ThoughtSealed():
                self._seal_thought(event)
            case ToolCalled():
                self._end_run()
                self._answer.append(
                    AnswerCall(
                        call=event.call,
                        name=event.name,
                        arguments=event.arguments,
                        seal=event.seal,
                    )
                )
                self._calls.append(event.call)
            case ModelAsked():
                self._asked = event.message
            case ModelAnswered() if event.message == self._asked:
                self._answered(event)
            case ToolEnded():
                self._ended(event)
            case UserMessage():
                self._say(event)
            case TurnStarted():
                self._turn_began_at = len(self._messages)
            case TurnEnded():
                self._end_turn(event)
            case TurnInterrupted():
                self._close()
                self._note = INTERRUPTED_NOTE
            case SystemPromptWritten():
                self.system_prompt = event.text
            case _:
                pass

    def _flow(self, kind: type[AnswerText | AnswerThought], text: str) -> None:
        """Add to the run of text or thought that is open, or begin one."""
        if self._run_kind is not kind:
            self._end_run()
            self._run_kind = kind
        self._run.append(text)

    def _end_run(self) -> None:
        text = "".join(self._run)
        if self._run_kind is AnswerText and text:
            self._answer.append(AnswerText(text))
        elif self._run_kind is AnswerThought and text:
            self._answer.append(AnswerThought(text=text))
        self._run.clear()
        self._run_kind = None

    def _seal_thought(self, event: ThoughtSealed) -> None:
        text = ""
        if self._run_kind is AnswerThought:
            text = "".join(self._run)
            self._run.clear()
            self._run_kind = None
        self._end_run()
        self._answer.append(AnswerThought(text=text, provider=event.provider, seal=event.seal))

    def _answered(self, event: ModelAnswered) -> None:
        self._end_run()
        if event.discarded:
            # The same request is made again: what the user said meanwhile is no part of it.
            self._answer.clear()
            self._calls.clear()
            return
        if self._answer:
            self._messages.append(ModelSide(tuple(self._answer)))
            self._answer.clear()
        self._asked = None
        self._settle()

    def _ended(self, event: ToolEnded) -> None:
        self._results[event.call] = ToolResult(
            call=event.call,
            text=event.result,
            failed=event.failed,
            images=tuple(image for image in event.images if isinstance(image, ImageBlock)),
        )
        self._settle()

    def _say(self, event: UserMessage) -> None:
        if event.local:
            return
        parts: list[UserText | UserImage | ToolResult] = []
        if self._note:
            parts.append(UserText(self._note))
            self._note = ""
        parts.extend(_user_part(block) for block in event.content)
        if event.attached:
            parts.append(UserText(event.attached))
        self._waiting.append(UserSide(tuple(parts)))
        self._settle()

    def _end_turn(self, event: TurnEnded) -> None:
        self._close()
        if event.stop_reason == "refusal":
            # "The user prompt and everything that comes after it won't be included in the next
            # prompt" (Agent Client Protocol v1, StopReason).
            del self._messages[self._turn_began_at :]
        elif event.stop_reason == "cancelled":
            self._note = CANCELLED_NOTE

    def _close(self) -> None:
        """Take what is open as it is: a cut-off answer, calls without a result."""
        self._end_run()
        if self._answer:
            self._messages.append(ModelSide(tuple(self._answer)))
            self._answer.clear()
        self._asked = None
        for call in self._calls:
            self._results.setdefault(call, ToolResult(call=call, text=NO_RESULT, failed=True))
        self._settle()

    def _settle(self) -> None:
        """Move on what is complete: results behind their answer, then what the user said."""
        if self._asked is not None or self._answer or self._run:
            return
        if self._calls:
            if any(call not in self._results for call in self._calls):
                return
            self._messages.append(UserSide(tuple(self._results[call] for call in self._calls)))
            self._calls.clear()
            self._results.clear()
        self._messages.extend(self._waiting)
        self._waiting.clear()


def _user_part(block: ContentBlock) -> UserText | UserImage:
    match block:
        case TextBlock():
            return UserText(block.text)
        case ImageBlock():
            return UserImage(block)
        case ResourceBlock():
            body = block.resource.text
            if body is None:
                kind = block.resource.mime_type or "unknown type"
                return UserText(f"[Attached: {block.resource.uri}, binary, {kind}]")
            return UserText(f'<resource uri="{block.resource.uri}">\n{body}\n</resource>')
        case ResourceLinkBlock():
            return UserText(f"[Link: {block.title or block.name}, {block.uri}]")
        case _:
            return UserText("[Audio, which this agent cannot hear]")
