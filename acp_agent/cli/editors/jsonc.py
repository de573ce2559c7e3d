"""JSON with comments, as editors read it, with the positions of object members.

Editors accept three additions to JSON (RFC 8259): `//` and `/* */` comments, a trailing comma,
and an empty file. They are replaced by blanks of the same length; the rest must be valid JSON.
So every position is one in the user's file.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from msgspec import Struct
from tree_sitter import Language, Node, Parser

from acp_agent.config.json_files import decode_json, remove_comments, remove_trailing_commas

BOM = b"\xef\xbb\xbf"
_NOT_SPACE = re.compile(rb"\S")
_COMMENT = re.compile(rb"[ \t]*(?://[^\r\n]*|/\*[\s\S]*?\*/)")
_BLANKS = re.compile(rb"[ \t]*")
_BLANKS_AND_BREAK = re.compile(rb"[ \t]*\r?\n")


class Member(Struct, frozen=True):
    """A member of an object: its name, its position, and its value.

    Positions are offsets in `Document.text`, with an exclusive end.
    """

    key: str
    start: int
    end: int
    value: Value


class Value(Struct, frozen=True):
    """A value and its position."""

    start: int
    end: int
    node: Node

    @property
    def is_object(self) -> bool:
        """Return whether it is an object."""
        return self.node.type == "object"

    def members(self) -> list[Member]:
        """Return the members of an object in order; none for other values."""
        return list(_members(self.node)) if self.is_object else []


class Document(Struct, frozen=True):
    """A settings file.

    Attributes:
        text: its bytes, without a byte order mark.
        bare: the same without comments, at the same positions; trailing commas are included.
        root: the outermost value; None if the file has only comments and white space.
        content: the value as a Python object; None if there is no root.
    """

    text: bytes
    bare: bytes
    root: Value | None
    content: object


def parse(text: bytes) -> Document:
    """Parse settings.

    Args:
        text: the file's bytes, without a byte order mark.

    Raises:
        InvalidInputError: it is not JSON with comments; the message says where.
    """
    bare = remove_comments(text)
    if not bare.strip():
        return Document(text, bare, None, None)
    plain = remove_trailing_commas(bare)
    content = decode_json(plain)
    return Document(text, bare, _value(_tree(plain)), content)


def _tree(plain: bytes) -> Node:
    import tree_sitter_json  # noqa: PLC0415 - its one use

    root = Parser(Language(tree_sitter_json.language())).parse(plain).root_node
    assert not root.has_error, "the standard library read it"
    (value,) = root.named_children
    return value


def _value(node: Node) -> Value:
    return Value(node.start_byte, node.end_byte, node)


def _members(node: Node) -> Iterator[Member]:
    for pair in node.named_children:
        key, value = pair.child_by_field_name("key"), pair.child_by_field_name("value")
        assert key is not None
        assert key.text is not None
        assert value is not None
        yield Member(json.loads(key.text), pair.start_byte, pair.end_byte, _value(value))


def find_comma(document: Document, position: int, limit: int) -> int | None:
    """Return the position of the comma after `position`, with only comments between.

    Returns None if something else comes first, or nothing before `limit`.
    """
    match = _NOT_SPACE.search(document.bare, position, limit)
    if match is None or match[0] != b",":
        return None
    return match.start()


class Edit(Struct, frozen=True):
    """Replaces the bytes from `start` to `end` by `text`."""

    start: int
    end: int
    text: bytes


class Style(Struct, frozen=True):
    """The style of a file: its line break, and one step of indentation."""

    line_break: bytes
    step: bytes


def apply(text: bytes, edits: Sequence[Edit]) -> bytes:
    """Return `text` with every edit applied. Edits must not overlap."""
    for edit in sorted(edits, key=lambda edit: edit.start, reverse=True):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def detect_style(document: Document, *, step: str) -> Style:
    """Return the style of a file; `step` is the default for one without indentation."""
    crlf = document.text.count(b"\r\n")
    line_break = b"\r\n" if crlf * 2 > document.text.count(b"\n") else b"\n"
    for member in document.root.members() if document.root is not None else ():
        indent = _indent(document.text, member.start)
        if indent and _begins_line(document.text, member.start):
            return Style(line_break, indent)
    return Style(line_break, step.encode())


def new_file(key: str, value: object, style: Style) -> bytes:
    """Return a file with one member and a final line break."""
    lines = (b"{", style.step + _format_member(key, value, style, style.step), b"}", b"")
    return style.line_break.join(lines)


def insert(
    document: Document, container: Value, key: str, value: object, style: Style
) -> list[Edit]:
    """Return the edits that append a member to an object."""
    members = container.members()
    if not members:
        return [_insert_into_empty(document, container, key, value, style)]
    last, close = members[-1], container.end - 1
    comma = find_comma(document, last.end, close)
    end = last.end if comma is None else comma + 1
    if b"\n" not in document.text[container.start : container.end]:
        member = json.dumps({key: value}, ensure_ascii=False)[1:-1].encode()
        if comma is None:
            return [Edit(end, end, b", " + member)]
        return [Edit(end, end, b" " + member + b",")]
    indent = _members_indent(document, container, members, style)
    while (comment := _COMMENT.match(document.text, end, close)) is not None:
        end = comment.end()
    member = _format_member(key, value, style, indent)
    text = style.line_break + indent + member + (b"" if comma is None else b",")
    if b"\n" not in document.text[end:close]:
        text += style.line_break + _indent(document.text, container.start)
    if comma is not None:
        return [Edit(end, end, text)]
    if end == last.end:
        return [Edit(end, end, b"," + text)]
    return [Edit(last.end, last.end, b","), Edit(end, end, text)]


def replace(document: Document, value: Value, new: object, style: Style) -> list[Edit]:
    """Return the edit that replaces a value."""
    indent = _indent(document.text, value.start)
    text = json.dumps(new, indent=style.step.decode(), ensure_ascii=False)
    return [Edit(value.start, value.end, _indent_lines(text, style, indent))]


def remove(document: Document, container: Value, member: Member) -> list[Edit]:
    """Return the edits that remove a member from its object, with the lines left empty."""
    members = container.members()
    at = next(index for index, candidate in enumerate(members) if candidate.start == member.start)
    next_start = members[at + 1].start if at + 1 < len(members) else container.end - 1
    comma = find_comma(document, member.end, next_start)
    start, end = member.start, member.end if comma is None else comma + 1
    if comma is not None or at == 0:
        return [_remove_line(document.text, start, end)]
    # The last member without a trailing comma: also remove the comma before it.
    before = find_comma(document, members[at - 1].end, member.start)
    assert before is not None
    if not document.text[before + 1 : start].strip(b" \t"):
        return [Edit(before, end, b"")]
    return [Edit(before, before + 1, b""), _remove_line(document.text, start, end)]


def is_only_content(document: Document, container: Value, member: Member) -> bool:
    """Return whether this member is the only content of an object, including comments."""
    comma = find_comma(document, member.end, container.end - 1)
    end = member.end if comma is None else comma + 1
    inside = (
        document.text[container.start + 1 : member.start] + document.text[end : container.end - 1]
    )
    return not inside.strip()


def _remove_line(text: bytes, start: int, end: int) -> Edit:
    """Return the edit that removes a part: whole lines if nothing else is on them."""
    line = text.rfind(b"\n", 0, start) + 1
    line_end = _BLANKS_AND_BREAK.match(text, end)
    if _begins_line(text, start) and line_end is not None:
        return Edit(line, line_end.end(), b"")
    while text[end : end + 1] in (b" ", b"\t"):
        end += 1
    while text[end : end + 1] == b"}" and text[start - 1 : start] in (b" ", b"\t"):
        start -= 1
    return Edit(start, end, b"")


def _insert_into_empty(
    document: Document, container: Value, key: str, value: object, style: Style
) -> Edit:
    close = container.end - 1
    base = _indent(document.text, container.start)
    indent = base + style.step
    end = max(container.start + 1, len(document.text[:close].rstrip()))
    member = _format_member(key, value, style, indent)
    return Edit(end, close, style.line_break + indent + member + style.line_break + base)


def _members_indent(
    document: Document, container: Value, members: Sequence[Member], style: Style
) -> bytes:
    for member in reversed(members):
        if _begins_line(document.text, member.start):
            return _indent(document.text, member.start)
    return _indent(document.text, container.start) + style.step


def _format_member(key: str, value: object, style: Style, indent: bytes) -> bytes:
    """Return a member on several lines; all but the first are indented by `indent`."""
    text = json.dumps(value, indent=style.step.decode(), ensure_ascii=False)
    name = json.dumps(key, ensure_ascii=False)
    return name.encode() + b": " + _indent_lines(text, style, indent)


def _indent_lines(text: str, style: Style, indent: bytes) -> bytes:
    return text.encode().replace(b"\n", style.line_break + indent)


def _indent(text: bytes, position: int) -> bytes:
    """Return the leading blanks of the line at `position`."""
    line = text.rfind(b"\n", 0, position) + 1
    match = _BLANKS.match(text, line, position)
    return b"" if match is None else match[0]


def _begins_line(text: bytes, position: int) -> bool:
    line = text.rfind(b"\n", 0, position) + 1
    return not text[line:position].strip(b" \t")
