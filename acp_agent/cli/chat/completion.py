"""Completions of the line that is being typed: commands, and files behind an `@`."""

from __future__ import annotations

import asyncio
import re
import shlex
from collections.abc import AsyncGenerator, Callable, Iterable
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from acp_agent.cli.chat.fuzzy_paths import matching_paths
from acp_agent.cli.chat.mentions import completions, mention
from acp_agent.cli.output import one_line

_MENTION = re.compile(r'(?:^|\s)(@"?)([^\s"@]*)$')


class ChatCompleter(Completer):
    """Completes commands at the beginning of a prompt, and mentions of files anywhere.

    Args:
        commands: names and descriptions of the commands.
        cwd: the folder that paths are relative to.
        is_command: whether a text is a command for the user's shell.
    """

    def __init__(
        self,
        commands: Callable[[], list[tuple[str, str]]],
        cwd: Path,
        is_command: Callable[[str], bool],
    ) -> None:
        self._commands = commands
        self._cwd = cwd
        self._is_command = is_command

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """The commands alone, which need no look at the disk."""
        del complete_event
        text = document.text_before_cursor
        if text.startswith("/") and not re.search(r"\s", text):
            typed = text[1:].lower()
            for name, description in self._commands():
                if name.lower().startswith(typed) and name.isprintable():
                    yield Completion(
                        f"/{name} ",
                        start_position=-len(text),
                        display=f"/{one_line(name, 40)}",
                        display_meta=one_line(description, 120),
                    )

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Commands, or the files and folders that a path may become."""
        if self._is_command(document.text):
            if complete_event.completion_requested:  # by Tab alone, as shells do
                async for path in self._paths(document.get_word_before_cursor(WORD=True)):
                    yield path
            return
        match = _MENTION.search(document.text_before_cursor)
        if match is None:
            for command in self.get_completions(document, complete_event):
                yield command
            return
        mark, typed = match.groups()
        for name in await matching_paths(typed, self._cwd):
            end = "" if name.endswith("/") else " "
            yield Completion(
                f"{mention(name)}{end}",
                start_position=-len(mark) - len(typed),
                display=one_line(name, 60),
            )

    async def _paths(self, typed: str) -> AsyncGenerator[Completion, None]:
        """What a word of a command may become."""
        for name in await asyncio.to_thread(completions, typed, self._cwd):
            end = "" if name.endswith("/") else " "
            text = name if name.startswith("~/") else shlex.quote(name)
            yield Completion(f"{text}{end}", start_position=-len(typed), display=one_line(name, 60))
