"""Readings of the texts of a call: without copied line numbers, markers and escapes.

A reading removes from `old` what no file has, and the same from `new`. It counts only if the rest
of `old` is in the file, in one place. If `new` could be read in two ways, there is no reading.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence

import msgspec

from acp_agent.tools.editing.folding import fold
from acp_agent.tools.editing.matching import STRICT, Wanted

# What encloses a text: a fence, the marks of a search and replace block.
_FENCES = tuple(
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\s*(?P<fence>```+|~~~+)[^\n`]*\n(?P<text>.*?)\n?[ \t]*(?P=fence)\s*",
        r"\s*[<-]{5,9} ?SEARCH>?\n(?P<text>.*?)\n?(?:={5,9}\s*)?",
        r"(?:\s*={5,9}\n)?(?P<text>.*?)\n?[>+]{5,9} ?REPLACE>?\s*",
        r"(?P<fence>`)(?P<text>[^`\n]+)`\n?",
    )
)
# The number of a line as this and other agents show it, the signs after it, and its text.
_NUMBERS = tuple(
    re.compile(rf"[ ]*[\[(]?L?(\d+){sign}(.*)", re.DOTALL)
    for sign in (
        *(r"\t", r"[ ]?\u2192\t?", r"[ ]?[|\u2502][ ]", r"[ ]?[|\u2502]"),
        *(r":[ ]", "[:-]", r"[ ]?-[ ]", r"[.)\]]:?[ ]", r"[.)\]]:?"),
    )
)
_SURE_NUMBERS = 2  # of these patterns; the others may be what a line says
_QUOTE_ESCAPE = re.compile(r"\\([\"'`$/])")
_ESCAPE = re.compile(r"\\(r\\n|[\"'`$/\\nrt])")
_TABS = re.compile(r"^([ \t]*)((?:\\t)+)", re.MULTILINE)
_CODE_POINT = re.compile(r"(?<!\\)\\u([0-9a-fA-F]{4})")
_LINE_ESCAPE = re.compile(r"(?<!\\)\\(r|n|t)")
_CHARS = {"n": "\n", "r": "\r", "t": "\t", "r\\n": "\n"}
_STRING = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'")
_ENTITY = re.compile("&(?:amp|lt|gt|quot|apos|#39|#x27);")
_ESCAPED_ENTITY = re.compile(r"&amp;[#\w]+;")
_DASH = "\u2014"
_MOST = 24  # readings of one call

Reader = Callable[[Wanted], "Wanted | list[Wanted] | None"]


def readings(old: str, new: str) -> list[Wanted]:
    """Return all readings of an edit whose texts have LF line endings, the plainest first."""
    found = [Wanted(old=old, new=with_line_end(old, new))]
    for read in _READERS:
        for one in list(found):
            other = read(one)
            more = other if isinstance(other, list) else [other] if other else []
            found.extend(more[: _MOST - len(found)])
    return sorted(found, key=lambda one: len(one.notes))


def with_line_end(old: str, new: str) -> str:
    """Return `new` with the line end that it lacks if `old` is whole lines."""
    is_meant = new in {"", old[:-1]} or new[-1:].isspace() or not old.strip()
    return f"{new}\n" if old.endswith("\n") and not is_meant else new


def begins_with_line_end(text: str, places: Sequence[int], old: str, new: str) -> bool:
    """Return whether `old` is whole lines after a line end without which lines would join."""
    rest = old[1:]
    if old[:1] != "\n" or not rest.strip() or new[:1] in {"", "\n"} or not new.strip():
        return False
    indent = _leading(rest)
    whole = old.endswith("\n") and new.endswith("\n")
    return (
        (bool(indent) or whole)
        and _leading(new) == indent
        and all(at and text[at - 1] != "\n" for at in places)
    )


def _leading(text: str) -> str:
    return text[: len(text) - len(text.lstrip(" \t"))]


def begins_in_indentation(text: str, at: int, old: str, new: str) -> bool:
    """Return whether a line of `old` with too little indentation becomes several lines.

    If replaced exactly, only the first of them would get the rest of the indentation.
    """
    line_start = text.rfind("\n", 0, at) + 1
    if old[:1] not in (" ", "\t") or at == line_start or text[line_start:at].strip():
        return False
    if "\n" in old.strip("\n") or "\n" not in new.strip("\n"):
        return False
    shallow = len(old) - len(old.lstrip())
    depths = [len(line) - len(line.lstrip()) for line in new.split("\n")[1:] if line.strip()]
    # Lines as deep as the file's line were written with it in sight.
    return min(depths) < at - line_start + shallow or any(
        depth - shallow in (2, 4, 8) for depth in depths
    )


def is_only_form(wanted: Wanted) -> bool:
    """Return whether `new` has the same words as `old`, and differs only in form."""
    return _words(wanted.old) == _words(wanted.new)


def _words(text: str) -> list[str]:
    return [form for form in map(fold, text.split("\n")) if form]


def _replace(wanted: Wanted, note: str, old: str, new: str, **flags: bool | int | None) -> Wanted:
    return msgspec.structs.replace(
        wanted,
        old=old,
        new=with_line_end(old, new),
        notes=(*wanted.notes, note),
        **{"distance": 2, **flags},
    )


def _without_fence(wanted: Wanted) -> Wanted | None:
    old, new = _fenced(wanted.old), _fenced(wanted.new)
    if old is None:
        return None
    text = wanted.new.removesuffix("\n") if new is None else new
    return _replace(wanted, "what encloses it", old, text, starts_line=True, ends_line=True)


def _fenced(text: str) -> str | None:
    """The text within a fence or marks; None if there are none."""
    found = next((found for one in _FENCES if (found := one.fullmatch(text))), None)
    return found["text"] if found else None


def _decoded(wanted: Wanted) -> Wanted | None:
    """Both texts without the quotation marks and escapes of a string in JSON."""
    old, new = _string(wanted.old), _string(wanted.new)
    return None if old is None or new is None else _replace(wanted, "escapes", old, new)


def _string(text: str) -> str | None:
    if not (text.startswith('"') and text.rstrip().endswith('"')):
        return None
    try:
        return msgspec.json.decode(text, type=str)
    except msgspec.DecodeError:
        return None


def _without_entities(wanted: Wanted) -> Wanted | None:
    """Without the escapes of markup, once: `&amp;nbsp;` is an entity of the file."""
    if not _ESCAPED_ENTITY.search(wanted.old):
        return None
    old, new = (_ENTITY.sub(_unescape, text) for text in (wanted.old, wanted.new))
    if _has_lines_of(old, wanted.new, new):
        new = wanted.new
    return _replace(wanted, "HTML entities", old, new)


def _unescape(found: re.Match[str]) -> str:
    return html.unescape(found[0])


def _with_double_hyphens(wanted: Wanted) -> Wanted | None:
    """With two hyphens for a dash."""
    if _DASH not in wanted.old:
        return None
    old, new = (text.replace(_DASH, "--") for text in (wanted.old, wanted.new))
    return _replace(wanted, "dashes", old, new)


def _without_numbers(wanted: Wanted) -> list[Wanted]:
    found: list[Wanted] = []
    end = "\n" if wanted.old.endswith("\n") else ""
    text = wanted.old.removesuffix("\n")
    for index, pattern in enumerate(_NUMBERS):
        is_sure = index < _SURE_NUMBERS
        old = _strip_numbers(text, pattern, every=True)
        if old is None:
            continue
        new = _new_without_numbers(wanted.new, old, pattern, every=not is_sure)
        if new is None:
            continue
        first = pattern.match(text)
        line = int(first[1]) if first and not is_sure and "\n" not in text else None
        found.append(
            _replace(
                wanted,
                "line numbers",
                old + end,
                new,
                starts_line=True,
                ends_line=True,
                line=line,
            )
        )
    return found


def _new_without_numbers(
    new: str, old: str, pattern: re.Pattern[str], *, every: bool
) -> str | None:
    """Return `new` without line numbers, if it has any; None if that is uncertain."""
    lines = new.split("\n")
    numbered = [line for line in lines if pattern.fullmatch(line)]
    if not numbered:
        return new
    if set(old.split("\n")) & {line for line in lines if line.strip()}:
        return None  # a line of `old` is here without its number: the others may be text
    stripped = _strip_numbers(new, pattern, every=every)
    if stripped is None or len(numbered) == len([line for line in lines if line.strip()]):
        return stripped
    return stripped if set(old.split("\n")) & set(stripped.split("\n")) - {""} else None


def _strip_numbers(text: str, pattern: re.Pattern[str], *, every: bool) -> str | None:
    """The lines without their numbers.

    None if those do not ascend, or are missing: from a line if `every` is set, else from the
    first, after which numbers are data rather than the numbers of lines.
    """
    last, result, numbered = -1, [], 0
    for line in text.split("\n"):
        found = pattern.fullmatch(line) or pattern.fullmatch(f"{line} ")
        if found is None:
            if line.strip() and (every or not numbered):
                return None
            result.append(line)
            continue
        number = int(found[1])
        if number < last or (every and number == last):
            return None
        last = number
        numbered += 1
        result.append(found[2])
    return "\n".join(result) if numbered else None


def _without_markers(wanted: Wanted) -> Wanted | None:
    old_lines, new_lines = wanted.old.split("\n"), wanted.new.split("\n")
    old_signs, new_signs = _signs(old_lines), _signs(new_lines)
    if old_signs is None or new_signs is None:
        return None
    is_diff = (
        old_signs <= {"-", " "}
        and new_signs <= {"+", " "}
        and bool("-" in old_signs or "+" in new_signs)
    )
    if not (is_diff or old_signs == new_signs == {"+"}):
        return None
    old, new = ("\n".join(line[1:] for line in lines) for lines in (old_lines, new_lines))
    return _replace(
        wanted, "diff markers", old, new, starts_line=True, ends_line=True, level=STRICT
    )


def _signs(lines: list[str]) -> set[str] | None:
    """The signs that the lines begin with, None if one begins with another."""
    signs = {line[0] for line in lines if line}
    return signs if signs <= {"+", "-", " "} else None


def _unescaped_quotes(wanted: Wanted) -> Wanted | None:
    return _unescaped(wanted, _QUOTE_ESCAPE)


def _unescaped_all(wanted: Wanted) -> Wanted | None:
    return _unescaped(wanted, _ESCAPE)


def _unescaped(wanted: Wanted, escape: re.Pattern[str]) -> Wanted | None:
    """Read both texts as a JSON decoder would return them."""
    if "escapes" in " ".join(wanted.notes) or not escape.search(wanted.old):
        return None
    old, new = (escape.sub(_char, text) for text in (wanted.old, wanted.new))
    if _has_lines_of(old, wanted.new, new):
        return _replace(wanted, "escapes", old, wanted.new)
    if escape is _ESCAPE:
        if old == _QUOTE_ESCAPE.sub(_char, wanted.old) and not _LINE_ESCAPE.search(wanted.new):
            return None  # the same as with quotes alone
        # A line feed in a string would break it: perhaps only `old` was escaped too much.
        if _has_broken_string(wanted.new) or (
            "\n" in wanted.new and _LINE_ESCAPE.search(wanted.new)
        ):
            return None
    elif _is_unclear(wanted.new):
        return None
    return _replace(wanted, "escapes", old, new)


def _has_lines_of(old: str, new: str, unescaped: str) -> bool:
    """Whether `new` as given, but not unescaped, shares lines with the unescaped `old`."""
    lines, plain = set(new.split("\n")), set(unescaped.split("\n"))
    return bool(set(old.split("\n")) & (lines - plain))


def _has_broken_string(text: str) -> bool:
    plain = _QUOTE_ESCAPE.sub(lambda found: found[1], text)
    return any(_LINE_ESCAPE.search(found.group()) for found in _STRING.finditer(plain))


def _is_unclear(new: str) -> bool:
    r"""Whether `new` has quotes with and without escapes, or \n that may be a line end."""
    plain = _QUOTE_ESCAPE.sub("", new)
    if any(f"\\{char}" in new and char in plain for char in "\"'/"):
        return True
    unescaped = _QUOTE_ESCAPE.sub(_char, new)
    return bool(_LINE_ESCAPE.search(_STRING.sub("", unescaped)))


def _char(found: re.Match[str]) -> str:
    return _CHARS.get(found[1], found[1])


def _without_tab_escapes(wanted: Wanted) -> Wanted | None:
    r"""With tabs for each `\t` that a line begins with."""
    if not _TABS.search(wanted.old):
        return None
    old, new = (_TABS.sub(_tabs, text) for text in (wanted.old, wanted.new))
    return _replace(wanted, "escapes", old, new)


def _tabs(found: re.Match[str]) -> str:
    return found[1] + "\t" * (len(found[2]) // 2)


def _without_code_points(wanted: Wanted) -> Wanted | None:
    r"""With characters for their numbers, such as `\u003c`; all else stays."""
    if not _CODE_POINT.search(wanted.old):
        return None
    old, new = (_CODE_POINT.sub(_character, text) for text in (wanted.old, wanted.new))
    return _replace(wanted, "escapes", old, new)


def _character(found: re.Match[str]) -> str:
    number = int(found[1], 16)
    # Controls and halves of a pair stay: they are text of the file.
    return found[0] if number < 0x20 or 0xD800 <= number < 0xE000 else chr(number)


def _without_blank_lines(wanted: Wanted) -> Wanted | None:
    """Remove blank lines around, and the last line end: the file may end before it."""
    old = wanted.old.strip("\n")
    lines = old.split("\n")
    while len(lines) > 1 and not lines[0].strip():
        del lines[0]
    while len(lines) > 1 and not lines[-1].strip():
        del lines[-1]
    core = "\n".join(lines)
    if core == wanted.old or not core.strip():
        return None
    at = wanted.old.index(core)
    before, after = wanted.old[:at].count("\n"), wanted.old[at + len(core) :].count("\n")
    new = _strip_blank(wanted.new, before, after)
    return _replace(
        wanted,
        "blank lines around it" if before or after > 1 else "the last line end",
        core,
        new,
        starts_line=wanted.starts_line or bool(before),
        ends_line=wanted.ends_line or bool(after),
        distance=max(wanted.distance, 1),
    )


def _strip_blank(text: str, before: int, after: int) -> str:
    """Return a text without up to so many blank lines at its ends."""
    lines = text.split("\n")
    while before and len(lines) > 1 and not lines[0].strip():
        del lines[0]
        before -= 1
    while after and len(lines) > 1 and not lines[-1].strip():
        del lines[-1]
        after -= 1
    return "\n".join(lines)


# Escapes come first: line numbers and markers need separate lines.
_READERS: tuple[Reader, ...] = (
    _decoded,
    _without_entities,
    _with_double_hyphens,
    _without_code_points,
    _without_tab_escapes,
    _unescaped_quotes,
    _unescaped_all,
    _without_fence,
    _without_numbers,
    _without_markers,
    _without_blank_lines,
)
