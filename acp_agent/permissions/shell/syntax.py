"""The structure of a shell command line: a flat list of the simple commands that it may run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from acp_agent.permissions.shell.words import Word, decode_ansi_c


class Assignment(Struct, frozen=True):
    """`name=value` before a command, alone, or after `export` and the like."""

    name: str
    value: Word


class Redirect(Struct, frozen=True):
    """A redirection operator with its target; here-documents become the command's `stdin`."""

    operator: str
    target: Word

    @property
    def writes(self) -> bool:
        """Return whether the redirection opens its target for writing."""
        return ">" in self.operator


class Command(Struct, frozen=True, kw_only=True):
    """A simple command; `words` is empty if there are only assignments or redirections.

    `stdin` is its input as far as it is known; `piped` is true after a `|`. `concurrent` is true in
    the background and in a pipeline; `function` is the name of the function whose body contains it.
    `source` is the command whose output is its input, if that is a single one.
    """

    words: tuple[Word, ...] = ()
    assignments: tuple[Assignment, ...] = ()
    redirects: tuple[Redirect, ...] = ()
    stdin: Word | None = None
    piped: bool = False
    concurrent: bool = False
    function: str | None = None
    source: Command | None = None

    def __str__(self) -> str:
        text = " ".join(word.text or "''" for word in self.words)
        return text.replace("\0", "…").replace("\1", "…")


class ShellLine(Struct, frozen=True, kw_only=True):
    """Every simple command of a line, in written order.

    `plain` is true if the line consists only of commands, pipelines, lists, groups, `if` and
    redirections, so that it does exactly what its commands do. `followed` is also true with loops
    and substitutions, if each variable is set in only one place. `unparsed` is true if the text is
    invalid; `problem` is the reason why a line cannot be checked at all.
    """

    commands: tuple[Command, ...] = ()
    functions: frozenset[str] = frozenset()
    plain: bool = True
    followed: bool = True
    unparsed: bool = False
    problem: str = ""

    def ends_in_folder(self, command: Command) -> bool:
        """Return whether a command only changes to another folder, in which no command runs."""
        *others, last = self.commands
        if not (others and last is command and command.words and self.plain) or self.functions:
            return False
        only_words = all(word.fixed for word in command.words) and not command.redirects
        return only_words and command.words[0].text == "cd" and not command.assignments


_RESERVED = frozenset(
    {
        "{", "}", "!", "if", "then", "elif", "else", "fi", "do", "done",
        "while", "until", "for", "case", "esac", "in",
    }
)  # fmt: skip


def without_reserved(words: Sequence[Word]) -> tuple[Word, ...]:
    """Return the words of a command without leading reserved words and assignments.

    The grammar takes these for a command's name if it is unsure of a group, sometimes several of
    them as one word: `! { { x; }; }`.
    """
    start = 0
    while start < len(words) and _is_reserved(words[start].text):
        start += 1
    while start and start < len(words) and words[start].text.partition("=")[0].isidentifier():
        if "=" not in words[start].text:
            break
        start += 1
    return tuple(words[start:])


def _is_reserved(text: str) -> bool:
    tokens = text.split()
    return bool(tokens) and _RESERVED.issuperset(tokens)


# `"$(cat <<'END' … END)"`, as agents write multi-line messages.
_DOCUMENT = re.compile(
    r"\$\([ \t]*cat[ \t]*<<[ \t]*(?P<quote>['\"])(?P<end>\w+)(?P=quote)[ \t]*\n"
    r"(?P<text>(?:.*\n)??)(?P=end)\n[ \t\n]*\)",
    re.DOTALL,
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_QUOTES = "'\"`"
_OCTAL = re.compile(r"\\0([0-7]{1,3})")  # in `echo -e`, the leading zero is not one of the digits


def static_output(command: Command) -> str | None:
    """Return what `echo`, `printf`, `cat` or `tee` prints, or None if that is unknown."""
    texts = [word.text for word in command.words]
    if not texts or any(redirect.writes for redirect in command.redirects):
        return None
    name, arguments = texts[0].rpartition("/")[2], texts[1:]
    if name == "echo":
        escapes = False
        while (
            arguments
            and arguments[0].startswith("-")
            and set(arguments[0][1:]) <= set("neE")
            and arguments[0][1:]
        ):
            escapes = escapes or "e" in arguments[0]
            arguments = arguments[1:]
        text = " ".join(arguments)
        return decode_ansi_c(_OCTAL.sub(r"\\\1", text), nul_ends=False) if escapes else text
    if name == "printf" and arguments:
        form = decode_ansi_c(arguments[0], nul_ends=False)
        if "%" not in form:
            return form
        values = iter(arguments[1:])
        return "".join(
            part if index == 0 else next(values, "") + part[1:]
            for index, part in enumerate(form.split("%"))
        )
    if (name == "tee" or (name == "cat" and not arguments)) and command.stdin is not None:
        return command.stdin.text
    return None


def document_text(source: str, following: str) -> str | None:
    """Return the text that `$(cat <<'END' … END)` prints, or None for any other `source`.

    Bash before 4.0 finds the end of a substitution by quotes and brackets alone, even in a
    here-document. None is returned if it may find a different end than later versions.

    Args:
        source: a command substitution as written.
    """
    match = _DOCUMENT.fullmatch(source)
    if match is None:
        return None
    text, end = match["text"], match["end"]
    if any(line.lstrip().startswith(end) for line in text.split("\n")):
        return None  # `END)` ends it for bash, too
    for candidate in (text, _COMMENT.sub("", text)):
        state = _state_at_end(candidate)
        if state == "ended" or (state == "open" and set(following) & {*_QUOTES, "(", ")"}):
            return None
    return text.rstrip("\n")


def _state_at_end(text: str) -> Literal["closed", "open", "ended"]:
    """Return whether quotes and brackets are closed or open at the end, or "ended" if before it.

    "ended" is also returned for texts that are too complicated to follow.
    """
    depth = at = 0
    while at < len(text):
        character, following = text[at], text[at + 1 : at + 2]
        if character in _QUOTES:
            end = text.find(character, at + 1)
            if end < 0:
                return "open"
            inside = text[at + 1 : end]
            if set(inside) & {*_QUOTES, "\\", "$"} or _COMMENT.search(inside):
                return "ended"
            if _state_at_end(inside) != "closed":
                return "ended"
            at = end
        elif (character == "\\" and following in {*_QUOTES, "\\", "$", "(", ")"}) or (
            character == "$" and following in {*_QUOTES, "(", "{", "["}
        ):
            return "ended"
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth < 0:
            return "ended"
        at += 1
    return "open" if depth else "closed"
