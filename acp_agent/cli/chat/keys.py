"""What each key does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.filters import Condition, completion_is_selected, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from acp_agent.cli.chat.mentions import dropped_files, mention
from acp_agent.cli.chat.questions import ListQuestion, PermissionQuestion, TextQuestion
from acp_agent.cli.localization import translate

if TYPE_CHECKING:
    from acp_agent.cli.chat.terminal import TerminalChat

_PAGE = 10
_PASTED = 2_000_000  # characters of one paste that are taken


def key_bindings(chat: TerminalChat) -> KeyBindings:
    """The keys of the chat, beside those of editing that everybody's fingers know."""
    keys = KeyBindings()
    asking = Condition(lambda: isinstance(chat.questions.active, PermissionQuestion))
    picking = Condition(lambda: isinstance(chat.questions.active, ListQuestion))
    entering = Condition(lambda: isinstance(chat.questions.active, ListQuestion | TextQuestion))
    typing = Condition(lambda: chat.questions.active is None) & ~is_searching

    @keys.add("c-c", filter=~is_searching)
    @keys.add("<sigint>")
    def _interrupt(_: KeyPressEvent) -> None:
        chat.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not chat.input.text) & typing)
    @keys.add("c-d", filter=asking)
    def _quit(_: KeyPressEvent) -> None:
        chat.end_of_input()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("escape", filter=typing & has_completions)
    def _close_menu(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("escape", filter=typing & ~has_completions)
    @keys.add("escape", filter=asking)
    def _cancel(_: KeyPressEvent) -> None:
        chat.cancel()

    @keys.add("s-tab", filter=typing & ~has_completions)
    @keys.add("s-tab", filter=asking)
    def _next_mode(_: KeyPressEvent) -> None:
        chat.next_mode()

    # --- the prompt

    @keys.add("enter", filter=typing & ~completion_is_selected)
    def _submit(_: KeyPressEvent) -> None:
        chat.submit()

    @keys.add("enter", filter=typing & completion_is_selected)
    def _take(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("c-j", filter=typing)
    @keys.add("escape", "enter", filter=typing)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-x", filter=typing, eager=True)
    def _shell(_: KeyPressEvent) -> None:
        chat.shell.toggle()

    @keys.add(Keys.BracketedPaste, filter=~entering)
    def _paste(event: KeyPressEvent) -> None:
        pasted = event.data[:_PASTED].replace("\r\n", "\n").replace("\r", "\n")
        if len(event.data) > _PASTED:
            chat.front.say(
                translate("The paste is cut after {count} characters.", count=_PASTED), "bad"
            )
        files = dropped_files(pasted)
        chat.input.insert_text(" ".join(map(mention, files)) + " " if files else pasted)

    # --- a permission request

    @keys.add(Keys.Any, filter=asking)
    def _letter(event: KeyPressEvent) -> None:
        if len(event.key_sequence) == 1:
            chat.choose(event.key_sequence[0].data)

    # --- all questions

    @keys.add("enter", filter=~typing)
    @keys.add("c-j", filter=~typing)
    def _accept(_: KeyPressEvent) -> None:
        chat.questions.accept(chat.answer.text)

    @keys.add("escape", filter=entering, eager=True)
    def _refuse(_: KeyPressEvent) -> None:
        chat.questions.decline(chat.questions.active)

    for name, by in (
        ("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1), ("tab", 1), ("s-tab", -1),
        ("pageup", -_PAGE), ("pagedown", _PAGE),
    ):  # fmt: skip

        @keys.add(name, filter=picking if name == "s-tab" else picking | asking)
        def _move(_: KeyPressEvent, by: int = by) -> None:
            chat.questions.move(by, chat.answer.text)

    return keys
