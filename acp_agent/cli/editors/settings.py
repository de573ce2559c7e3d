"""Add, update and remove our entry in a JSON settings file.

All functions map bytes to bytes, so that a change can be shown first. The result is parsed and
compared with the intended content before it is written.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from pathlib import PurePath

from msgspec import Struct

from acp_agent.cli.editors import jsonc
from acp_agent.cli.editors.jsonc import BOM, Document, Member, Value, parse
from acp_agent.errors import InvalidInputError

Entry = Mapping[str, object]
_LAUNCH = ("argv", "command", "args")


class EntryPlace(Struct, frozen=True):
    """The place of our entry: the member `name` of the object in the member `key`.

    Attributes:
        key: a key of the outermost object, such as `agent_servers`.
        step: the indentation in the editor's own files.
    """

    key: str
    name: str
    step: str = "  "


def add_entry(data: bytes, entry_place: EntryPlace, entry: Entry) -> bytes:
    """Return the file with our entry; the same bytes if it already has it.

    An existing entry keeps the user's variables, arguments and unknown fields. Its command becomes
    ours, and so do the arguments if they were those of another program.

    Args:
        data: the file; empty if it does not exist.

    Raises:
        InvalidInputError: the file cannot be changed safely; the message says why.
    """
    mark, text = _split_mark(data)
    document = parse(text)
    style = jsonc.detect_style(document, step=entry_place.step)
    if document.root is None:
        before = text if not text.strip() else text.rstrip() + style.line_break
        after = before.lstrip() + jsonc.new_file(entry_place.key, {entry_place.name: entry}, style)
        return mark + _check_result(after, {entry_place.key: {entry_place.name: dict(entry)}})
    root = _require_object(document.root, "the file")
    container = _find_member(root, entry_place.key)
    expected = _content(document)
    if container is None:
        edits = jsonc.insert(document, root, entry_place.key, {entry_place.name: entry}, style)
        expected[entry_place.key] = {entry_place.name: dict(entry)}
    else:
        agents = _require_object(container.value, f'"{entry_place.key}"')
        current = _find_member(agents, entry_place.name)
        entries = _inner(expected, entry_place.key)
        if current is None:
            edits = jsonc.insert(document, agents, entry_place.name, entry, style)
            entries[entry_place.name] = dict(entry)
        else:
            present = _inner(
                entries, entry_place.name, f'"{entry_place.name}" in "{entry_place.key}"'
            )
            updated = _update_entry(present, entry)
            edits = _changes(document, current.value, present, updated, style)
            entries[entry_place.name] = updated
    return mark + _check_result(jsonc.apply(text, edits), expected)


def remove_entry(data: bytes, entry_place: EntryPlace) -> bytes:
    """Return the file without our entry, and without its object if that becomes empty.

    Raises:
        InvalidInputError: the file cannot be changed safely; the message says why.
    """
    mark, text = _split_mark(data)
    document = parse(text)
    if document.root is None:
        return data
    root = _require_object(document.root, "the file")
    container = _find_member(root, entry_place.key)
    if container is None:
        return data
    agents = _require_object(container.value, f'"{entry_place.key}"')
    current = _find_member(agents, entry_place.name)
    if current is None:
        return data
    expected = _content(document)
    if not jsonc.is_only_content(document, agents, current):
        edits = jsonc.remove(document, agents, current)
        _inner(expected, entry_place.key).pop(entry_place.name)
    else:
        expected.pop(entry_place.key)
        if jsonc.is_only_content(document, root, container):
            edits = [jsonc.Edit(root.start + 1, root.end - 1, b"")]
        else:
            edits = jsonc.remove(document, root, container)
    return mark + _check_result(jsonc.apply(text, edits), expected)


def find_entry(data: bytes, entry_place: EntryPlace) -> Entry:
    """Return our entry in a file; empty if there is none. Raises InvalidInputError."""
    content = parse(_split_mark(data)[1]).content
    for key in (entry_place.key, entry_place.name):
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


def lines_to_add(entry_place: EntryPlace, entry: Entry) -> str:
    """Return the text to add by hand."""
    return json.dumps(
        {entry_place.key: {entry_place.name: entry}}, indent=entry_place.step, ensure_ascii=False
    )


def _update_entry(present: Mapping[str, object], entry: Entry) -> dict[str, object]:
    """Return an existing entry with our command."""
    if "argv" in entry or "command" not in present:  # it is launched in another way
        further_fields = {name: value for name, value in present.items() if name not in _LAUNCH}
        unchanged = all(present.get(name) == entry.get(name) for name in _LAUNCH)
        return dict(present) if unchanged else {**entry, **further_fields}
    updated = dict(present) | {"command": entry["command"]}
    before = present["command"]
    same_program = (
        isinstance(before, str) and PurePath(before).name == PurePath(_command(entry)).name
    )
    if not same_program and present.get("args", []) != entry["args"]:
        updated["args"] = entry["args"]
    return updated


def _command(entry: Entry) -> str:
    command = entry["command"]
    assert isinstance(command, str)
    return command


def _changes(
    document: Document,
    current: Value,
    present: Mapping[str, object],
    updated: Mapping[str, object],
    style: jsonc.Style,
) -> list[jsonc.Edit]:
    """Return the edits that turn an existing entry into the wanted one."""
    if present == updated:
        return []
    members = {name: _find_member(current, name) for name in updated}
    changed = [
        (member, updated[name])
        for name, member in members.items()
        if member is not None and present[name] != updated[name]
    ]
    if set(present) - set(updated) or any(member is None for member in members.values()):
        return jsonc.replace(document, current, updated, style)
    return [
        edit
        for member, value in changed
        for edit in jsonc.replace(document, member.value, value, style)
    ]


def _split_mark(data: bytes) -> tuple[bytes, bytes]:
    return (BOM, data[len(BOM) :]) if data.startswith(BOM) else (b"", data)


def _require_object(value: Value, description: str) -> Value:
    if not value.is_object:
        raise InvalidInputError(
            f"{description} is not an object ({{…}}), so nothing can be put into it"
        )
    return value


def _find_member(container: Value, key: str) -> Member | None:
    matches = [member for member in container.members() if member.key == key]
    if len(matches) > 1:
        raise InvalidInputError(f'"{key}" occurs twice, and editors differ in which one counts')
    return matches[0] if matches else None


def _content(document: Document) -> dict[str, object]:
    try:
        content = copy.deepcopy(document.content)
    except RecursionError:
        raise InvalidInputError("it is nested too deeply") from None
    assert isinstance(content, dict)
    return content


def _inner(content: Mapping[str, object], key: str, description: str = "") -> dict[str, object]:
    inner = content[key]
    if not isinstance(inner, dict):
        raise InvalidInputError(f"{description or key} is not an object ({{…}})")
    return inner


def _check_result(after: bytes, expected: object) -> bytes:
    """Return `after` if it has the intended content."""
    if parse(after).content != expected:
        raise InvalidInputError("it is written in a way that cannot be changed safely")
    return after
