"""Convert values of other agents' fields to ours; `foreign_calls.toml` names the conversions."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from acp_agent.content import JsonObject
from acp_agent.tools.shell import MAX_TIMEOUT, command_text

_DEEPEST = 5  # levels that `list` shows
_BLOCK = re.compile(
    r"^(?:<{5,9}|-{5,9}) ?SEARCH>?[^\n]*\n(?::start_line:[^\n]*\n)?(?::end_line:[^\n]*\n)?"
    r"(?:-{5,9}\n)?(.*?)^={5,9}[ \t]*\n(.*?)^(?:>{5,9}|\+{5,9}) ?REPLACE[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_META = re.compile(r"[\\^$.|?*+()\[\]{}]")  # of ripgrep's regular expressions
_STATES: Final[Mapping[str, str]] = {
    "done": "completed", "complete": "completed", "finished": "completed", "active": "in_progress",
    "doing": "in_progress", "started": "in_progress", "current": "in_progress",
    "todo": "pending", "open": "pending", "notstarted": "pending", "waiting": "pending",
    "inprogress": "in_progress",
}  # fmt: skip
_BOX = re.compile(
    r"\s*(?:[-*+]|\d+[.)])?\s*\[([ xX~/-])\]\s*(\S.*)"
)  # an item of a list in Markdown
_BOXES: Final[Mapping[str, str]] = {" ": "pending", "x": "completed", "X": "completed"}
_URL = re.compile(r"https?://[^\s<>\"'`)\]]+[^\s<>\"'`)\].,;:!?]")
# ripgrep's types of files whose names do not end with the name of the type.
_FILE_TYPES: Final[Mapping[str, str]] = {
    "c": "{c,h}", "cpp": "{cpp,cc,cxx,h,hh,hpp}", "js": "{js,jsx,mjs,cjs}", "rust": "rs",
    "ts": "{ts,tsx,mts,cts}", "python": "{py,pyi}", "py": "{py,pyi}", "ruby": "rb",
    "markdown": "{md,markdown}", "md": "{md,markdown}", "yaml": "{yaml,yml}", "kotlin": "{kt,kts}",
    "html": "{html,htm}", "csharp": "cs", "sh": "{sh,bash}", "typescript": "{ts,tsx,mts,cts}",
    "javascript": "{js,jsx,mjs,cjs}", "golang": "go",
}  # fmt: skip
_LEAST_MILLISECONDS = 1000  # fewer are seconds: no command is given less than one

Conversion = Callable[[str, object, Mapping[str, object]], JsonObject]


class NotConvertibleError(ValueError):
    """A value without a counterpart."""


def _from_zero(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """A first line, which some count from 0."""
    del given
    number = _number(value)
    return {ours: value if number is None else max(1, number)}


def _until(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """A last line, -1 for the end of the file."""
    first, last = _number(given.get("line", 1)), _number(value)
    if first is None or last is None:
        raise NotConvertibleError(f"{value!r} is not a line number")
    if last == -1:
        return {}
    if last < first:
        raise NotConvertibleError(f"the last line, {last}, is before the first, {first}")
    return {ours: last - first + 1}


def _range(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Two lines, as a list or as in "3-5"."""
    ends = re.split(r"\s*[-,:]\s*", value.strip()) if isinstance(value, str) else value
    if isinstance(ends, list) and ends and isinstance(ends[0], list):
        ends = ends[0] if len(ends) == 1 else None
    if not isinstance(ends, list) or len(ends) not in {1, 2}:
        raise NotConvertibleError(f"{value!r} is not a range of lines")
    first = _from_zero(ours, ends[0], given)
    return {**first, **_until("limit", ends[-1], {"line": first[ours]})}


