"""Recognise awk and sed programs that only print what they read, token by token.

Sources: POSIX.1-2024, awk and sed; the manuals of gawk, mawk, nawk, BusyBox, GNU sed and BSD sed.
Anything that these interpret differently, or that is rare, is not recognised, so the user is asked
about the command.
"""

from __future__ import annotations

import re

# These run programs, read other files or show the environment; functions are rarely written.
_REFUSED = {
    "ARGC", "ARGIND", "ARGV", "ENVIRON", "FUNCTAB", "PROCINFO", "SYMTAB", "close", "fflush", "func",
    "function", "getline", "system", "include", "load", "namespace",
}  # fmt: skip
# A slash after one of these begins a regular expression; after an operand it divides.
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
# Bracket expressions contain no slash, quotation mark or bracket: some awks end the regular
# expression there, some do not.
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\[^\n]|\[\^?[^]\[/\\\"\n]+\])+/")
_LONGEST = 2_000  # characters


def awk_only_prints(program: str) -> bool:
    """Return whether an awk program reads only its input and only prints."""
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
                # Inside an action, `>` may redirect to a file.
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


# Every sed agrees where these end: no bracket expression contains the delimiter, a backslash or
# another bracket except for a character class, and no escape gives a character by its number.
_CLASS = r"\[\^?\]?(?:[^]\[\\\n{mark}]|\[:[a-z]+:\])*\]"
_PART = rf"(?:[^\\\n\[{{mark}}]|\\[^\ncdox]|{_CLASS})*"
_TEXT = r"(?:[^\\\n{mark}]|\\[^\ncdox])*"


def _replacing(mark: str) -> str:
    part, text = _PART.replace("{mark}", mark), _TEXT.replace("{mark}", mark)
    return rf"s{mark}{part}{mark}{text}{mark}[gpiImM\d]*|y{mark}{text}{mark}{text}{mark}"


_REPLACING = "|".join(_replacing(re.escape(mark)) for mark in "/|,#:@%!_")
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_PART.replace('{mark}', '/')}/I?)"
_RANGE = rf"(?:{_ADDRESS}\s*(?:,\s*(?:{_ADDRESS}|[+~]\d+)\s*)?(?:!\s*)?)?"
_STATEMENT = re.compile(
    rf"[\s;}}]*(?:{_RANGE}(?:\{{|(?:[p=dDgGhHnNPxl]|q\d*|{_REPLACING})\s*(?=[;\n}}]|$))[\s;}}]*)?"
)


def sed_only_prints(script: str) -> bool:
    """Return whether a sed script reads only its input and only prints."""
    at = 0
    while at < len(script) <= _LONGEST:
        found = _STATEMENT.match(script, at)
        if found is None or found.end() == at:
            return False
        at = found.end()
    return len(script) <= _LONGEST
