"""Rewrite calls of another shape: an edit given as a patch, text to append, several files."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from acp_agent.content import JsonObject
from acp_agent.tools.calls.argument_json import read_json
from acp_agent.tools.calls.edit_blocks import has_blocks, read_blocks

_MAX_CALLS = 50  # in one call
_SEPARATORS = re.compile(r"[\s_-]+")
# Fields with the text to write.
_TEXTS = ("content", "text", "newstr", "filetext", "contents", "data", "codecontent")
_DIFFS = ("diff", "patch", "unifieddiff", "content")  # fields that may have an edit as a patch
_APPENDS = {"fsappend", "appendfile", "appendtofile"}
_OLD_TEXTS = {"old", "oldstr", "oldstring", "oldtext", "search", "find"}
_END_OF_FILE: Final = -1
_DIFF_FILE = re.compile(r"^--- (\S.*)\n\+\+\+ (\S.*)\n", re.MULTILINE)
_HUNK = re.compile(r"^@@.*$", re.MULTILINE)
_SIGNED_LINE = re.compile(r"^[+-](?![+-]{2} )", re.MULTILINE)
_FENCED = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_FENCE_OR_HEADER = re.compile(r"^(?:diff --git |index [0-9a-f]{4,}).*\n", re.MULTILINE)


def field_key(name: str) -> str:
    """Return a name for comparison: without case and separators. `-i` and `i` stay different."""
    start = "-" if name.startswith("-") else ""
    return start + _SEPARATORS.sub("", name).lower()


def rewrite_call(name: str, tool: str, values: JsonObject) -> tuple[str, JsonObject]:
    """Return the tool and the arguments of a call to `tool` that belongs to another tool.

    Args:
        name: what the model called, as `field_key` returns it.

    Raises:
        ValueError: what it asks for is not certain; the message is for the model.
    """
    fields = {field_key(field): field for field in values}

    def value_of(key: str) -> object:
        return values.get(fields.get(key, ""))

    def without(*keys: str) -> JsonObject:
        return {field: value for field, value in values.items() if field_key(field) not in keys}

    text = next((key for key in _TEXTS if isinstance(value_of(key), str)), "")
    mode = value_of("mode")
    appends = name in _APPENDS or value_of("command") == "append"
    if tool == "write" and (mode in {"append", "a"} or value_of("append") in {True, "true"}):
        appends = True
    if name == "insertcontent" or appends:
        if not text:
            raise ValueError("the text to insert is missing")
        line = value_of("line") if name == "insertcontent" else 0
        if isinstance(line, bool) or not str(line).isdecimal():
            raise ValueError("the line to insert before is missing")
        after = int(str(line)) - 1  # before line 0 is the end
        remaining = without(text, "line", "mode", "append", "command")
        return "edit", {**remaining, "new": value_of(text), "insert_line": after}
    if tool == "write" and value_of("overwrite") in {False, "false"}:
        # An edit without an old text creates a file, and changes none that has text.
        remaining = without("overwrite", "emptyfile", text)
        return "edit", {**remaining, "old": "", "new": value_of(text) if text else ""}
    if tool == "grep" and name != tool and str(value_of("pattern")).startswith("*"):
        return "glob", values  # no regular expression
    if tool != "edit" or any(value_of(key) for key in _OLD_TEXTS):
        return tool, values
    if mode in {"write", "create", "overwrite"} and isinstance(value_of("content"), str):
        return "write", without("mode")
    for key in _DIFFS:
        diff = value_of(key)
        if isinstance(diff, str) and not has_blocks(diff) and _is_patch(diff):
            path = next((values[field] for field in values if "path" in field_key(field)), "")
            return "apply_patch", {"input": _patch(diff, path if isinstance(path, str) else "")}
    return tool, values


def _is_patch(text: str) -> bool:
    is_diff = bool(_HUNK.search(text)) and bool(_SIGNED_LINE.search(text))
    return "*** Begin Patch" in text or is_diff


def _patch(text: str, path: str) -> str:
    """Return a patch that names the file of a diff."""
    text = text.replace("\r\n", "\n").strip("\n ")
    fenced = _FENCED.fullmatch(text)
    text = fenced[1] if fenced else text
    headers = list(_DIFF_FILE.finditer(text))
    if "*** Begin Patch" in text or len(headers) > 1 or not path:
        return text
    if headers:
        named = {PurePath(name.split("\t")[0]).name for name in headers[0].groups()}
        if "/dev/null" in headers[0].groups():
            return text
        if PurePath(path).name not in named:
            raise ValueError(f"the diff is for another file than {path!r}")
        text = text[headers[0].end() :]
    hunks = _FENCE_OR_HEADER.sub("", text)
    return f"*** Begin Patch\n*** Update File: {path}\n{hunks}\n*** End Patch"


def split_call(
    values: JsonObject, target_of: Callable[[str], str], *, is_edit: bool
) -> list[JsonObject]:
    """Return the arguments of one call for each file that a call names.

    Args:
        target_of: our field for a field of the call.
        is_edit: whether its edits may name files.

    Raises:
        ValueError: it names too many files, or what it asks for is not certain.
    """
    pieces = _split_paths(values, target_of)
    if is_edit:
        pieces = [call for piece in pieces for call in _split_edits(piece, target_of)]
    if len(pieces) > _MAX_CALLS:
        raise ValueError(f"it names {len(pieces)} files; name at most {_MAX_CALLS}")
    return pieces


def _split_paths(values: JsonObject, target_of: Callable[[str], str]) -> list[JsonObject]:
    for field, value in values.items():
        items = _items(value) if target_of(field) == "path" else None
        if items is not None:
            remaining = {key: item for key, item in values.items() if key != field}
            return [
                {**remaining, **(item if isinstance(item, dict) else {field: item})}
                for item in items
            ]
    return [values]


def _items(value: object) -> list[str | JsonObject] | None:
    """Return the paths, or objects with one, in a value that is not one path."""
    if isinstance(value, str) and value.startswith('["') and value.endswith('"]'):
        try:
            value = read_json(value)
        except ValueError:
            return None
    items = [value] if isinstance(value, dict) else value
    if not isinstance(items, list) or not items:
        return None
    return items if all(isinstance(item, str | dict) for item in items) else None


def _split_edits(values: JsonObject, target_of: Callable[[str], str]) -> list[JsonObject]:
    """Return a call for each edit of a list that has its own file, and for each file of a diff."""
    for field, value in values.items():
        if target_of(field) != "edits":
            continue
        remaining = {key: item for key, item in values.items() if key != field}
        if isinstance(value, list) and value and all(_has_path(item, target_of) for item in value):
            # A path of the call itself is for all of them.
            has_outer = _has_path(remaining, target_of)
            return [values] if has_outer else [{**remaining, **item} for item in value]
        if isinstance(value, str) and has_blocks(value):
            return _split_blocks(remaining, value, target_of)
    return [values]


def _has_path(item: object, target_of: Callable[[str], str]) -> bool:
    return isinstance(item, dict) and any(target_of(field) == "path" for field in item)


def _split_blocks(
    values: JsonObject, text: str, target_of: Callable[[str], str]
) -> list[JsonObject]:
    blocks = read_blocks(text)
    given = next((values[field] for field in values if target_of(field) == "path"), None)
    edits_by_path: dict[str, list[JsonObject]] = {}
    for block in blocks:
        path = block.path
        if given is not None:
            if path and isinstance(given, str) and PurePath(path).name != PurePath(given).name:
                raise ValueError(f"the diff names {path!r}, and the call {given!r}")
            path = ""
        edits_by_path.setdefault(path, []).append(block.edit)
    return [
        {**values, **({"path": path} if path else {}), "edits": edits}
        for path, edits in edits_by_path.items()
    ]


def merge_edits(calls: Sequence[Mapping[str, object]]) -> list[JsonObject]:
    """Return the arguments of calls of `edit`, one call for each file."""
    merged: dict[object, list[object]] = {}
    for call in calls:
        remaining = {key: value for key, value in call.items() if key not in {"path", "edits"}}
        edits = call.get("edits", [])
        items = [*([remaining] if remaining else []), *(edits if isinstance(edits, list) else [])]
        merged.setdefault(call.get("path"), []).extend(items)
    return [{"path": path, "edits": edits} for path, edits in merged.items()]
