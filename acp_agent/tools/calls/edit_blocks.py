"""Read SEARCH/REPLACE blocks, a format of edits that many models were trained on.

Sources: the formats of Aider, Cline, Roo and Mistral Vibe. A file name above a block
applies until the next file name.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from msgspec import Struct, structs

from acp_agent.content import JsonObject

_START = re.compile(r"(?:<{3,9}|-{3,9}) ?(?:SEARCH|ORIGINAL)>?.*")
_END = re.compile(r"(?:>{3,9}|\+{3,9}) ?(?:REPLACE|UPDATED).*")
_DIVIDERS = (re.compile(r"={7}\s*"), re.compile(r"={5,9}\s*"), re.compile(r"={3,4}\s*"))
_LINE_NUMBER = re.compile(r":(start|end)_line: ?(\d*)\s*")
_RULE = re.compile(r"-{5,9}\s*")  # below the line numbers
_FENCE = re.compile(r"\s*`{3,}[\w.+-]*\s*")
_NAME = re.compile(r"[#*`\s]*(?:[Ff]ile(?:name)?:\s*)?[*`\s]*([^\s`*]*[\w/)\]])[*`:\s]*")


class EditBlock(Struct, frozen=True, kw_only=True):
    """A text to replace and its replacement, with the file and the line if they are named."""

    old: str
    new: str
    path: str = ""
    line: int | None = None

    @property
    def edit(self) -> JsonObject:
        """The block as an item of the list that `edit` takes."""
        line = {} if self.line is None else {"near_line": self.line}
        return {"old": self.old, "new": self.new, **line}


def has_blocks(text: str) -> bool:
    """Return whether a line of the text begins a block."""
    return any(_START.fullmatch(line) for line in text.splitlines())


def read_blocks(value: object) -> list[EditBlock]:
    """Return the blocks of a text, of an object with it as `content`, or of a list of these.

    Raises:
        ValueError: there is other text; the message is for the model.
    """
    match value:
        case str():
            blocks = list(_read_text(value.replace("\r\n", "\n").split("\n")))
        case list():
            blocks = [block for item in value for block in read_blocks(item)]
        case {"content": str() as text, **fields}:
            line = fields.get("start_line", fields.get("startLine"))
            number = int(line) if isinstance(line, int | str) and str(line).isdecimal() else None
            blocks = [
                structs.replace(block, line=number if block.line is None else block.line)
                for block in read_blocks(text)
            ]
        case _:
            blocks = []
    if not blocks:
        raise ValueError("the diff is not made of blocks of SEARCH and REPLACE")
    return blocks


def _read_text(lines: Sequence[str]) -> Iterator[EditBlock]:
    path, is_named = "", False
    start: int | None = None
    for number, line in enumerate(lines):
        if start is not None:
            if _END.fullmatch(line):
                yield _block(lines[start:number], path)
                start, is_named = None, False
            elif _START.fullmatch(line):
                raise ValueError("a block of the diff has no line >>>>>>> REPLACE")
        elif _START.fullmatch(line):
            start = number + 1
        elif line.strip() and not _FENCE.fullmatch(line):
            name = _NAME.fullmatch(line)
            if name is None or is_named:
                raise ValueError("the diff is not made of blocks of SEARCH and REPLACE")
            path, is_named = name[1], True
    if start is not None:
        raise ValueError("the last block of the diff has no line >>>>>>> REPLACE")
    if is_named:
        raise ValueError("the diff is not made of blocks of SEARCH and REPLACE")


def _block(lines: Sequence[str], path: str) -> EditBlock:
    line_number = None
    index = 0
    while index < len(lines) and (header := _LINE_NUMBER.fullmatch(lines[index])):
        if header[1] == "start" and header[2]:
            line_number = int(header[2])
        index += 1
    if index < len(lines) and _RULE.fullmatch(lines[index]):
        index += 1
    lines = lines[index:]
    for divider in _DIVIDERS:
        dividers = [number for number, line in enumerate(lines) if divider.fullmatch(line)]
        if len(dividers) > 1:
            raise ValueError(
                "a block of the diff has several lines of =, so its parts are not certain; "
                "put a backslash before those of the text"
            )
        if dividers:
            old, new = lines[: dividers[0]], lines[dividers[0] + 1 :]
            return EditBlock(old=_joined(old), new=_joined(new), path=path, line=line_number)
    raise ValueError("a block of the diff has no line =======")


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
