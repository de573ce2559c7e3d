"""What the user is asked line by line: by a letter, by a number, or for a text."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from acp_agent.cli.agent_client import Asked
from acp_agent.cli.chat.call_lines import details
from acp_agent.cli.chat.calls import ShownCall
from acp_agent.cli.chat.front import Answer, Field, Item
from acp_agent.cli.chat.questions import DETAILS, letters, refusal_of
from acp_agent.cli.localization import translate
from acp_agent.cli.output import inert, one_line
from acp_agent.cli.screen import Paint, Screen, Style
from protocol.v1 import types as acp

_ATTEMPTS = 3


class LineQuestions:
    """Asks one question after the other; `take` is given what is typed meanwhile.

    Args:
        screen: shows what it is about.
        paint: writes what it is asked with.
        session: the id of the open session.
        person: whether there is somebody to ask; otherwise nothing is allowed and nothing answered.
    """

    def __init__(
        self, screen: Screen, paint: Paint, session: Callable[[], str], *, person: bool
    ) -> None:
        self._screen = screen
        self._paint = paint
        self._session = session
        self._person = person
        self._asking = asyncio.Lock()
        self._answers: asyncio.Queue[str | None] = asyncio.Queue()

    @property
    def waiting(self) -> bool:
        """Whether something is asked."""
        return self._asking.locked()

    def take(self, line: str | None) -> None:
        """Take a line as the answer; None for none, which leaves the question."""
        self._answers.put_nowait(line)

    async def ask(
        self, call: ShownCall, options: Sequence[acp.PermissionOption], warning: str
    ) -> Answer | None:
        """Ask by letters; where nobody can be asked it is refused.

        What follows the letter of a rejection is what the agent should do instead.
        """
        async with self._asking:
            self._begin()
            request = acp.RequestPermissionRequest(
                session_id=self._session(),
                tool_call=acp.ToolCallUpdate(tool_call_id=call.id, content=_content(call)),
                options=options,
            )
            asked = Asked(title=call.title, kind=call.kind, options=tuple(options), request=request)
            by_letter = letters(options)
            refusal = refusal_of(options)
            refused = None if refusal is None else Answer(refusal)
            if not self._person:
                self._screen.answered(asked, translate("Refused: nobody to ask"))
                return refused
            self._screen.permission(asked)
            if warning:
                self._say(f"  ! {warning}", "bad")
            for _ in range(_ATTEMPTS):
                for letter, option in by_letter.items():
                    self._say(f"  [{letter}] {one_line(option.name)}", "warning")
                self._say(f"  [{DETAILS}] {translate('details')}", "dim")
                if refusal is not None:
                    self._say(
                        f"  {translate('A reason may follow the letter of a rejection.')}", "dim"
                    )
                line = await self._next_line("  ? ")
                if line is None:
                    return None
                if line == DETAILS:
                    self._say("\n".join(details(call.title, call.raw_input)))
                elif line.lower() in by_letter:
                    return Answer(by_letter[line.lower()])
                letter, _, instead = line.partition(" ")
                if refusal is not None and by_letter.get(letter.lower()) is refusal:
                    return Answer(refusal, instead.strip())
            self._say(translate("Refused: no answer"), "warning")
            return refused

    async def pick(self, title: str, items: Sequence[Item], description: str = "") -> str | None:
        """Let the user pick by number; an empty line leaves."""
        if not self._person:
            return None
        async with self._asking:
            self._begin()
            self._say(f"? {one_line(title)} {one_line(description)}".rstrip(), "warning")
            for number, item in enumerate(items, 1):
                mark = " *" if item.current else ""
                self._say(f"  {number}) {one_line(item.name)}{mark}  {one_line(item.description)}")
            for _ in range(_ATTEMPTS):
                typed = await self._next_line(translate("  number: "))
                if not typed:
                    return None
                if typed.isdecimal() and 1 <= int(typed) <= len(items):
                    return items[int(typed) - 1].value
            return None

    async def enter(self, field: Field) -> str | None:
        """Let the user enter a line; the end of input leaves."""
        if not self._person:
            return None
        async with self._asking:
            self._begin()
            self._say(f"? {one_line(field.title)} {one_line(field.description)}", "warning")
            if field.complaint:
                self._say(f"  ! {field.complaint}", "bad")
            shown = f" [{one_line(field.default)}]" if field.default else ""
            line = await self._next_line(f"  >{shown} ")
            return field.default if line == "" else line

    async def _next_line(self, prompt: str) -> str | None:
        self._screen.close_line()
        self._paint(prompt, "")
        line = await self._answers.get()
        return None if line is None else line.strip()

    def _begin(self) -> None:
        self._answers = asyncio.Queue()  # what was typed before was for no question

    def _say(self, text: str, style: Style = "") -> None:
        for line in inert(text).split("\n"):
            self._screen.say(line, style)


def _content(call: ShownCall) -> list[acp.ToolCallContent]:
    text = "\n".join(call.output_lines())
    shown: list[acp.ToolCallContent] = list(call.diffs)
    if text:
        shown.append(acp.Content(content=acp.TextContent(text=text)))
    return shown
