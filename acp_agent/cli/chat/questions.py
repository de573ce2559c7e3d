"""What the user is asked, one after the other: by a letter, from a list, or for a text."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from acp_agent.cli.chat.call_lines import CallLines, kind_name
from acp_agent.cli.chat.calls import ShownCall
from acp_agent.cli.chat.front import Answer, Field, Item
from acp_agent.cli.chat.rendering import Renderer
from acp_agent.cli.output import one_line
from acp_agent.cli.words import words
from protocol.v1 import types as acp

DETAILS = "?"
INSTEAD = "i"  # rejects the call and asks what to do instead
TO_ENTER = "\0"  # what to do instead is still to be entered
_LETTERS = {"allow_once": "y", "allow_always": "a", "reject_once": "n", "reject_always": "d"}
_SPARE = "123456789bcefghjklmopqrstuvwxz"
_OPTIONS = 20
_NAME_ROWS = 4  # of an option's name


class Permission:
    """Whether a call may run: a letter answers, and no other key does."""

    def __init__(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> None:
        self.call = call
        self.warning = warning
        self.answer: asyncio.Future[Answer | None] = asyncio.get_running_loop().create_future()
        self.answers = {key: Answer(option) for key, option in letters(options).items()}
        refusal = refusal_of(options)
        if refusal is not None:
            self.answers[INSTEAD] = Answer(refusal, TO_ENTER)

    def lines(self, renderer: Renderer, calls: CallLines, width: int, rows: int) -> list[str]:
        """The question, as much of what it is about as there is room for, and the letters."""
        kind = kind_name(self.call.kind)
        head = renderer.marked(
            ("? ", "warning"),
            [
                (words("Permission: "), "warning"),
                (one_line(self.call.title, 500), "bold"),
                (f"  {kind}" if kind else "", "dim"),
            ],
            width,
        )
        if self.warning:
            head += renderer.text(f"  ! {self.warning}", width, "bad")
        # In full, as far as any name is meant to be read: it says what is allowed.
        answers = self._answers(renderer, width, _NAME_ROWS)
        if len(answers) + 2 > rows:
            answers = self._answers(renderer, width, 1)  # rather that than none to be seen
        more = f"  [{DETAILS}] {words('details')}"
        if INSTEAD in self.answers:
            more += f"  [{INSTEAD}] {words('reject and say what to do instead')}"
        answers.append(renderer.cut(more, width, "dim"))
        room = max(rows - len(head) - len(answers), 0)
        return [
            *head[: max(rows - len(answers), 1)],
            *self._about(renderer, calls, width, room),
            *answers,
        ]

    def _answers(self, renderer: Renderer, width: int, rows: int) -> list[str]:
        lines: list[str] = []
        for letter, answer in self.answers.items():
            if letter == INSTEAD:
                continue  # it shares a line with the details
            name = [(one_line(answer.option.name), "bold")]
            lines += renderer.marked((f"  [{letter}] ", "bold"), name, width)[:rows]
        return lines

    def _about(self, renderer: Renderer, calls: CallLines, width: int, rows: int) -> list[str]:
        lines: list[str] = []
        for diff in self.call.diffs:
            lines += calls.diff(diff, width, limit=max(rows, 1))
        for line in self.call.output_lines()[: rows + 1]:
            lines += renderer.marked(("  ", ""), [(line, "")], width)
        if len(lines) > rows:
            more = renderer.cut(f"  {words('... more with [?]')}", width, "dim")
            lines = [*lines[: rows - 1], more] if rows else []
        return lines


class Picking:
    """One of several: arrows move, typing filters, Enter picks, Esc leaves."""

    def __init__(self, title: str, items: Sequence[Item], description: str) -> None:
        self.title = title
        self.description = description
        self.items = items
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()
        self.index = next((i for i, item in enumerate(items) if item.current), 0)

    def matching(self, typed: str) -> list[Item]:
        """The items with all the words that were typed."""
        wanted = typed.lower().split()
        return [
            item
            for item in self.items
            if all(word in f"{item.name} {item.value}".lower() for word in wanted)
        ]

    def move(self, by: int, typed: str) -> None:
        """Go up or down."""
        count = len(self.matching(typed))
        self.index = (self.index + by) % count if count else 0

    def picked(self, typed: str) -> Item | None:
        """The item under the cursor."""
        found = self.matching(typed)
        return found[min(self.index, len(found) - 1)] if found else None

    def lines(self, renderer: Renderer, typed: str, width: int, rows: int) -> list[str]:
        """The title, the items around the cursor, and the keys."""
        found = self.matching(typed)
        lines = [renderer.cut(f"? {one_line(self.title)}", width, "warning")]
        if self.description:
            lines += renderer.text(f"  {one_line(self.description, 500)}", width)[:3]
        room = max(rows - len(lines) - _NAME_ROWS, 1)
        index = min(self.index, max(len(found) - 1, 0))
        first = max(0, min(index - room // 2, len(found) - room))
        for number, item in enumerate(found[first : first + room], first):
            current = " *" if item.current else ""
            name = f"{one_line(item.name)}{current}"
            about = f"  {one_line(item.description)}" if item.description else ""
            if number == index:  # the one under the cursor in full
                spans = [(name, "bold"), (about, "dim")]
                lines += renderer.marked(("> ", "bold"), spans, width)[:_NAME_ROWS]
            else:
                lines.append(renderer.cut(f"  {name}{about}", width))
        if not found:
            lines.append(renderer.cut(f"  {words('nothing matches')}", width, "dim"))
        keys = words("arrows move, typing filters, Enter picks, Esc leaves")
        return [*lines, renderer.cut(f"  {keys}", width, "dim")]


class Entering:
    """A text: Enter takes it, Esc leaves."""

    def __init__(self, field: Field) -> None:
        self.field = field
        self.answer: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def lines(self, renderer: Renderer, width: int) -> list[str]:
        """What is to be entered, and what was wrong."""
        lines = renderer.text(f"? {one_line(self.field.title)}", width, "warning")
        if self.field.description:
            lines += renderer.text(f"  {one_line(self.field.description, 500)}", width)
        if self.field.complaint:
            lines += renderer.text(f"  ! {self.field.complaint}", width, "bad")
        keys = words("Enter answers, Esc declines")
        return [*lines, renderer.cut(f"  {keys}", width, "dim")]


Question = Permission | Picking | Entering


def refusal_of(options: Sequence[acp.PermissionOption]) -> acp.PermissionOption | None:
    """The option that rejects this call alone."""
    return next((option for option in options if option.kind == "reject_once"), None)


def letters(options: Sequence[acp.PermissionOption]) -> dict[str, acp.PermissionOption]:
    """A letter for each option: that of its kind, or the next one that is free."""
    given: dict[str, acp.PermissionOption] = {}
    for option in options[:_OPTIONS]:
        wanted = _LETTERS.get(option.kind, "")
        if not wanted or wanted in given:
            wanted = next(letter for letter in _SPARE if letter not in given)
        given[wanted] = option
    return given
