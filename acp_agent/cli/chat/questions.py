"""Questions to the user, one after the other: a permission, a list or a text."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from acp_agent.cli.chat.call_lines import CallLines, kind_name
from acp_agent.cli.chat.frontend import Field
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.chat.session_state import Choice, ShownCall
from acp_agent.cli.localization import translate
from acp_agent.cli.output import one_line
from protocol.v1 import types as acp

DETAILS = "?"
REJECT_WITH_TEXT = "i"  # rejects the call and asks what to do instead
_LETTERS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "d"}
_SPARE_LETTERS = "123456789bcefghjklmopqrstuvwxz"
_MAX_OPTIONS = 20
_MAX_NAME_ROWS = 4  # rows of an option's name
_TYPING_SECONDS = 0.5  # without a key before a question takes keys, to prevent accidental answers


class PermissionQuestion:
    """Asks whether a tool call may run; the answer is a letter.

    The user presses the letter, or selects with the arrow keys and Enter. Nothing is selected
    initially, so Enter alone allows nothing.
    """

    def __init__(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> None:
        self.call = call
        self.warning = warning
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.options = assign_letters(options)
        self.letters = list(self.options)
        if find_rejection(options) is not None:
            self.letters.append(REJECT_WITH_TEXT)
        self.selected = ""

    def move(self, by: int) -> None:
        """Select the next or previous answer."""
        count = len(self.letters)
        if self.selected:
            index = (self.letters.index(self.selected) + by) % count
        else:
            index = 0 if by > 0 else count - 1
        self.selected = self.letters[index] if count else ""

    def lines(self, renderer: Renderer, calls: CallLines, width: int, rows: int) -> list[str]:
        """Return the question, as much of the call as fits, and the answers."""
        kind = kind_name(self.call.kind)
        head = renderer.marked(
            ("? ", "warning"),
            [
                (translate("Permission: "), "warning"),
                (one_line(self.call.title, 500), "bold"),
                (f"  {kind}" if kind else "", "dim"),
            ],
            width,
        )
        if self.warning:
            head += renderer.text(f"  ! {self.warning}", width, "bad")
        answers = self._answers(renderer, width, _MAX_NAME_ROWS)
        if len(answers) + 1 > rows:
            answers = self._answers(renderer, width, 1)  # cut names rather than hide an answer
        room = max(rows - len(head) - len(answers), 0)
        return [
            *head[: max(rows - len(answers), 1)],
            *self._call_lines(renderer, calls, width, room),
            *answers,
        ]

    def _answers(self, renderer: Renderer, width: int, rows: int) -> list[str]:
        lines: list[str] = []
        for letter, option in self.options.items():
            mark = (f"{'>' if letter == self.selected else ' '} [{letter}] ", "bold")
            lines += renderer.marked(mark, [(one_line(option.name), "bold")], width)[:rows]
        last = [(f"  [{DETAILS}] {translate('details')} ", "dim")]
        if REJECT_WITH_TEXT in self.letters:
            selected = self.selected == REJECT_WITH_TEXT
            name = translate("reject and say what to do instead")
            text = f"{'>' if selected else ' '} [{REJECT_WITH_TEXT}] {name}"
            last.append((text, "bold" if selected else "dim"))
        return lines + renderer.spans(last, width)[:rows]

    def _call_lines(self, renderer: Renderer, calls: CallLines, width: int, rows: int) -> list[str]:
        lines: list[str] = []
        for diff in self.call.diffs:
            lines += calls.diff(diff, width, limit=max(rows, 1))
        for line in self.call.output_lines()[: rows + 1]:
            lines += renderer.marked(("  ", ""), [(line, "")], width)
        if len(lines) > rows:
            more = renderer.cut(f"  {translate('... more with [?]')}", width, "dim")
            lines = [*lines[: rows - 1], more] if rows else []
        return lines


class ListQuestion:
    """Asks for one of several choices; the answer is its value. Typing filters the list."""

    def __init__(self, title: str, choices: Sequence[Choice], description: str) -> None:
        self.title = title
        self.description = description
        self.choices = choices
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.index = next((i for i, item in enumerate(choices) if item.current), 0)

    def matching(self, typed: str) -> list[Choice]:
        """Return the choices that contain every typed word."""
        words = typed.lower().split()
        return [
            item
            for item in self.choices
            if all(word in f"{item.name} {item.value}".lower() for word in words)
        ]

    def move(self, by: int, typed: str) -> None:
        """Move the selection by `by` rows."""
        count = len(self.matching(typed))
        self.index = (self.index + by) % count if count else 0

    def selected(self, typed: str) -> Choice | None:
        """Return the selected choice."""
        matches = self.matching(typed)
        return matches[min(self.index, len(matches) - 1)] if matches else None

    def lines(self, renderer: Renderer, typed: str, width: int, rows: int) -> list[str]:
        """Return the title, the choices around the selection, and the keys."""
        matches = self.matching(typed)
        lines = [renderer.cut(f"? {one_line(self.title)}", width, "warning")]
        if self.description:
            lines += renderer.text(f"  {one_line(self.description, 500)}", width)[:3]
        max_choices = max(rows - len(lines) - _MAX_NAME_ROWS, 1)
        index = min(self.index, max(len(matches) - 1, 0))
        first = max(0, min(index - max_choices // 2, len(matches) - max_choices))
        for number, item in enumerate(matches[first : first + max_choices], first):
            current = " *" if item.current else ""
            name = f"{one_line(item.name)}{current}"
            description = f"  {one_line(item.description)}" if item.description else ""
            if number == index:  # the selected one in full
                spans = [(name, "bold"), (description, "dim")]
                lines += renderer.marked(("> ", "bold"), spans, width)[:_MAX_NAME_ROWS]
            else:
                lines.append(renderer.cut(f"  {name}{description}", width))
        if not matches:
            lines.append(renderer.cut(f"  {translate('no matches')}", width, "dim"))
        keys = translate("arrows select, typing filters, Enter picks, Esc cancels")
        return [*lines, renderer.cut(f"  {keys}", width, "dim")]


class TextQuestion:
    """Asks for a text; the answer is the text."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def lines(self, renderer: Renderer, width: int) -> list[str]:
        """Return the title, the description and the complaint about the previous input."""
        lines = renderer.text(f"? {one_line(self.field.title)}", width, "warning")
        if self.field.description:
            lines += renderer.text(f"  {one_line(self.field.description, 500)}", width)
        if self.field.complaint:
            lines += renderer.text(f"  ! {self.field.complaint}", width, "bad")
        keys = translate("Enter answers, Esc declines")
        return [*lines, renderer.cut(f"  {keys}", width, "dim")]