def _only(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """The one item of a list."""
    del given
    if isinstance(value, list):
        if len(value) != 1:
            raise NotConvertibleError(f"it takes one {ours}; make a call for each")
        (value,) = value
    return {ours: value}


def _count(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Number of expected matches; one is the default."""
    times = _number(value)
    if times == 1 or given.get(ours):
        return {}
    if times is None or times < 1:
        raise NotConvertibleError("it replaces one place, or with `all` every one")
    return {ours: True, "times": times}


def _deep(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    return {ours: _DEEPEST} if _is_true(value) and ours not in given else {}


def _not(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    del given
    return {ours: not _is_true(value)}


def _wider(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Lines before or after; our field is for both."""
    lines = _number(value)
    return {} if lines is None else {ours: max(lines, _number(given.get(ours)) or 0)}


def _literal(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Whether the pattern is plain text."""
    pattern = given.get(ours)
    if not _is_true(value) or not isinstance(pattern, str):
        return {}
    return {ours: _META.sub(r"\\\g<0>", pattern)}


def _not_literal(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    return _literal(ours, not _is_true(value), given)


def _output_mode(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    del given
    return {ours: "lines" if value == "content" else "files"}


def _files(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    del given
    return {ours: "files"} if _is_true(value) else {}


def _lines(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Commands, each to be run if the one before succeeded."""
    del given
    if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
        return {ours: value}
    return {ours: value[0] if len(value) == 1 else " && ".join(f"{{ {one}\n}}" for one in value)}


def _in_folder(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """A folder to run a command in."""
    command = command_text(given.get(ours))
    if not isinstance(command, str) or not value or value in {".", "./"}:
        return {}
    if not isinstance(value, str):
        raise NotConvertibleError(f"{value!r} is not a folder")
    simple = not re.search(r"[;\n|&]", command)
    return {ours: f"cd {shlex.quote(value)} {'&& ' if simple else '|| exit' + chr(10)}{command}"}


def _milliseconds(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    del given
    number = _real(value)
    return {ours: value if number is None else min(number / 1000, MAX_TIMEOUT)}


def _seconds_of(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """A time limit, in milliseconds if the tool takes these or it is too large for seconds."""
    number = _real(value)
    if number == 0 and given.get("_ms"):  # no limit
        return {}
    least = _LEAST_MILLISECONDS if given.get("_ms") else MAX_TIMEOUT + 1
    if number is not None and least <= number <= MAX_TIMEOUT * 1000:
        return _milliseconds(ours, number, given)
    return {ours: value}


def _search_replace(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Blocks of SEARCH and REPLACE, with nothing else between them."""
    del given
    if not isinstance(value, str):
        return {ours: value}
    text = value.replace("\r\n", "\n").strip("\n")
    blocks = _BLOCK.findall(text)
    rest = re.sub(r"```\w*", "", _BLOCK.sub("", text)).strip()
    if not blocks or rest:
        raise NotConvertibleError("the diff is not made of blocks of SEARCH and REPLACE")
    return {ours: [{"old": old, "new": new} for old, new in blocks]}


def _insert(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """The line after which text is inserted."""
    return {ours: [{"old": "", "new": given.get("new"), "after_line": value}]}


def _state(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    word = re.sub(r"[\s_-]", "", value).lower() if isinstance(value, str) else ""
    if word in {"cancelled", "canceled"}:
        return {ours: "completed", "content": f"{given.get('content', '')} (cancelled)"}
    return {ours: _STATES.get(word, value)}


def _done(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    del given
    return {ours: "completed" if _is_true(value) else "pending"}


def _checklist(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Steps as a Markdown checklist; any mark but a cross is work in progress."""
    del given
    if not isinstance(value, str) or value.lstrip().startswith(("[{", "{")):
        return {ours: value}
    lines = [line for line in value.splitlines() if line.strip()]
    found = [box for line in lines if (box := _BOX.fullmatch(line))]
    if not found or len(found) < len(lines):
        return {ours: value}
    return {
        ours: [{"content": box[2], "status": _BOXES.get(box[1], "in_progress")} for box in found]
    }


def _unless(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """A value that counts if no other field gives it."""
    return {} if given.get(ours) else {ours: value}


def _in_text(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """The only address in a text, if no other field gives it."""
    found = set(_URL.findall(value)) if isinstance(value, str) else set()
    if given.get(ours) or not found:
        return {}
    if len(found) > 1:
        raise NotConvertibleError(f"it takes one {ours}; make a call for each")
    return {ours: found.pop()}


def _file_type(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """The name pattern of a ripgrep file type."""
    del given
    if not value:
        return {}
    if not isinstance(value, str) or not re.fullmatch(r"\w+", value):
        raise NotConvertibleError(f"{value!r} is no type of files")
    return {ours: f"*.{_FILE_TYPES.get(value.lower(), value.lower())}"}


def _operation(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """The request to a language server: `goToDefinition`, `find_references`."""
    del given
    word = re.sub(r"[\s_-]", "", value).lower() if isinstance(value, str) else ""
    names = ("definition", "references", "hover", "symbols", "rename")
    return {ours: next((one for one in names if one.rstrip("s") in word), value)}


def _as_text(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    del given
    return {} if value is None else {ours: str(value)}


def _cell_mode(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    del given
    return {ours: "replace" if value == "edit" else value}


def _first(ours: str, value: object, given: Mapping[str, object]) -> JsonObject:
    """Questions: our tool takes the first one, and the others in another field."""
    del given
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return {ours: value}
    first = value[0]
    options = first.get("options", [])
    several = {"several": first["multiSelect"]} if "multiSelect" in first else {}
    own = {"question": first.get("question"), "options": options, **several}
    return {**own, ours: value[1:]} if value[1:] else own


def _number(value: object) -> int | None:
    real = _real(value)
    return int(real) if real is not None and real == int(real) else None


def _real(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except ValueError:
        return None


def _is_true(value: object) -> bool:
    return value is True or (isinstance(value, str) and value.strip().lower() == "true")


# By the names that `foreign_calls.toml` has after a colon. Each gets our field, the value, and the
# fields that were converted before; it returns fields of ours.
CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "from_zero": _from_zero, "until": _until, "range": _range, "only": _only, "count": _count,
    "deep": _deep, "not": _not, "wider": _wider, "output_mode": _output_mode, "files": _files,
    "lines": _lines, "in_folder": _in_folder, "milliseconds": _milliseconds,
    "seconds_of": _seconds_of, "search_replace": _search_replace, "state": _state, "done": _done,
    "first": _first, "insert": _insert, "literal": _literal, "not_literal": _not_literal,
    "checklist": _checklist, "unless": _unless, "in_text": _in_text, "file_type": _file_type,
    "operation": _operation, "cell_mode": _cell_mode, "text": _as_text,
}  # fmt: skip

FILTERS: Final = {
    "wider",
    "in_folder",
    "literal",
    "not_literal",
}  # that change a value which another field gave
COMPLETE: Final = {"insert", "search_replace"}  # whose items are in our fields already
