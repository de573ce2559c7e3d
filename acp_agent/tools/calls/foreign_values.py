"""Convert values of other agents' fields to ours; `foreign_calls.toml` names the conversions."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Final

from acp_agent.content import JsonObject
from acp_agent.tools.calls.edit_blocks import read_blocks
from acp_agent.tools.shell import MAX_TIMEOUT, command_text

_MAX_LIST_DEPTH = 5  # levels that `list` shows
_META = re.compile(r"[\\^$.|?*+()\[\]{}]")  # of ripgrep's regular expressions
_STATES: Final[Mapping[str, str]] = {
    "done": "completed", "complete": "completed", "finished": "completed", "active": "in_progress",
    "doing": "in_progress", "started": "in_progress", "current": "in_progress",
    "todo": "pending", "open": "pending", "notstarted": "pending", "waiting": "pending",
    "inprogress": "in_progress",
}  # fmt: skip
# An item of a Markdown list.
_BOX = re.compile(r"\s*(?:[-*+]|\d+[.)])?\s*\[([ xX~/-])\]\s*(\S.*)")
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
_TIME = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|sec|seconds|m|min|minutes)")
_SECONDS: Final[Mapping[str, float]] = {
    "ms": 0.001, "s": 1, "sec": 1, "seconds": 1, "m": 60, "min": 60, "minutes": 60,
}  # fmt: skip
_VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_MIN_MILLISECONDS = 1000  # fewer are seconds: no command is given less than one

Conversion = Callable[[str, object, Mapping[str, object]], JsonObject]


class NotConvertibleError(ValueError):
    """A value without a counterpart."""


def _first_line(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Return a first line; some agents count from 0."""
    number = _number(value)
    return {target: value if number is None else max(1, number)}


