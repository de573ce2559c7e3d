"""What a shell command line is made of: a flat list of every simple command that it may run."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from acp_agent.permissions.words import Word


class Assignment(Struct, frozen=True):
    """`name=value` before a command, alone, or after `export` and the like."""

    name: str
    value: Word


class Redirect(Struct, frozen=True):
    """`operator` with its target. Here-documents and here-strings are the command's `stdin`."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Whether it opens its target for writing."""
        return ">" in self.operator


class Command(Struct, frozen=True, kw_only=True):
    """A simple command; `words` is empty where only assignments or redirections stand.

    `stdin` is what is known to be sent to it; `piped` is true behind a `|`. `concurrent` is true
    in the background and in a pipeline; `function` names the function whose body it is part of.
    """

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    stdin: Word | None = None
    piped: bool = False
    concurrent: bool = False
    function: str | None = None

    def __str__(self) -> str:
        text = " ".join(word.text or "''" for word in self.words)
        return text.replace("\0", "…").replace("\1", "…")


class ShellLine(Struct, frozen=True, kw_only=True):
    """Every simple command of a line, in the order in which they are written.

    `plain` is true when the line is made of nothing but commands, pipelines, lists, groups, `if`
    and redirections, so that what it does is what its commands do. `unparsed` is true when
    the text is not valid; `problem` says why a line cannot be looked at at all.
    """

    commands: tuple[Command, ...] = ()
    functions: frozenset[str] = frozenset()
    plain: bool = True
    unparsed: bool = False
    problem: str = ""


_RESERVED = frozenset(
    {
        "{", "}", "!", "if", "then", "elif", "else", "fi", "do", "done",
        "while", "until", "for", "case", "esac", "in",
    }
)  # fmt: skip


def without_reserved(words: Sequence[Word]) -> tuple[Word, ...]:
    """The words of a command without reserved words, and what is set, before its name.

    The grammar takes those for a command's name where it is not sure of a group.
    """
    start = 0
    while start < len(words) and words[start].text in _RESERVED:
        start += 1
    while start and start < len(words) and words[start].text.partition("=")[0].isidentifier():
        if "=" not in words[start].text:
            break
        start += 1
    return tuple(words[start:])
