"""Changes to text files as version 2 shows them, with Git's patch format.

Paths are absolute and have no prefixes.

Source: git-diff(1), "Generating patch text with -p"; Agent Client Protocol v2, Diff,
DiffPatchFormat.
"""

from __future__ import annotations

from acp_agent.content import DiffPart
from acp_agent.diffs import NO_END, Hunk, changed_blocks, hunks, split_lines
from protocol.v2 import types as acp

FILE_MODE = "100644"  # of an added file; whether it is executable is not known here

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


def to_diff(part: DiffPart) -> acp.Diff:
    """Return a text file that a call adds or modifies, with a patch if the text changes."""
    added = part.old_text is None
    change = acp.DiffAddChange if added else acp.DiffModifyChange
    patch = git_patch(part.path, part.old_text, part.new_text)
    return acp.Diff(
        changes=[change(path=part.path, file_type="text")],
        patch=acp.DiffPatch(format="git_patch", text=patch) if patch else None,
    )


def git_patch(path: str, old: str | None, new: str) -> str:
    """Return the patch of one file; "" if the text does not change.

    Args:
        old: the text before; None if the file is added.
    """
    name = quote_path(path)
    before, after = split_lines(old or ""), split_lines(new)
    blocks = changed_blocks(before, after)
    if old is not None and not blocks:
        return ""
    patch = f"diff --git {name} {name}\n"
    if old is None:
        patch += f"new file mode {FILE_MODE}\n"
    if blocks:
        side = f"{name}\t" if " " in name else name  # the tab ends a path with spaces
        patch += f"--- {'/dev/null' if old is None else side}\n+++ {side}\n"
        patch += "".join(map(_hunk, hunks(before, after, blocks)))
    return patch


def quote_path(path: str) -> str:
    """Return a path as Git writes it: quoted unless it is printable ASCII."""
    data = path.encode("utf-8", "replace")
    if all(0x20 <= byte < 0x7F and byte not in _ESCAPES for byte in data):
        return path
    body = "".join(
        _ESCAPES.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}")
        for byte in data
    )
    return f'"{body}"'


def _hunk(hunk: Hunk) -> str:
    lines = (_line(mark, line) for mark, run in hunk.runs for line in run)
    return "".join((hunk.header, *lines))


def _line(mark: str, line: str) -> str:
    if line.endswith("\n"):
        return mark + line
    return f"{mark}{line}\n{NO_END}"
