"""The panes at the bottom of the terminal, redrawn with each frame."""

from __future__ import annotations

from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import ANSI, StyleAndTextTuples, to_formatted_text
from prompt_toolkit.formatted_text.utils import fragment_list_to_text
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
from prompt_toolkit.layout.processors import (
    BeforeInput,
    Processor,
    Transformation,
    TransformationInput,
)
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar
from rich.cells import cell_len, set_cell_size

from acp_agent.cli.chat.questions import (
    ListQuestion,
    PermissionQuestion,
    QuestionQueue,
    TextQuestion,
)
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.session_state import SessionState
from acp_agent.cli.chat.transcript import Transcript
from acp_agent.cli.localization import translate
from acp_agent.cli.output import one_line, terminal_text
from acp_agent.config.amounts import format_decimal

_PROMPT_ROWS = 8
_MENU_ROWS = 6
_ROOMY_ROWS = 12  # terminals with this many rows have room for an empty line
_TALL_ROWS = 24  # terminals with this many rows show running calls next to a question
_ROWS_BESIDE_QUESTION = 3


class Panes:
    """The area below the transcript.

    Args:
        transcript: provides incomplete messages and running calls.
        size: returns columns and rows of the terminal.
        status: returns lines about the chat's state.
        toolbar: returns the last line for a width.
        mark: returns the text before the prompt.
    """

    def __init__(
        self,
        *,
        prompt: Buffer,
        answer: Buffer,
        questions: QuestionQueue,
        transcript: Transcript,
        renderer: Renderer,
        size: Callable[[], tuple[int, int]],
        status: Callable[[], list[str]],
        toolbar: Callable[[int], str],
        mark: Callable[[], str],
    ) -> None:
        self._answer = answer
        self._questions = questions
        self._transcript = transcript
        self._renderer = renderer
        self._size = size
        self._status = status
        self._toolbar = toolbar
        self._live_lines: list[str] = []
        self._status_lines: list[str] = []
        self._question_lines: list[str] = []
        self._search = SearchToolbar()
        self._prompt = Window(
            BufferControl(
                prompt,
                search_buffer_control=self._search.control,
                input_processors=[HiddenCharacters(), BeforeInput(mark, "class:mark")],
                focusable=True,
            ),
            wrap_lines=True,
            height=lambda: Dimension(min=1, max=min(_PROMPT_ROWS, max(size()[1] // 3, 1))),
            dont_extend_height=True,
            get_line_prefix=lambda line, wraps: "  " if line or wraps else "",
        )
        before = BeforeInput("  > ", "class:mark")
        self._entry = Window(
            BufferControl(answer, input_processors=[HiddenCharacters(), before]), height=1
        )
        self._permission = Window(
            FormattedTextControl("", focusable=True), height=0, always_hide_cursor=True
        )

    def layout(self) -> Layout:
        """Return the layout: running calls, status, question, prompt, completions, toolbar."""
        is_asking = Condition(lambda: self._questions.active is not None)
        entering = Condition(
            lambda: isinstance(self._questions.active, ListQuestion | TextQuestion)
        )
        roomy = Condition(lambda: self._size()[1] >= _ROOMY_ROWS)
        return Layout(
            HSplit(
                [
                    ConditionalContainer(Window(height=1), roomy),
                    _lines(lambda: self._live_lines),
                    _lines(lambda: self._status_lines),
                    _lines(lambda: self._question_lines),
                    ConditionalContainer(self._entry, entering),
                    ConditionalContainer(self._permission, is_asking & ~entering),
                    ConditionalContainer(self._prompt, ~is_asking),
                    ConditionalContainer(self._search, ~is_asking),
                    ConditionalContainer(CompletionsMenu(max_height=_MENU_ROWS), ~is_asking),
                    Window(height=Dimension(min=0, preferred=0)),
                    Window(
                        FormattedTextControl(lambda: self._toolbar(self._size()[0])),
                        height=1,
                        style="class:toolbar",
                    ),
                ]
            ),
            focused_element=self._prompt,
        )

    def focus(self, layout: Layout) -> None:
        """Send keys to the question if there is one, otherwise to the prompt."""
        match self._questions.active:
            case PermissionQuestion():
                layout.focus(self._permission)
            case None:
                layout.focus(self._prompt)
            case _:
                layout.focus(self._entry)

    def refresh(self) -> None:
        """Prepare the lines of the next frame."""
        self._live_lines = self._make_live_lines()
        columns, _ = self._size()
        self._status_lines = [
            self._renderer.cut(text, columns, "dim") for text in self._status() if text
        ]
        self._question_lines = self._make_question_lines()

    def _make_live_lines(self) -> list[str]:
        question = self._questions.waiting
        rows = self._size()[1]
        max_rows = rows - 6
        if question is not None:
            max_rows = _ROWS_BESIDE_QUESTION if rows >= _TALL_ROWS else 0
        call_id = question.call.id if isinstance(question, PermissionQuestion) else ""
        return self._transcript.live(max_rows, without=call_id)

    def _make_question_lines(self) -> list[str]:
        columns, rows = self._size()
        rows = max(rows - len(self._live_lines) - 4, 4)
        question = self._questions.waiting
        active = question is self._questions.active
        match question:
            case PermissionQuestion():
                lines = question.lines(self._renderer, self._transcript.calls, columns, rows)
            case ListQuestion():
                typed = self._answer.text if active else ""
                lines = question.lines(self._renderer, typed, columns, rows)
            case TextQuestion():
                lines = question.lines(self._renderer, columns)
            case _:
                return []
        if not active:
            hint = translate("(waiting until you stop typing)")
            return [lines[0], self._renderer.cut(f"  {hint}", columns, "dim")]
        return lines


def make_style() -> Style:
    """Return styles that are readable on light and dark backgrounds, and without colours."""
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
    """Return a window for lines with escape codes, hidden while empty."""

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


def toolbar(state: SessionState, width: int, *, waiting: int) -> str:
    """Return the toolbar in `width` columns; a narrow one omits the least important facts.

    `waiting` is the number of queued prompts.
    """
    facts: list[tuple[int, str]] = []  # importance and text
    if state.mode is not None:
        facts.append((9, one_line(state.mode.name, 20)))
    if waiting:
        facts.append((8, translate("{count} queued", count=waiting)))
    facts += _plan_facts(state)
    usage = state.usage
    if usage is not None:
        if usage.size:
            share = f"{min(usage.used / usage.size, 9.99):.0%}"
            facts.append((7, translate("context {share}", share=share)))
        if usage.cost is not None:
            facts.append(
                (6, f"{format_decimal(usage.cost.amount, 2)} {one_line(usage.cost.currency, 5)}")
            )
    if state.model:
        facts.append((4, one_line(state.model, 40)))
    if state.title:
        facts.append((1, one_line(state.title, 60)))
    while len(facts) > 1 and cell_len(_join_facts(facts)) > width:
        facts.remove(min(facts))
    return set_cell_size(_join_facts(facts), width)


def _plan_facts(state: SessionState) -> list[tuple[int, str]]:
    if not state.plan:
        return []
    done = sum(entry.status == "completed" for entry in state.plan)
    short = translate("plan {done}/{count}", done=done, count=len(state.plan))
    now = next((entry.content for entry in state.plan if entry.status == "in_progress"), "")
    return [(5, short), *([(2, one_line(now, 40))] if now else [])]


def _join_facts(facts: list[tuple[int, str]]) -> str:
    return f" {' | '.join(text for _, text in facts)} "


class HiddenCharacters(Processor):
    """Displays hidden characters of the input as visible text; the input itself is unchanged.

    Otherwise a character that reorders its neighbours could disguise a pasted command.
    """

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Return the displayed line and the mapping between its columns and the input."""
        text = fragment_list_to_text(transformation_input.fragments)
        if terminal_text(text) == text:
            return Transformation(transformation_input.fragments)
        fragments = explode_text_fragments(transformation_input.fragments)
        displayed: StyleAndTextTuples = []
        starts: list[int] = []  # start of each character in the displayed line
        column = 0
        for style, character, *handlers in fragments:
            visible = terminal_text(character)
            starts.append(column)
            column += len(visible)
            displayed.append((style, visible, *handlers))  # type: ignore[arg-type] # as it came, with its mouse handler if any
        starts.append(column)

        def to_display(position: int) -> int:
            return (
                starts[position] if position < len(starts) else column + position - len(starts) + 1
            )

        def to_source(position: int) -> int:
            if position >= column:
                return len(starts) - 1 + position - column
            return max(index for index, start in enumerate(starts) if start <= position)

        return Transformation(displayed, source_to_display=to_display, display_to_source=to_source)
