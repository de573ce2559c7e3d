"""What the model is to be sent next: the results of its calls, then what the user said."""

from __future__ import annotations

from collections.abc import Sequence

from acp_agent.content import ImageBlock
from acp_agent.events import (
    BackgroundCommandChanged,
    NoticeShown,
    PromptRepeated,
    ToolEnded,
    UserMessage,
)
from acp_agent.ids import CallId, MessageId
from acp_agent.models.base import ToolResult, UserImage, UserSide, UserText

NO_RESULT = "The call was cut off before it ended; it may or may not have taken effect."


class Coming:
    """Gathers messages of the user's side while an answer is written or its calls run.

    Attributes:
        note: what the next words of the user begin with, for the model alone.
    """

    def __init__(self) -> None:
        self.note = ""
        self._calls: list[CallId] = []
        self._results: dict[CallId, ToolResult] = {}
        self._words: list[tuple[UserSide, MessageId | None, bool]] = []
        self._news: list[UserText] = []  # of background commands, for the next message

    @property
    def waits(self) -> bool:
        """Whether a call is without its result."""
        return bool(self._calls)

    def called(self, call: CallId) -> None:
        """The answer that is being written has a call."""
        self._calls.append(call)

    def forget_calls(self) -> None:
        """The answer with the calls is not kept."""
        self._calls.clear()
        self._results.clear()

    def ended(self, event: ToolEnded) -> tuple[ImageBlock, ...]:
        """A call ended; gives the pictures in its result."""
        pictures: tuple[ImageBlock, ...] = ()
        if event.images:
            from acp_agent.agent.said import pictures_in  # noqa: PLC0415 - rarely needed

            pictures = pictures_in(event.images)
        self._results[event.call] = ToolResult(
            call=event.call, text=event.result, failed=event.failed, images=pictures
        )
        return pictures

    def cut_off(self) -> None:
        """The calls that have not ended never will."""
        for call in self._calls:
            self._results.setdefault(call, ToolResult(call=call, text=NO_RESULT, failed=True))

    def said(self, event: UserMessage) -> tuple[ImageBlock, ...]:
        """The user said something; gives the pictures in it."""
        from acp_agent.agent.said import pictures_in, said_part  # noqa: PLC0415 - not at start

        parts: list[UserText | UserImage | ToolResult] = []
        if self.note:
            parts.append(UserText(self.note))
            self.note = ""
        parts.extend(self._take_news())
        parts.extend(map(said_part, event.content))
        if event.attached:
            parts.append(UserText(event.attached))
        self._words.append((UserSide(tuple(parts)), event.message, not event.steering))
        return pictures_in(event.content)

    def repeated(self, event: PromptRepeated) -> None:
        """A prompt is asked once more."""
        parts = (*self._take_news(), UserText(event.text))
        self._words.append((UserSide(parts), event.message, True))

    def noted(self, event: NoticeShown) -> None:
        """Something is to be known of the conversation itself."""
        self._words.append((UserSide((UserText(event.for_model),)), event.message, False))

    def heard(self, event: BackgroundCommandChanged) -> None:
        """Something became of a background command that no call tells of."""
        if event.status == "running" or event.heard:
            return
        from acp_agent.agent.said import command_news  # noqa: PLC0415 - rarely needed

        self._news.append(UserText(command_news(event)))

    def take(self) -> Sequence[tuple[UserSide, MessageId | None, bool]]:
        """The messages, once no call is without its result.

        Each comes with its id, which results have none, and with whether a turn, or a round of one,
        begins with it.
        """
        calls, results = self._calls, self._results
        if calls:
            if len(results) < len(calls) or any(call not in results for call in calls):
                return ()
            found = [results[call] for call in calls]
            self.forget_calls()
            answer = UserSide((*found, *self._take_news()))
            if not self._words:
                return ((answer, None, False),)
            self._words.insert(0, (answer, None, False))
        words = self._words
        if words:
            self._words = []
        return words

    def _take_news(self) -> Sequence[UserText]:
        """What happened to background commands meanwhile, once."""
        news, self._news = self._news, []
        return news
