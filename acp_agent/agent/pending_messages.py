"""Messages of a conversation that are not complete yet, one class for each side.

`PendingAnswer` is the model's answer while it is streamed. `PendingInput` collects the next input
for the model: the results of its calls, followed by the user's messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from acp_agent.content import ContentBlock, ImageBlock, ResourceBlock, ResourceLinkBlock, TextBlock
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
    """An answer that the model is writing. It joins the pieces of each text and thought."""

    __slots__ = ("_kind", "_parts", "_pieces", "_searches")

    def __init__(self) -> None:
        self._parts: list[AnswerPart] = []
        self._searches: dict[CallId, str] = {}  # running searches, with their providers
        self._pieces: list[str] = []  # of the current text or thought
        self._kind: type[AnswerText | AnswerThought] | None = None

    def add_piece(self, kind: type[AnswerText | AnswerThought], text: str) -> None:
        """Add a piece to the current text or thought, or start a new one."""
        if self._kind is not kind:
            self._end_pieces()
            self._kind = kind
        self._pieces.append(text)

    def end_thought(self, event: ThoughtEnded) -> None:
        """End a thought, and store the signature to send back to its provider."""
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

    `id` is None for results. `opens` is true if a turn or a repeated prompt starts with the
    message.
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
        self._news: list[UserText] = []  # about background commands, for the next message
        self._instructions: list[UserText] = []  # for the files that the calls used

    @property
    def has_calls(self) -> bool:
        """Return whether there are calls whose results were not sent yet."""
        return bool(self._calls)

    def add_call(self, call: CallId) -> None:
        """Expect the result of a call."""
        self._calls.append(call)

    def discard_calls(self) -> None:
        """Remove the calls, because their answer is discarded or their results were taken."""
        self._calls.clear()
        self._results.clear()
        self._instructions.clear()

    def add_result(self, event: ToolEnded) -> tuple[ImageBlock, ...]:
        """Add the result of a call; return the pictures in it."""
        pictures = _pictures(event.images)
        self._results[event.call] = ToolResult(
            call=event.call, text=event.result, failed=event.failed, images=pictures
        )
        self._instructions += (instruction_part(*instruction) for instruction in event.instructions)
        return pictures

    def end_calls(self) -> None:
        """Add a result that reports the interruption to each call that never ended."""
        for call in self._calls:
            self._results.setdefault(call, ToolResult(call=call, text=NO_RESULT, failed=True))

    def add_message(self, event: UserMessage) -> tuple[ImageBlock, ...]:
        """Add a message of the user; return the pictures in it."""
        message_parts: list[UserText | UserImage | ToolResult] = []
        if self.note:
            message_parts.append(UserText(self.note))
            self.note = ""
        message_parts.extend(self._take_news())
        message_parts.extend(map(user_part, event.content))
        if event.attached:
            message_parts.append(UserText(event.attached))
        message_parts.extend(instruction_part(*instruction) for instruction in event.instructions)
        self._messages.append(
            ReadyMessage(UserSide(tuple(message_parts)), event.message, not event.steering)
        )
        return _pictures(event.content)

    def add_repeated(self, event: PromptRepeated) -> None:
        """Add a prompt that is sent once more."""
        message_parts = (*self._take_news(), UserText(event.text))
        self._messages.append(ReadyMessage(UserSide(message_parts), event.message, opens=True))

    def add_notice(self, event: NoticeShown) -> None:
        """Add a notice with a text for the model."""
        message = UserSide((UserText(event.for_model),))
        self._messages.append(ReadyMessage(message, event.message, opens=False))

    def add_news(self, event: BackgroundCommandChanged) -> None:
        """Add news of a background command, unless the result of a call reports them."""
        if event.status != "running" and not event.heard:
            self._news.append(UserText(_command_news(event)))

    def take_ready(self) -> Sequence[ReadyMessage]:
        """Remove and return the messages, if all calls have their results."""
        calls, results = self._calls, self._results
        if calls:
            if len(results) < len(calls) or any(call not in results for call in calls):
                return ()
            answers: list[UserText | UserImage | ToolResult] = [results[call] for call in calls]
            message = UserSide((*answers, *self._instructions, *self._take_news()))
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
    """Return the text with which a project's instruction file is added to a message."""
    return UserText(f"[Instructions of the project that hold from here on, from {path}:]\n\n{text}")


def user_part(block: ContentBlock) -> UserText | UserImage:
    """Convert a content block of the user to a message part for the model."""
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
    """Return the note for the model about the end of a background command."""
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