def _last_line(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return a last line, -1 for the end of the file."""
    first, last = _number(converted.get("line", 1)), _number(value)
    if first is None or last is None:
        raise NotConvertibleError(f"{value!r} is not a line number")
    if last == -1:
        return {}
    if last < first:
        raise NotConvertibleError(f"the last line, {last}, is before the first, {first}")
    return {target: last - first + 1}


def _line_range(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Two lines, as a list, an object, or as in "3-5" and "L3-L5"."""
    if value in ([], {}, ""):
        return {}
    if isinstance(value, list) and len(value) == 1 and not isinstance(value[0], int):
        (value,) = value
    ends = value
    if isinstance(value, str):
        ends = re.split(r"\s*(?:[-,:]|\.\.)\s*", re.sub(r"[Ll](?=\d)|[\[\]]", "", value).strip())
    elif isinstance(value, dict) and value.keys() == {"start", "end"}:
        ends = [value["start"], value["end"]]
    if not isinstance(ends, list) or len(ends) not in {1, 2}:
        raise NotConvertibleError(f"{value!r} is not a range of lines")
    first = _first_line(target, ends[0], converted)
    return {**first, **_last_line("limit", ends[-1], {"line": first[target]})}


def _single_item(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Return the only item of a list."""
    if isinstance(value, list):
        if len(value) != 1:
            raise NotConvertibleError(f"it takes one {target}; make a call for each")
        (value,) = value
    return {target: value}


def _match_count(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Number of expected matches; one is the default."""
    times = _number(value)
    if times == 1 or converted.get(target):
        return {}
    if times is None or times < 1:
        raise NotConvertibleError("it replaces one place, or with `all` every one")
    return {target: True, "times": times}


def _recursive(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    return {target: _MAX_LIST_DEPTH} if _is_true(value) and target not in converted else {}


def _negated(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    return {target: not _is_true(value)}


def _largest(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Lines before or after; our field is for both."""
    lines = _number(value)
    return {} if lines is None else {target: max(lines, _number(converted.get(target)) or 0)}


def _literal(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return whether the pattern is plain text."""
    pattern = converted.get(target)
    if not _is_true(value) or not isinstance(pattern, str):
        return {}
    return {target: _META.sub(r"\\\g<0>", pattern)}


def _regex(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    return _literal(target, not _is_true(value), converted)


def _output_mode(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    return {target: "lines" if value == "content" else "files"}


def _files_only(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    return {target: "files"} if _is_true(value) else {}


def _join_commands(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Commands, each to be run if the one before succeeded."""
    if not isinstance(value, list) or not all(isinstance(command, str) for command in value):
        return {target: value}
    return {
        target: value[0]
        if len(value) == 1
        else " && ".join(f"{{ {command}\n}}" for command in value)
    }


def _text_lines(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return a text, as a list of its lines too; an object is the content of a JSON file."""
    if isinstance(value, dict) and str(converted.get("path")).lower().endswith(".json"):
        return {target: json.dumps(value, indent=2, ensure_ascii=False) + "\n"}
    if not isinstance(value, list) or not all(isinstance(line, str) for line in value) or not value:
        return {target: value}
    has_ends = all(line.endswith("\n") for line in value[:-1]) and len(value) > 1
    return {target: ("" if has_ends else "\n").join(value)}


def _globs(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Patterns of names, of which any may match."""
    if not isinstance(value, list) or not all(isinstance(glob, str) for glob in value) or not value:
        return {target: value}
    if len(value) > 1 and any(char in glob for glob in value for char in "{},"):
        raise NotConvertibleError(f"it takes one {target}; make a call for each")
    return {target: value[0] if len(value) == 1 else f"{{{','.join(value)}}}"}


def _line_count(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Return a number of lines, 0 or less for all."""
    number = _number(value)
    return {} if number is not None and number <= 0 else {target: value}


def _in_folder(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return a folder to run a command in."""
    command = command_text(converted.get(target))
    if not isinstance(command, str) or not value or value in {".", "./"}:
        return {}
    if not isinstance(value, str):
        raise NotConvertibleError(f"{value!r} is not a folder")
    simple = not re.search(r"[;\n|&]", command)
    return {target: f"cd {shlex.quote(value)} {'&& ' if simple else '|| exit' + chr(10)}{command}"}


def _environment(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Variables for a command."""
    command = command_text(converted.get(target))
    if not value or not isinstance(command, str):
        return {}
    if not isinstance(value, dict) or not all(
        _VARIABLE.fullmatch(name) and isinstance(text, str | int | float)
        for name, text in value.items()
    ):
        raise NotConvertibleError("the environment is not an object of names and texts")
    words = " ".join(f"{name}={shlex.quote(_variable(text))}" for name, text in value.items())
    simple = not re.search(r"[;\n|&]", command)
    return {target: f"export {words}{' && ' if simple else chr(10)}{command}"}


def _variable(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _append_words(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return the words after a command."""
    command = converted.get(target)
    if not value or not isinstance(command, str):
        return {}
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise NotConvertibleError("`args` is not a list of words")
    return {target: f"{command} {shlex.join(value)}"}


def _milliseconds(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    number = _real(value)
    return {target: value if number is None else min(number / 1000, MAX_TIMEOUT)}


def _time_limit(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return a time limit that is in milliseconds if the tool says so or it is large."""
    unit = _TIME.fullmatch(value.strip().lower()) if isinstance(value, str) else None
    if unit is not None:
        return {target: min(float(unit[1]) * _SECONDS[unit[2]], MAX_TIMEOUT)}
    number = _real(value)
    if number == 0 and converted.get("_ms"):  # no limit
        return {}
    min_milliseconds = _MIN_MILLISECONDS if converted.get("_ms") else MAX_TIMEOUT + 1
    if number is not None and min_milliseconds <= number <= MAX_TIMEOUT * 1000:
        return _milliseconds(target, number, converted)
    return {target: value}


def _search_replace(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Blocks of SEARCH and REPLACE."""
    try:
        return {target: [block.edit for block in read_blocks(value)]}
    except ValueError as error:
        raise NotConvertibleError(str(error)) from error


def _alternatives(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Regular expressions of which any may match."""
    is_list = isinstance(value, list) and value and all(isinstance(item, str) for item in value)
    return {target: "|".join(value) if is_list and isinstance(value, list) else value}


def _insert(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return the line after which text is inserted, if no text is replaced."""
    if value is None or converted.get("old"):
        return {}
    return {target: [{"old": "", "new": converted.get("new"), "after_line": value}]}


def _todo_status(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    word = re.sub(r"[\s_-]", "", value).lower() if isinstance(value, str) else ""
    if word in {"cancelled", "canceled"}:
        return {target: "completed", "content": f"{converted.get('content', '')} (cancelled)"}
    return {target: _STATES.get(word, value)}


def _is_done(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    return {target: "completed" if _is_true(value) else "pending"}


def _checklist(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Steps as a Markdown checklist; any mark but a cross is work in progress."""
    if not isinstance(value, str) or value.lstrip().startswith(("[{", "{")):
        return {target: value}
    lines = [line for line in value.splitlines() if line.strip()]
    boxes = [box for line in lines if (box := _BOX.fullmatch(line))]
    if not boxes or len(boxes) < len(lines):
        return {target: value}
    return {
        target: [{"content": box[2], "status": _BOXES.get(box[1], "in_progress")} for box in boxes]
    }


def _fallback(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return a value that is used only if no other field has one."""
    return {} if converted.get(target) else {target: value}


def _url_in_text(target: str, value: object, converted: Mapping[str, object]) -> JsonObject:
    """Return the only URL in a text, if no other field has one."""
    urls = set(_URL.findall(value)) if isinstance(value, str) else set()
    if converted.get(target) or not urls:
        return {}
    if len(urls) > 1:
        raise NotConvertibleError(f"it takes one {target}; make a call for each")
    return {target: urls.pop()}


def _file_type(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Return the name pattern of a ripgrep file type."""
    if not value:
        return {}
    if not isinstance(value, str) or not re.fullmatch(r"\w+", value):
        raise NotConvertibleError(f"{value!r} is no type of files")
    return {target: f"*.{_FILE_TYPES.get(value.lower(), value.lower())}"}


def _operation(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Return the request to a language server: `goToDefinition`, `find_references`."""
    word = re.sub(r"[\s_-]", "", value).lower() if isinstance(value, str) else ""
    names = ("definition", "references", "hover", "symbols", "rename")
    return {target: next((name for name in names if name.rstrip("s") in word), value)}


def _to_text(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    return {} if value is None else {target: str(value)}


def _cell_mode(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    return {target: "replace" if value == "edit" else value}


def _first_question(target: str, value: object, _converted: Mapping[str, object]) -> JsonObject:
    """Questions: our tool takes the first one, and the others in another field."""
    if not isinstance(value, list) or not value or not isinstance(value[0], dict):
        return {target: value}
    first = value[0]
    options = first.get("options", [])
    several = {"several": first["multiSelect"]} if "multiSelect" in first else {}
    question = {"question": first.get("question"), "options": options, **several}
    return {**question, target: value[1:]} if value[1:] else question


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


# By the names that follow a colon in `foreign_calls.toml`. Arguments: our field, the value, and the
# fields that are already converted. The result are fields of ours.
CONVERSIONS: Final[Mapping[str, Conversion]] = {
    "first_line": _first_line, "last_line": _last_line, "line_range": _line_range,
    "single_item": _single_item, "match_count": _match_count, "recursive": _recursive,
    "negated": _negated, "largest": _largest, "output_mode": _output_mode,
    "files_only": _files_only, "join_commands": _join_commands, "in_folder": _in_folder,
    "environment": _environment, "milliseconds": _milliseconds, "time_limit": _time_limit,
    "search_replace": _search_replace, "todo_status": _todo_status, "is_done": _is_done,
    "first_question": _first_question, "insert": _insert, "literal": _literal, "regex": _regex,
    "checklist": _checklist, "fallback": _fallback, "url_in_text": _url_in_text,
    "file_type": _file_type, "operation": _operation, "cell_mode": _cell_mode, "to_text": _to_text,
    "text_lines": _text_lines, "globs": _globs, "alternatives": _alternatives,
    "line_count": _line_count, "append_words": _append_words,
}  # fmt: skip

# Conversions that change the value of another field.
FILTERS: Final = {"largest", "in_folder", "environment", "literal", "regex", "append_words"}
COMPLETE: Final = {"insert", "search_replace"}  # whose items are in our fields already
