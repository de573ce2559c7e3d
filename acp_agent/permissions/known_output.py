"""What a command prints, for the few whose output is known before they run."""

from __future__ import annotations

import re
from typing import Literal

from acp_agent.permissions.shell_syntax import Command
from acp_agent.permissions.words import decode_ansi_c

# `"$(cat <<'END' … END)"`, as agents write messages of several lines.
_DOCUMENT = re.compile(
    r"\$\([ \t]*cat[ \t]*<<[ \t]*(?P<quote>['\"])(?P<end>\w+)(?P=quote)[ \t]*\n"
    r"(?P<text>(?:.*\n)??)(?P=end)\n[ \t\n]*\)",
    re.DOTALL,
)
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_QUOTES = "'\"`"
_OCTAL = re.compile(r"\\0([0-7]{1,3})")  # `echo -e` has a zero that is not counted


def known_output(command: Command) -> str | None:
    """What `echo`, `printf`, `cat` or `tee` prints, where that is known."""
    texts = [word.text for word in command.words]
    if not texts or any(redirect.writes for redirect in command.redirects):
        return None
    name, rest = texts[0].rpartition("/")[2], texts[1:]
    if name == "echo":
        escapes = False
        while rest and rest[0].startswith("-") and set(rest[0][1:]) <= set("neE") and rest[0][1:]:
            escapes = escapes or "e" in rest[0]
            rest = rest[1:]
        text = " ".join(rest)
        return decode_ansi_c(_OCTAL.sub(r"\\\1", text), nul_ends=False) if escapes else text
    if name == "printf" and rest:
        form = decode_ansi_c(rest[0], nul_ends=False)
        if "%" not in form:
            return form
        values = iter(rest[1:])
        return "".join(
            part if index == 0 else next(values, "") + part[1:]
            for index, part in enumerate(form.split("%"))
        )
    if (name == "tee" or (name == "cat" and not rest)) and command.stdin is not None:
        return command.stdin.text
    return None


def document_text(source: str, rest: str) -> str | None:
    """The text that `$(cat <<'END' … END)` prints; None where `source` is anything else.

    Bash before 4.0 looks for the end of a substitution by quotes and brackets alone, in the text of
    a here-document too. None is returned where it may find another end than later ones.

    Args:
        source: a command substitution as it is written.
        rest: what stands behind it.
    """
    found = _DOCUMENT.fullmatch(source)
    if found is None:
        return None
    text, end = found["text"], found["end"]
    if any(line.lstrip().startswith(end) for line in text.split("\n")):
        return None  # `END)` ends it for bash, too
    for each in (text, _COMMENT.sub("", text)):
        state = _state_at_end(each)
        if state == "ended" or (state == "open" and set(rest) & {*_QUOTES, "(", ")"}):
            return None
    return text.rstrip("\n")


def _state_at_end(text: str) -> Literal["closed", "open", "ended"]:
    """Whether quotes and brackets are closed at the end of `text`, open, or "ended" before it.

    "ended" is also the answer for what is not worth following.
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
