"""What is where at the bottom of the terminal."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from acp_agent.cli.chat.questions import ListQuestion, PermissionQuestion, Question, TextQuestion
from acp_agent.cli.chat.toolbar import toolbar
from acp_agent.cli.chat.unmasking import Unmasking
from acp_agent.cli.chat.user_shell import SHELL_PROMPT
from acp_agent.cli.localization import translate

if TYPE_CHECKING:
    from acp_agent.cli.chat.terminal import TerminalChat

_PROMPT_ROWS = 8
_MENU_ROWS = 6
_ROOMY = 12  # rows of a terminal from which on an empty line is affordable
_TALL = 24  # from which on something else is shown beside a question
_BESIDE_QUESTION = 3


class Panes:
    """The parts of the screen that are drawn anew, each a function from the chat's state.

    Attributes:
        live_lines: what goes on, as of the last `refresh`.
        status_lines: what the chat does, likewise.
        question_lines: what is asked, likewise.
    """

    def __init__(self, chat: TerminalChat) -> None:
        self._chat = chat
        self.live_lines: list[str] = []
        self.status_lines: list[str] = []
        self.question_lines: list[str] = []
        self.search = SearchToolbar()
        self.prompt = Window(
            BufferControl(
                chat.input,
                search_buffer_control=self.search.control,
                input_processors=[Unmasking(), BeforeInput(self._mark, "class:mark")],
                focusable=True,
            ),
            wrap_lines=True,
            height=lambda: Dimension(min=1, max=min(_PROMPT_ROWS, max(self._rows() // 3, 1))),
            dont_extend_height=True,
            get_line_prefix=lambda line, wraps: "  " if line or wraps else "",
        )
        self.entry = Window(
            BufferControl(
                chat.answer, input_processors=[Unmasking(), BeforeInput("  > ", "class:mark")]
            ),
            height=1,
        )
        self.letters = Window(
            FormattedTextControl("", focusable=True), height=0, always_hide_cursor=True
        )

    def asked(self) -> Question | None:
        """The question that has the keys."""
        return self._chat.questions.active

    def focus(self, layout: Layout) -> None:
        """Let keys go to the question, or to the prompt where none is asked."""
        match self._chat.questions.active:
            case PermissionQuestion():
                layout.focus(self.letters)
            case None:
                layout.focus(self.prompt)
            case _:
                layout.focus(self.entry)

    def refresh(self) -> None:
        """Lay everything out for the next frame."""
        self.live_lines = self._live()
        self.status_lines = self._status()
        self.question_lines = self._question()

    def _live(self) -> list[str]:
        question = self._chat.questions.waiting
        rows = self._rows() - 6
        if question is not None:
            rows = _BESIDE_QUESTION if self._rows() >= _TALL else 0
        asked = question.call.id if isinstance(question, PermissionQuestion) else ""
        return self._chat.transcript.live(rows, without=asked)

    def _question(self) -> list[str]:
        chat = self._chat
        columns, rows = chat.size
        rows = max(rows - len(self.live_lines) - 4, 4)
        question = chat.questions.waiting
        match question:
            case PermissionQuestion():
                lines = question.lines(chat.renderer, chat.transcript.calls, columns, rows)
            case ListQuestion():
                typed = chat.answer.text if question is chat.questions.active else ""
                lines = question.lines(chat.renderer, typed, columns, rows)
            case TextQuestion():
                lines = question.lines(chat.renderer, columns)
            case _:
                return []
        if question is not chat.questions.active:
            wait = translate("(takes keys once you stop typing)")
            return [lines[0], chat.renderer.cut(f"  {wait}", columns, "dim")]
        return lines

    def _status(self) -> list[str]:
        chat = self._chat
        columns, _ = chat.size
        shown = [self._activity(), chat.shell.shared]
        if chat.quitting:
            shown.append(translate("Press Ctrl-C again to quit."))
        if chat.chosen_mode:
            shown.append(translate("Mode: {mode}", mode=chat.chosen_mode))
        if chat.shell.on:
            shown.append(translate("Your own shell; Ctrl-X goes back to the agent."))
        return [chat.renderer.cut(text, columns, "dim") for text in shown if text]

    def _activity(self) -> str:
        """What goes on; empty where nothing does."""
        chat = self._chat
        if not chat.ready:
            return "" if chat.questions.waiting else translate("Starting the agent ...")
        if chat.conversation.agent is None:
            return translate("There is no agent; /restart starts it again.")
        if chat.conversation.turns.cancelling:
            return translate("Cancelling the turn; Ctrl-C once more quits.")
        if chat.front.began is not None:
            seconds = int(time.monotonic() - chat.front.began)
            return translate("Working, {seconds} s; Esc cancels.", seconds=seconds)
        return ""

    def _mark(self) -> str:
        return SHELL_PROMPT if self._chat.shell.on else "> "

    def toolbar(self) -> StyleAndTextTuples:
        """The line at the bottom."""
        conversation = self._chat.conversation
        columns, _ = self._chat.size
        text = toolbar(conversation.state, columns, waiting=len(conversation.turns.queue))
        return [("class:toolbar", text)]

    def roomy(self) -> bool:
        """Whether there is room for an empty line."""
        return self._rows() >= _ROOMY

    def _rows(self) -> int:
        return self._chat.size[1]


def make_layout(panes: Panes) -> Layout:
    """From top to bottom: what goes on, what is asked, the prompt, its completions, the toolbar."""
    asked = Condition(lambda: panes.asked() is not None)
    entering = Condition(lambda: isinstance(panes.asked(), ListQuestion | TextQuestion))
    return Layout(
        HSplit(
            [
                ConditionalContainer(Window(height=1), Condition(panes.roomy)),
                _lines(lambda: panes.live_lines),
                _lines(lambda: panes.status_lines),
                _lines(lambda: panes.question_lines),
                ConditionalContainer(panes.entry, entering),
                ConditionalContainer(panes.letters, asked & ~entering),
                ConditionalContainer(panes.prompt, ~asked),
                ConditionalContainer(panes.search, ~asked),
                ConditionalContainer(CompletionsMenu(max_height=_MENU_ROWS), ~asked),
                Window(height=Dimension(min=0, preferred=0)),
                Window(FormattedTextControl(panes.toolbar), height=1, style="class:toolbar"),
            ]
        ),
        focused_element=panes.prompt,
    )


def make_style() -> Style:
    """Styles that are readable on light and dark backgrounds, and without colours."""
    return Style.from_dict(
        {
            "mark": "bold",
            "toolbar": "reverse",
            "completion-menu": "bg:default fg:default",
            "completion-menu.completion": "bg:default fg:default",
            "completion-menu.completion.current": "reverse",
            "completion-menu.meta.completion": "bg:default fg:default",
            "completion-menu.meta.completion.current": "reverse",
            "scrollbar.background": "bg:default",
            "scrollbar.button": "reverse",
        }
    )


def _lines(make: Callable[[], list[str]]) -> ConditionalContainer:
    """A window for lines that are laid out already; not there where there are none."""

    def content() -> StyleAndTextTuples:
        return to_formatted_text(ANSI("\n".join(make())))

    return ConditionalContainer(
        Window(
            FormattedTextControl(content),
            dont_extend_height=True,
            height=lambda: Dimension.exact(len(make())),
            always_hide_cursor=True,
        ),
        Condition(lambda: bool(make())),
    )
