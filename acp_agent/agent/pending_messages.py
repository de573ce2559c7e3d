"""Messages of a conversation that are not complete yet, one class for each side.

The model's answer while it is written, and what the model is sent next: the results of its calls,
then the user's messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from acp_agent.content import (
    ContentBlock,
    ImageBlock,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
)
from acp_agent.events import (
    BackgroundCommandChanged,
    NoticeShown,
    PromptRepeated,
    ThoughtEnded,
    ToolCalled,
    ToolEnded,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId
from acp_agent.models.base import (
    AnswerCall,
    AnswerPart,
    AnswerSearch,
    AnswerText,
    AnswerThought,
    ToolResult,
    UserImage,
    UserSide,
    UserText,
)

NO_RESULT = "The call was cut off before it ended; it may or may not have taken effect."


class PendingAnswer:
    """An answer that the model is writing; pieces of one text, or of one thought, are joined."""

    __slots__ = ("_kind", "_parts", "_pieces", "_searches")

    def __init__(self) -> None:
        self._parts: list[AnswerPart] = []
        self._searches: dict[CallId, str] = {}  # that run, with their providers
        self._pieces: list[str] = []  # of the text or thought that is being written
        self._kind: type[AnswerText | AnswerThought] | None = None

    def add_piece(self, kind: type[AnswerText | AnswerThought], text: str) -> None:
        """Add a piece to the current text or thought, or begin one."""
        if self._kind is not kind:
            self._end_pieces()
            self._kind = kind
        self._pieces.append(text)

    def end_thought(self, event: ThoughtEnded) -> None:
        """End a thought with the signature that its provider wants back."""
        text = ""
        if self._kind is AnswerThought:
            text = "".join(self._pieces)
            self._pieces.clear()
            self._kind = None
        self._end_pieces()
        self._parts.append(
            AnswerThought(text=text, provider=event.provider, provider_data=event.provider_data)
        )

    def add_call(self, event: ToolCalled) -> None:
        """Add a call."""
        self._end_pieces()
        self._parts.append(
            AnswerCall(
                call=event.call,
                name=event.name,
                arguments=event.arguments,
                provider_data=event.provider_data,
            )
        )

    def begin_search(self, event: ToolCalled) -> None:
        """Note a search that the provider runs."""
        self._end_pieces()
        self._searches[event.call] = event.provider

    def end_search(self, event: ToolEnded) -> bool:
        """Add a search that has ended; return False if the provider did not run this call."""
        provider = self._searches.pop(event.call, None)
        if provider is None:
            return False
        self._end_pieces()
        self._parts.append(
            AnswerSearch(text=event.result, provider=provider, provider_data=event.provider_data)
        )
        return True

    def parts(self) -> tuple[AnswerPart, ...]:
        """Return all parts so far."""
        self._end_pieces()
        return tuple(self._parts)

    def _end_pieces(self) -> None:
        text = "".join(self._pieces)
        if self._kind is AnswerText and text:
            self._parts.append(AnswerText(text))
        elif self._kind is AnswerThought and text:
            self._parts.append(AnswerThought(text=text))
        self._pieces.clear()
        self._kind = None


class ReadyMessage(NamedTuple):
    """A message of the user's side that can be sent.

    `id` is None for results; `opens` says whether a turn, or a repeated prompt, begins with it.
    """

    message: UserSide
    id: MessageId | None
    opens: bool


class PendingInput:
    """Collects messages of the user's side while an answer is written or its calls run.

    Attributes:
        note: a note to the model that precedes the user's next message.
    """

    def __init__(self) -> None:
        self.note = ""
        self._calls: list[CallId] = []
        self._results: dict[CallId, ToolResult] = {}
        self._messages: list[ReadyMessage] = []
        self._news: list[UserText] = []  # of background commands, for the next message
        self._instructions: list[UserText] = []  # that hold for what the calls touched

    @property
    def has_calls(self) -> bool:
        """Whether the model made calls whose results were not sent yet."""
        return bool(self._calls)

    def add_call(self, call: CallId) -> None:
        """Expect the result of a call."""
        self._calls.append(call)

    def discard_calls(self) -> None:
        """Forget the calls, whose answer is discarded."""
        self._calls.clear()
        self._results.clear()
        self._instructions.clear()

    def add_result(self, event: ToolEnded) -> tuple[ImageBlock, ...]:
        """Add the result of a call; return the pictures in it."""
        pictures = _pictures(event.images)
        self._results[event.call] = ToolResult(
            call=event.call, text=event.result, failed=event.failed, images=pictures
        )
        self._instructions += (instruction_part(*one) for one in event.instructions)
        return pictures

    def end_calls(self) -> None:
        """Give the calls that never ended a result that says so."""
        for call in self._calls:
            self._results.setdefault(call, ToolResult(call=call, text=NO_RESULT, failed=True))

    def add_message(self, event: UserMessage) -> tuple[ImageBlock, ...]:
        """Add a message of the user; return the pictures in it."""
        parts: list[UserText | UserImage | ToolResult] = []
        if self.note:
            parts.append(UserText(self.note))
            self.note = ""
        parts.extend(self._take_news())
        parts.extend(map(user_part, event.content))
        if event.attached:
            parts.append(UserText(event.attached))
        parts.extend(instruction_part(*one) for one in event.instructions)
        self._messages.append(
            ReadyMessage(UserSide(tuple(parts)), event.message, not event.steering)
        )
        return _pictures(event.content)

    def add_repeated(self, event: PromptRepeated) -> None:
        """Add a prompt that is sent once more."""
        parts = (*self._take_news(), UserText(event.text))
        self._messages.append(ReadyMessage(UserSide(parts), event.message, opens=True))

    def add_notice(self, event: NoticeShown) -> None:
        """Add a notice that is for the model too."""
        message = UserSide((UserText(event.for_model),))
        self._messages.append(ReadyMessage(message, event.message, opens=False))

    def add_news(self, event: BackgroundCommandChanged) -> None:
        """Add news of a background command, unless the result of a call has them."""
        if event.status != "running" and not event.heard:
            self._news.append(UserText(_command_news(event)))

    def take_ready(self) -> Sequence[ReadyMessage]:
        """Remove and return the messages, if all calls have their results."""
        calls, results = self._calls, self._results
        if calls:
            if len(results) < len(calls) or any(call not in results for call in calls):
                return ()
            parts: list[UserText | UserImage | ToolResult] = [results[call] for call in calls]
            message = UserSide((*parts, *self._instructions, *self._take_news()))
            self.discard_calls()
            self._messages.insert(0, ReadyMessage(message, None, opens=False))
        if not self._messages:
            return ()
        messages, self._messages = self._messages, []
        return messages

    def _take_news(self) -> Sequence[UserText]:
        news, self._news = self._news, []
        return news


def instruction_part(path: str, text: str) -> UserText:
    """Return an instruction file of the project as the model is told of it with a result."""
    return UserText(f"[Instructions of the project that hold from here on, from {path}:]\n\n{text}")


def user_part(block: ContentBlock) -> UserText | UserImage:
    """Return a content block of the user as the model is sent it."""
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
            more = f", {block.description}" if block.description else ""
            return UserText(f"[Link: {block.title or block.name}, {block.uri}{more}]")
        case _:
            return UserText("[Audio, which this agent cannot hear]")


def _pictures(blocks: Iterable[ContentBlock]) -> tuple[ImageBlock, ...]:
    return tuple(block for block in blocks if isinstance(block, ImageBlock))


def _command_news(event: BackgroundCommandChanged) -> str:
    """Return what the model is told about the end of a background command."""
    if event.status == "lost":
        how = "ended with the agent, which was stopped from outside"
    elif event.timed_out:
        how = "was ended, because its time was over"
    elif event.signal is not None:
        how = f"ended by {event.signal}"
    else:
        how = f"ended with exit code {event.exit_code}"
    by = " (the user stopped it)" if event.stopped else ""
    return f"[The background command {event.name}, `{event.command}`, {how}{by}.]"
