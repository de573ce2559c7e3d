"""What a command prints, for the few whose output is known before they run."""

from __future__ import annotations

import re

from acp_agent.permissions.shell_syntax import Command
from acp_agent.permissions.words import decode_ansi_c

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
