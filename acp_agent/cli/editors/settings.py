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


class Place(Struct, frozen=True):
    """The place of our entry: the member `name` of the object in the member `key`.

    Attributes:
        key: a key of the outermost object, such as `agent_servers`.
        name: the name of our entry.
        step: the indentation in the editor's own files.
    """

    key: str
    name: str
    step: str = "  "


def with_entry(data: bytes, place: Place, entry: Entry) -> bytes:
    """Return the file with our entry; the same bytes if it already has it.

    An existing entry keeps the user's variables, arguments and unknown fields. Its command becomes
    ours, and so do the arguments if they were those of another program.

    Args:
        data: the file; empty if it does not exist.
        place: the place of the entry.
        entry: the entry.

    Raises:
        InvalidInputError: the file cannot be changed safely; the message says why.
    """
    mark, text = _without_mark(data)
    document = parse(text)
    style = jsonc.style_of(document, step=place.step)
    if document.root is None:
        before = text if not text.strip() else text.rstrip() + style.line_break
        after = before.lstrip() + jsonc.new_file(place.key, {place.name: entry}, style)
        return mark + _checked(after, {place.key: {place.name: dict(entry)}})
    root = _object(document.root, "the file")
    container = _only(root, place.key)
    meant = _content(document)
    if container is None:
        edits = jsonc.insert(document, root, place.key, {place.name: entry}, style)
        meant[place.key] = {place.name: dict(entry)}
    else:
        agents = _object(container.value, f'"{place.key}"')
        ours = _only(agents, place.name)
        listed = _inner(meant, place.key)
        if ours is None:
            edits = jsonc.insert(document, agents, place.name, entry, style)
            listed[place.name] = dict(entry)
        else:
            present = _inner(listed, place.name, f'"{place.name}" in "{place.key}"')
            wanted = _brought_up_to_date(present, entry)
            edits = _changes(document, ours.value, present, wanted, style)
            listed[place.name] = wanted
    return mark + _checked(jsonc.apply(text, edits), meant)


def without_entry(data: bytes, place: Place) -> bytes:
    """Return the file without our entry, and without its object if that becomes empty.

    Raises:
        InvalidInputError: the file cannot be changed safely; the message says why.
    """
    mark, text = _without_mark(data)
    document = parse(text)
    if document.root is None:
        return data
    root = _object(document.root, "the file")
    container = _only(root, place.key)
    if container is None:
        return data
    agents = _object(container.value, f'"{place.key}"')
    ours = _only(agents, place.name)
    if ours is None:
        return data
    meant = _content(document)
    if not jsonc.is_alone(document, agents, ours):
        edits = jsonc.remove(document, agents, ours)
        _inner(meant, place.key).pop(place.name)
    else:
        meant.pop(place.key)
        if jsonc.is_alone(document, root, container):
            edits = [jsonc.Edit(root.start + 1, root.end - 1, b"")]
        else:
            edits = jsonc.remove(document, root, container)
    return mark + _checked(jsonc.apply(text, edits), meant)


def entry_in(data: bytes, place: Place) -> Entry:
    """Return our entry in a file; empty if there is none.

    Raises:
        InvalidInputError: the file cannot be read.
    """
    content = parse(_without_mark(data)[1]).content
    for key in (place.key, place.name):
        content = content.get(key) if isinstance(content, dict) else None
    return content if isinstance(content, dict) else {}


def lines_to_add(place: Place, entry: Entry) -> str:
    """Return the text to add by hand."""
    return json.dumps({place.key: {place.name: entry}}, indent=place.step, ensure_ascii=False)


def _brought_up_to_date(present: Mapping[str, object], entry: Entry) -> dict[str, object]:
    """Return an existing entry with our command."""
    if "argv" in entry or "command" not in present:  # it is launched in another way
        others = {name: value for name, value in present.items() if name not in _LAUNCH}
        same = all(present.get(name) == entry.get(name) for name in _LAUNCH)
        return dict(present) if same else {**entry, **others}
    wanted = dict(present) | {"command": entry["command"]}
    before = present["command"]
    ours = isinstance(before, str) and PurePath(before).name == PurePath(_command(entry)).name
    if not ours and present.get("args", []) != entry["args"]:
        wanted["args"] = entry["args"]
    return wanted


def _command(entry: Entry) -> str:
    command = entry["command"]
    assert isinstance(command, str)
    return command


def _changes(
    document: Document,
    ours: Value,
    present: Mapping[str, object],
    wanted: Mapping[str, object],
    style: jsonc.Style,
) -> list[jsonc.Edit]:
    """Return the edits that turn an existing entry into the wanted one."""
    if present == wanted:
        return []
    members = {name: _only(ours, name) for name in wanted}
    changed = [
        (member, wanted[name])
        for name, member in members.items()
        if member is not None and present[name] != wanted[name]
    ]
    if set(present) - set(wanted) or any(member is None for member in members.values()):
        return jsonc.replace(document, ours, wanted, style)
    return [
        edit
        for member, value in changed
        for edit in jsonc.replace(document, member.value, value, style)
    ]


def _without_mark(data: bytes) -> tuple[bytes, bytes]:
    return (BOM, data[len(BOM) :]) if data.startswith(BOM) else (b"", data)


def _object(value: Value, what: str) -> Value:
    if not value.is_object:
        raise InvalidInputError(f"{what} is not an object ({{…}}), so nothing can be put into it")
    return value


def _only(container: Value, key: str) -> Member | None:
    found = [member for member in container.members() if member.key == key]
    if len(found) > 1:
        raise InvalidInputError(f'"{key}" occurs twice, and editors differ in which one counts')
    return found[0] if found else None


def _content(document: Document) -> dict[str, object]:
    try:
        content = copy.deepcopy(document.content)
    except RecursionError:
        raise InvalidInputError("it is nested too deeply") from None
    assert isinstance(content, dict)
    return content


def _inner(content: Mapping[str, object], key: str, what: str = "") -> dict[str, object]:
    inner = content[key]
    if not isinstance(inner, dict):
        raise InvalidInputError(f"{what or key} is not an object ({{…}})")
    return inner


def _checked(after: bytes, meant: object) -> bytes:
    """Return `after` if it has the intended content."""
    if parse(after).content != meant:
        raise InvalidInputError("it is written in a way that cannot be changed safely")
    return after
