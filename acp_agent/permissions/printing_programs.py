"""Recognise awk and sed programs that only print what they read, token by token.

Sources: POSIX.1-2024, awk and sed; the manuals of gawk, mawk, nawk, BusyBox, GNU sed and BSD sed.
Anything that these interpret differently, or that is rare, is not recognised, so the user is asked
about the command.
"""

from __future__ import annotations

import re

# These run programs, read other files or show the environment; functions are rarely written.
_FORBIDDEN_NAMES = {
    "ARGC", "ARGIND", "ARGV", "ENVIRON", "FUNCTAB", "PROCINFO", "SYMTAB", "close", "fflush", "func",
    "function", "getline", "system", "include", "load", "namespace",
}  # fmt: skip
# A slash after one of these begins a regular expression; after an operand it divides.
_BEFORE_REGEX = frozenset({"", "(", ",", "{", "}", ";", "\n", "!", "~", "!~", "&&", "||"})
_KEYWORDS = {
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
_MAX_LENGTH = 2_000  # characters


def awk_only_prints(program: str) -> bool:
    """Return whether an awk program reads only its input and only prints."""
    if len(program) > _MAX_LENGTH:
        return False
    at, depth, previous, previous_kind = 0, 0, "", ""
    while at < len(program):
        if program[at] == "/" and previous_kind not in {"number", "name", "operand"}:
            match = _REGEX.match(program, at) if previous in _BEFORE_REGEX else None
            previous, previous_kind = "/", "operand"
        else:
            match = _TOKEN.match(program, at)
            if match is not None and match.lastgroup != "blank":
                previous, previous_kind = match[0], match.lastgroup or ""
                depth += {"{": 1, "}": -1}.get(previous, 0)
                # Inside an action, `>` may redirect to a file.
                if previous in _FORBIDDEN_NAMES or (previous == ">" and depth) or depth < 0:
                    return False
                if previous_kind == "string" or previous == "]":
                    previous_kind = "operand"
                elif previous in _KEYWORDS:
                    previous_kind = "operator"
        if match is None:
            return False
        at = match.end()
    return bool(previous) and depth == 0


# Every sed agrees where these end: no bracket expression contains the delimiter, a backslash or
# another bracket except for a character class, and no escape gives a character by its number.
_CLASS = r"\[\^?\]?(?:[^]\[\\\n{mark}]|\[:[a-z]+:\])*\]"
_PART = rf"(?:[^\\\n\[{{mark}}]|\\[^\ncdox]|{_CLASS})*"
_TEXT = r"(?:[^\\\n{mark}]|\\[^\ncdox])*"


def _substitution_pattern(mark: str) -> str:
    part, text = _PART.replace("{mark}", mark), _TEXT.replace("{mark}", mark)
    return rf"s{mark}{part}{mark}{text}{mark}[gpiImM\d]*|y{mark}{text}{mark}{text}{mark}"


_SUBSTITUTION = "|".join(_substitution_pattern(re.escape(mark)) for mark in "/|,#:@%!_")
_ADDRESS = rf"(?:\d+(?:~\d+)?|\$|/{_PART.replace('{mark}', '/')}/I?)"
_RANGE = rf"(?:{_ADDRESS}\s*(?:,\s*(?:{_ADDRESS}|[+~]\d+)\s*)?(?:!\s*)?)?"
_STATEMENT = re.compile(
    rf"[\s;}}]*(?:{_RANGE}(?:\{{|(?:[p=dDgGhHnNPxl]|q\d*|{_SUBSTITUTION})\s*(?=[;\n}}]|$))[\s;}}]*)?"
)


def sed_only_prints(script: str) -> bool:
    """Return whether a sed script reads only its input and only prints."""
    at = 0
    while at < len(script) <= _MAX_LENGTH:
        match = _STATEMENT.match(script, at)
        if match is None or match.end() == at:
            return False
        at = match.end()
    return len(script) <= _MAX_LENGTH
