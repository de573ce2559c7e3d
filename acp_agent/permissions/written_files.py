"""Track the files that a line writes, and what running one of them later in the line means."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from acp_agent.permissions.refused_commands import output_paths
from acp_agent.permissions.rules import has_option, read_only_rules, shell_rules
from acp_agent.permissions.shell.syntax import Command, static_output
from acp_agent.permissions.shell.words import UNKNOWN, Word
from acp_agent.permissions.wrapped_commands import InnerCommand, base_name

_FETCHERS = frozenset({"aria2c", "curl", "fetch", "ftp", "http", "https", "scp", "wget", "xh"})
_URL_NAMED_OPTIONS = ("-O", "--remote-name", "--remote-name-all")
_PRINTERS = frozenset({"cat", "echo", "printf", "tee"})  # their output may be known
_UNKNOWN_PROGRAM = InnerCommand(
    text=None, tier="destructive", why="runs a program that nobody has seen"
)


class WrittenFile(Struct, frozen=True):
    """The content of a file: a copy of a program, a known text, or fetched content."""

    program: str = ""
    text: str | None = None


class WrittenFiles(Struct):
    """The files that the commands of a line have written, by path (for `hash -p`, by name)."""

    cwd: str
    files: dict[str, WrittenFile] = field(default_factory=dict)
    fetched: bool = False  # an earlier command fetches something

    def note(self, command: Command) -> None:
        """Record the files that a command writes."""
        name, words = base_name(command), command.words[1:]
        self.fetched = self.fetched or name in _FETCHERS
        texts = [word.text for word in words]
        if name == "hash" and texts[:1] == ["-p"] and len(texts) > 2:
            self.files[texts[2]] = WrittenFile(program=_program(texts[1]))
        if name in {"cp", "ln", "install", "mv"}:
            sources = [text for text in texts if not text.startswith("-")]
            if len(sources) == 2:
                copied = self.files.get(self._path(sources[0]))
                program = _program(sources[0])
                if copied or program:
                    self.files[self._path(sources[1])] = copied or WrittenFile(program=program)
            return
        if not self.fetched and name not in _PRINTERS:
            return
        targets = [redirect.target for redirect in command.redirects if redirect.writes]
        targets += output_paths(name, words) if words else []
        if (name == "wget" and not targets) or (
            name == "curl" and has_option(texts, _URL_NAMED_OPTIONS)
        ):
            targets += [Word(os.path.basename(text)) for text in texts if "/" in text]  # noqa: PTH119 - an address
        output = static_output(replace(command, redirects=()))
        if output is not None or self.fetched:
            for target in targets:
                self.files[self._path(target.text)] = WrittenFile(text=output)

    def run_by(self, command: Command) -> list[InnerCommand]:
        """Return what a command runs that the line itself wrote."""
        if not self.files or not command.words:
            return []
        name, texts = base_name(command), [word.text for word in command.words]
        program = texts[0]
        file = self.files.get(self._path(program) if "/" in program else program)
        if file is not None:
            return self._runs(command, file, is_shell=True)
        languages = shell_rules().languages
        shell = name in languages.shells or name in {"source", "."}
        if not shell and name not in languages.inline:
            return []
        script = next((text for text in texts[1:] if text[:1] not in {"-", "+"}), "")
        file = self.files.get(self._path(script)) if script else None
        return [] if file is None else self._runs(command, file, is_shell=shell)

    def _runs(self, command: Command, file: WrittenFile, *, is_shell: bool) -> list[InnerCommand]:
        if file.program:
            words: Sequence[Word] = (Word(file.program), *command.words[1:])
            return [InnerCommand(command=replace(command, words=tuple(words)))]
        if file.text is None:
            return [_UNKNOWN_PROGRAM]
        first = file.text.partition("\n")[0]
        if not is_shell or (first.startswith("#!") and "sh" not in first):
            return []
        return [InnerCommand(text=Word(file.text))]

    def _path(self, text: str) -> str:
        return os.path.normpath(os.path.join(self.cwd, text.replace(UNKNOWN, "")))  # noqa: PTH118 - text that need not be a path


def _program(text: str) -> str:
    """Return the program that a path names, or "" if it is not a system program."""
    folder, _, name = text.rpartition("/")
    is_system_program = folder in read_only_rules().program_folders or (
        not folder and name in _PROGRAM_NAMES
    )
    return name if is_system_program else ""


# Names of programs, as in `$(which rm)`.
_PROGRAM_NAMES = frozenset({"bash", "dd", "mv", "rm", "sh", "shred", "unlink", "zsh"})