Question = PermissionQuestion | ListQuestion | TextQuestion


class QuestionQueue:
    """Questions that wait for the user, asked one after the other.

    Args:
        on_change: called when a different question, or none, becomes active.

    Attributes:
        active: the question that receives the keys.
    """

    def __init__(self, on_change: Callable[[Question | None], None]) -> None:
        self.active: Question | None = None
        self._on_change = on_change
        self._questions: list[Question] = []
        self._pressed_at = 0.0  # when a key was last pressed
        self._typed_at = 0.0  # when the prompt was last typed into
        self._letter_at = 0.0  # when a letter was last pressed during a permission question

    @property
    def waiting(self) -> Question | None:
        """Return the question on the screen, even if it does not receive keys yet."""
        return self._questions[0] if self._questions else None

    def key_pressed(self) -> None:
        """Record a key press, which delays the next question."""
        self._pressed_at = time.monotonic()
        if self.active is None:
            self._typed_at = self._pressed_at

    def skip_delay(self) -> None:
        """Skip the delay of the next question, because the user's command asks it."""
        self._pressed_at = self._typed_at = 0.0

    async def ask(self, question: Question, *, first: bool = False) -> str | None:
        """Ask, before other questions if `first`; return None if there is no answer."""
        self._questions.insert(0 if first else len(self._questions), question)
        self.update()
        try:
            return await question.answer
        finally:
            self._remove(question)

    def press_letter(self, letter: str) -> None:
        """Answer a permission question by its letter; ignore other keys.

        A letter right after another one is part of a word, and is ignored too.
        """
        now = time.monotonic()
        in_word = now - self._letter_at < _TYPING_SECONDS
        if letter.isalnum():
            self._letter_at = now
        if not in_word:
            self._choose(letter.lower())

    def _choose(self, letter: str) -> None:
        if isinstance(self.active, PermissionQuestion) and letter in self.active.letters:
            self._answer(self.active, letter)

    def accept(self, typed: str) -> None:
        """Answer with the selection or the typed text."""
        match self.active:
            case PermissionQuestion() as question:
                self._choose(question.selected)
            case ListQuestion() as question:
                item = question.selected(typed)
                if item is not None:
                    self._answer(question, item.value)
            case TextQuestion() as question:
                self._answer(question, typed)

    def decline(self, question: Question | None) -> None:
        """End a list or text question without an answer."""
        if isinstance(question, ListQuestion | TextQuestion):
            self._answer(question, None)

    def move(self, by: int, typed: str) -> None:
        """Move the selection by `by` rows."""
        match self.active:
            case PermissionQuestion() as question:
                question.move(by)
            case ListQuestion() as question:
                question.move(by, typed)

    def cancel_permissions(self) -> None:
        """End every permission question without an answer."""
        for question in list(self._questions):
            if isinstance(question, PermissionQuestion):
                self._answer(question, None)

    def update(self) -> None:
        """Give the keys to the first question once the user has stopped typing."""
        question = self.waiting
        if question is not None and question is not self.active:
            # A permission waits after any key. For a list or a text, a key meant for the previous
            # list or text does no harm.
            is_permission = isinstance(question, PermissionQuestion)
            last_key = self._pressed_at if is_permission else self._typed_at
            remaining = _TYPING_SECONDS - (time.monotonic() - last_key)
            if remaining > 0:
                asyncio.get_running_loop().call_later(remaining, self.update)
                question = None
        if question is not self.active:
            self.active = question
            self._on_change(question)

    def _answer(self, question: Question, value: str | None) -> None:
        if not question.answer.done():
            question.answer.set_result(value)
        self._remove(question)  # the next key is for the next question

    def _remove(self, question: Question) -> None:
        if question in self._questions:
            self._questions.remove(question)
        self.update()


def find_rejection(options: Sequence[acp.PermissionOption]) -> acp.PermissionOption | None:
    """Return the option that rejects only this call."""
    return next((option for option in options if option.kind == "reject_once"), None)


def assign_letters(options: Sequence[acp.PermissionOption]) -> dict[str, acp.PermissionOption]:
    """Map a letter to each option: the usual one of its kind, or the next free one."""
    assigned: dict[str, acp.PermissionOption] = {}
    for option in options[:_MAX_OPTIONS]:
        chosen = _LETTERS.get(option.kind, "")
        if not chosen or chosen in assigned:
            chosen = next(letter for letter in _SPARE_LETTERS if letter not in assigned)
        assigned[chosen] = option
    return assigned
