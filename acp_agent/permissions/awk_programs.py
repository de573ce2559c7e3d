"""Programs of awk that only print what they read, told apart token by token.

POSIX.1-2024, awk; the gawk, mawk, nawk and BusyBox manuals. What these read in different ways, or
what is rare, counts as unknown: then the command is asked about.
"""

from __future__ import annotations

import re

# They run programs, read other files, or show the environment; functions are rarely written.
_REFUSED = {
    "ARGC", "ARGIND", "ARGV", "ENVIRON", "FUNCTAB", "PROCINFO", "SYMTAB", "close", "fflush", "func",
    "function", "getline", "system", "include", "load", "namespace",
}  # fmt: skip
# A slash behind one of these begins a regular expression, and behind an operand it divides.
_BEFORE_REGEX = frozenset({"", "(", ",", "{", "}", ";", "\n", "!", "~", "!~", "&&", "||"})
_WORDS = {
    "print", "printf", "return", "in", "else", "do", "case", "exit", "if", "while", "for", "delete",
    "next",
}  # fmt: skip
_TOKEN = re.compile(
    r"""
    (?P<blank>[ \t]+)
  | (?P<string>"(?:[^"\\\n]|\\[nt"\\/.|])*")
  | (?P<number>\d+(?:\.\d+)?(?![\w.]))
  | (?P<name>[A-Za-z_]\w*)
  | (?P<operator>&&|\|\||!~|[=!<>]=|[-+*/%^]=|\+\+|--|[-+*/%^!~<>=?:,;(){}\[\]$\n])
    """,
    re.VERBOSE | re.ASCII,
)
# Its brackets have no slash, quotation mark or bracket: some end the expression there, some do not.
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\[^\n]|\[\^?[^]\[/\\\"\n]+\])+/")
_LONGEST = 2_000  # characters


def only_prints(program: str) -> bool:
    """Return whether a program reads nothing but its input, and does nothing but print."""
    if len(program) > _LONGEST:
        return False
    at, depth, before, kind = 0, 0, "", ""
    while at < len(program):
        if program[at] == "/" and kind not in {"number", "name", "operand"}:
            found = _REGEX.match(program, at) if before in _BEFORE_REGEX else None
            before, kind = "/", "operand"
        else:
            found = _TOKEN.match(program, at)
            if found is not None and found.lastgroup != "blank":
                before, kind = found[0], found.lastgroup or ""
                depth += {"{": 1, "}": -1}.get(before, 0)
                # In an action it may be the file that is written.
                if before in _REFUSED or (before == ">" and depth) or depth < 0:
                    return False
                if kind == "string" or before == "]":
                    kind = "operand"
                elif before in _WORDS:
                    kind = "operator"
        if found is None:
            return False
        at = found.end()
    return bool(before) and depth == 0
