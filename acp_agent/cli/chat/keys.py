"""Key bindings of the chat."""

from __future__ import annotations

from typing import Protocol

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import Condition, completion_is_selected, has_completions, is_searching
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from acp_agent.cli.chat.questions import (
    ListQuestion,
    PermissionQuestion,
    QuestionQueue,
    TextQuestion,
)

_PAGE = 10


class KeyActions(Protocol):
    """The actions of keys, except for editing."""

    def submit(self) -> None:
        """Submit the input."""

    def paste(self, text: str) -> None:
        """Insert a pasted text."""

    def interrupt(self) -> None:
        """Handle Ctrl-C."""

    def end_of_input(self) -> None:
        """Handle Ctrl-D in an empty prompt."""

    def cancel(self) -> bool:
        """Cancel the turn."""

    def next_mode(self) -> None:
        """Move to the next mode."""

    def toggle_shell(self) -> None:
        """Switch between the agent and the user's shell."""

    def press_letter(self, letter: str) -> None:
        """Answer a permission request by a letter."""


def key_bindings(
    actions: KeyActions, questions: QuestionQueue, prompt: Buffer, answer: Buffer
) -> KeyBindings:
    """Return the chat's key bindings, in addition to prompt_toolkit's for editing."""
    keys = KeyBindings()
    is_asking = Condition(lambda: isinstance(questions.active, PermissionQuestion))
    picking = Condition(lambda: isinstance(questions.active, ListQuestion))
    entering = Condition(lambda: isinstance(questions.active, ListQuestion | TextQuestion))
    typing = Condition(lambda: questions.active is None) & ~is_searching

    @keys.add("c-c", filter=~is_searching)
    @keys.add("<sigint>")
    def _interrupt(_: KeyPressEvent) -> None:
        actions.interrupt()

    @keys.add("c-d", filter=Condition(lambda: not prompt.text) & typing)
    @keys.add("c-d", filter=is_asking)
    def _quit(_: KeyPressEvent) -> None:
        actions.end_of_input()

    @keys.add("c-z")
    def _suspend(event: KeyPressEvent) -> None:
        event.app.suspend_to_background()

    @keys.add("escape", filter=typing & has_completions)
    def _close_menu(event: KeyPressEvent) -> None:
        event.current_buffer.cancel_completion()

    @keys.add("escape", filter=typing & ~has_completions)
    @keys.add("escape", filter=is_asking)
    def _cancel(_: KeyPressEvent) -> None:
        actions.cancel()

    @keys.add("s-tab", filter=typing & ~has_completions)
    @keys.add("s-tab", filter=is_asking)
    def _next_mode(_: KeyPressEvent) -> None:
        actions.next_mode()

    # --- the prompt

    @keys.add("enter", filter=typing & ~completion_is_selected)
    def _submit(_: KeyPressEvent) -> None:
        actions.submit()

    @keys.add("enter", filter=typing & completion_is_selected)
    def _complete(event: KeyPressEvent) -> None:
        event.current_buffer.complete_state = None

    @keys.add("c-j", filter=typing)
    @keys.add("escape", "enter", filter=typing)
    def _new_line(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-x", filter=typing, eager=True)
    def _shell(_: KeyPressEvent) -> None:
        actions.toggle_shell()

    @keys.add(Keys.BracketedPaste, filter=~entering)
    def _paste(event: KeyPressEvent) -> None:
        actions.paste(event.data)

    # --- questions

    @keys.add(Keys.Any, filter=is_asking)
    def _letter(event: KeyPressEvent) -> None:
        if len(event.key_sequence) == 1:
            actions.press_letter(event.key_sequence[0].data)

    @keys.add("enter", filter=is_asking | entering)
    @keys.add("c-j", filter=is_asking | entering)
    def _accept(_: KeyPressEvent) -> None:
        questions.accept(answer.text)

    @keys.add("escape", filter=entering, eager=True)
    def _decline(_: KeyPressEvent) -> None:
        questions.decline(questions.active)

    for name, by in (
        ("up", -1), ("c-p", -1), ("down", 1), ("c-n", 1), ("tab", 1), ("s-tab", -1),
        ("pageup", -_PAGE), ("pagedown", _PAGE),
    ):  # fmt: skip

        @keys.add(
            name, filter=picking if name in {"s-tab", "pageup", "pagedown"} else picking | is_asking
        )
        def _move(_: KeyPressEvent, by: int = by) -> None:
            questions.move(by, answer.text)

    return keys
