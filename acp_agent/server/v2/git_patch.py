"""Changes to text files in Git's patch format, with absolute paths and no prefixes.

Source: git-diff(1), "Generating patch text with -p"; Agent Client Protocol v2, DiffPatchFormat.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from acp_agent.diffs import NO_END, Block, Hunk, changed_blocks, hunks, split_lines

MODE = "100644"  # of files that come or go; whether one is a program is not known here

Operation = Literal["add", "delete", "modify", "move", "copy"]

_ESCAPES = {
    ord("\a"): "\\a",
    ord("\b"): "\\b",
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\v"): "\\v",
    ord("\f"): "\\f",
    ord("\r"): "\\r",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


class FileChange(Struct, frozen=True, kw_only=True):
    """What became of one file. Paths are absolute.

    `old_path` is where a file was that was moved or copied. `old` and `new` are the whole texts;
    None where there is no file on that side, and where it is no text (`binary`).
    """

    operation: Operation
    path: str
    old_path: str | None = None
    old: str | None = None
    new: str | None = None
    binary: bool = False


def git_patch(changes: Sequence[FileChange]) -> str:
    """The sections of all changes that text can show; "" where it can show none."""
    return "".join(_section(change) for change in changes)


def quoted(path: str) -> str:
    """A path as Git writes it: in quotes where it has bytes other than plain ASCII in it."""
    data = path.encode("utf-8", "replace")
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in data):
        return path
    body = "".join(
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in data
    )
    return f'"{body}"'


def _section(change: FileChange) -> str:
    before, after = quoted(change.old_path or change.path), quoted(change.path)
    header = [f"diff --git {before} {after}"]
    old, new = split_lines(change.old or ""), split_lines(change.new or "")
    blocks = [] if change.binary else changed_blocks(old, new)
    match change.operation:
        case "add":
            header.append(f"new file mode {MODE}")
        case "delete":
            header.append(f"deleted file mode {MODE}")
        case "move" | "copy":
            word = "rename" if change.operation == "move" else "copy"
            header.append(f"similarity index {_similarity(old, new, blocks)}%")
            header += [f"{word} from {before}", f"{word} to {after}"]
        case "modify" if not blocks:
            return ""
    if change.binary and (change.operation in {"add", "delete"} or change.old != change.new):
        return ""
    text = "\n".join(header) + "\n"
    if not blocks:
        return text
    text += f"--- {_side(None if change.operation == 'add' else before)}\n"
    text += f"+++ {_side(None if change.operation == 'delete' else after)}\n"
    return text + "".join(map(_written, hunks(old, new, blocks)))


def _side(path: str | None) -> str:
    if path is None:
        return "/dev/null"
    return path + "\t" if " " in path else path  # the tab says where a path with spaces ends


def _similarity(old: Sequence[str], new: Sequence[str], blocks: Sequence[Block]) -> int:
    """How much of the larger text is in both, in per cent; all of it only where they are equal."""
    if not blocks:
        return 100
    taken = sum(len(line) for one in blocks for line in old[one.old_start : one.old_end])
    put = sum(len(line) for one in blocks for line in new[one.new_start : one.new_end])
    size = max(sum(map(len, old)), sum(map(len, new)))
    return min(99, 100 * (size - max(taken, put)) // size)


def _written(hunk: Hunk) -> str:
    lines = (_line(mark, line) for mark, run in hunk.runs for line in run)
    return "".join((hunk.header, *lines))


def _line(mark: str, line: str) -> str:
    if line.endswith("\n"):
        return mark + line
    return f"{mark}{line}\n{NO_END}"
