"""Completion of commands, and of files and resources after an `@`."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from acp_agent.cli.chat.mentions import expand, mention
from acp_agent.cli.output import one_line
from acp_agent.errors import WorkspaceError

_MAX_FILES = 50_000  # files of the tree that are matched
_MAX_ENTRIES = 500  # of a folder that are matched
_MAX_COMPLETIONS = 50
_SEARCH_SECONDS = 2.0
_MENTION = re.compile(r'(?:^|\s)(@"?)([^\s"@]*)$')


class ChatCompleter(Completer):
    """Completes commands at the beginning of a prompt, and mentions anywhere.

    Args:
        commands: returns names and descriptions of the commands.
        is_command: returns whether a text is a command for the user's shell.
        resources: returns mentions of MCP resources for what is typed, with descriptions.
    """

    def __init__(
        self,
        commands: Callable[[], list[tuple[str, str]]],
        cwd: Path,
        is_command: Callable[[str], bool],
        resources: Callable[[str], Awaitable[Sequence[tuple[str, str]]]],
    ) -> None:
        self._commands = commands
        self._cwd = cwd
        self._is_command = is_command
        self._resources = resources

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield commands."""
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
        """Yield commands, or files and folders."""
        if self._is_command(document.text):
            if complete_event.completion_requested:  # only on Tab, as in shells
                async for path in self._paths(document.get_word_before_cursor(WORD=True)):
                    yield path
            return
        match = _MENTION.search(document.text_before_cursor)
        if match is None:
            for command in self.get_completions(document, complete_event):
                yield command
            return
        mark, typed = match.groups()
        resources = await self._resources(f"{mark}{typed}")
        for name, description in matching_resources(f"{mark}{typed}", resources):
            yield Completion(
                name,
                start_position=-len(mark) - len(typed),
                display=one_line(name, 60),
                display_meta=one_line(description, 120),
            )
        for name in await matching_paths(typed, self._cwd):
            end = "" if name.endswith("/") else " "
            yield Completion(
                f"{mention(name)}{end}",
                start_position=-len(mark) - len(typed),
                display=one_line(name, 60),
            )

    async def _paths(self, typed: str) -> AsyncGenerator[Completion, None]:
        """Yield paths for a word of a shell command."""
        for name in await asyncio.to_thread(path_completions, typed, self._cwd):
            end = "" if name.endswith("/") else " "
            text = name if name.startswith("~/") else shlex.quote(name)
            yield Completion(f"{text}{end}", start_position=-len(typed), display=one_line(name, 60))


def path_completions(typed: str, cwd: Path) -> list[str]:
    """Return the paths that begin with `typed`, folders first and with a slash. Reads the disk.

    Hidden files are included only if a dot was typed.
    """
    folder, slash, start = typed.rpartition("/")
    directory = expand(folder + slash, cwd)
    matches: list[tuple[bool, str]] = []
    try:
        with os.scandir(directory) as entries:
            for entry in islice(entries, _MAX_ENTRIES):
                name = entry.name
                if not name.lower().startswith(start.lower()) or not name.isprintable():
                    continue
                if name.startswith(".") and not start.startswith("."):
                    continue
                is_folder = entry.is_dir()
                matches.append((not is_folder, f"{folder}{slash}{name}{'/' if is_folder else ''}"))
    except OSError:
        return []
    return [name for _, name in sorted(matches)[:_MAX_COMPLETIONS]]


def matching_resources(typed: str, resources: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return the mentions that begin with `typed`."""
    prefix = typed.lower()
    if len(prefix) < 2:
        return []
    return [resource for resource in resources if resource[0].lower().startswith(prefix)][
        :_MAX_COMPLETIONS
    ]


async def matching_paths(typed: str, cwd: Path) -> list[str]:
    """Return paths for `@typed`, best first; folders end with a slash.

    Paths that start with `typed` come first, including ignored files. Then follow files and
    folders anywhere in the tree that contain its letters in order, except those that .gitignore
    excludes. The tree is listed on each call, so that new files are found. Hidden ones are
    included only if a dot was typed.
    """
    paths = await asyncio.to_thread(path_completions, typed, cwd)
    if typed and not typed.startswith(("/", "~", "./", "../")):
        files = await _files(cwd)
        paths += await asyncio.to_thread(best_matches, typed, files)
    return list(dict.fromkeys(paths))[:_MAX_COMPLETIONS]


def best_matches(typed: str, files: Sequence[str]) -> list[str]:
    """Return the files, and the folders that contain them, that match `typed`, best first.

    A match in the last path component ranks before one across components, then a match without
    gaps before one with gaps, then a shorter path before a longer one.
    """
    letters = typed.lower()
    hidden = "." in typed
    ranking = [
        (*rank, len(path), path)
        for path in _with_folders(files)
        if path.isprintable()
        and (hidden or not (path.startswith(".") or "/." in path))
        and (rank := _rank(letters, path.lower())) is not None
    ]
    return [path for *_, path in sorted(ranking)[:_MAX_COMPLETIONS]]


def _with_folders(files: Sequence[str]) -> Iterable[str]:
    folders: set[str] = set()
    for file in files:
        folder = file.rpartition("/")[0]
        while folder and folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    return (*files, *(f"{folder}/" for folder in folders))


def _rank(letters: str, path: str) -> tuple[int, int] | None:
    """Return how well lower-case `letters` match `path`; smaller is better, None for no match."""
    position = path.rstrip("/").rpartition("/")[2].find(letters)
    if position >= 0:
        return (0, position)
    position = path.find(letters)
    if position >= 0:
        return (1, position)
    end = position = len(path)
    for letter in reversed(letters):
        position = path.rfind(letter, 0, position)
        if position < 0:
            return None
        if end == len(path):
            end = position
    return (2, end - position)


async def _files(cwd: Path) -> list[str]:
    """Return the files of the tree; none if it cannot be searched."""
    from acp_agent.workspace.search import list_files  # noqa: PLC0415 - once `@` is typed

    try:
        names = await list_files(cwd, limit=_MAX_FILES, timeout=_SEARCH_SECONDS, partial=True)
    except WorkspaceError:
        return []
    return [name.decode("utf-8", "replace") for name in names]
