"""Patches of several files, in codex's form between `*** Begin Patch` and `*** End Patch`.

Source: the instructions of the tool `apply_patch`, which models of several makers were trained
with. A unified diff, as `diff -u` and git print it, is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import partial

import msgspec
from msgspec import Struct

from acp_agent.errors import ToolError
from acp_agent.tools.editing.folding import fold
from acp_agent.tools.editing.replace import Edit, Edited, apply_edits, apply_to_either
from acp_agent.workspace.file_io import TextFile

FILE_LINE = re.compile(r"^\*\*\* (Update|Add|Delete) File: *(.+?)\s*$", re.MULTILINE)
_BEGIN, _END = "*** Begin Patch", "*** End Patch"
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_RANGE = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)? @@ ?")
_DIFF = re.compile(r"^--- (?:a/)?(\S.*?)(?:\t.*)?\n\+\+\+ (?:b/)?(\S.*?)(?:\t.*)?\n", re.MULTILINE)


class Hunk(Struct, frozen=True):
    """Lines that replace others, below the lines that are named in `after`."""

    after: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]


class FilePatch(Struct, frozen=True):
    """The changes of one file; `content` is that of a new one, None if there is one."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    content: str | None = None


def parse_patch(text: str) -> list[FilePatch]:
    """Return what a patch changes.

    Raises:
        ToolError: it is no patch, has no end, or needs what this tool does not do.
    """
    bare = text.replace("\r\n", "\n").strip("\n ")
    fenced = _FENCE.fullmatch(bare)
    bare = fenced[1].strip("\n ") if fenced else bare
    files = list(_unified(bare) if _DIFF.search(bare) and _BEGIN not in bare else _patched(bare))
    if not files:
        raise ToolError("the patch changes no file", advice="name one: *** Update File: a.py")
    paths = [file.path for file in files]
    if len(set(paths)) != len(paths):
        raise ToolError("the patch names a file twice", advice="put all hunks of a file together")
    return files


def apply_hunks(file: TextFile, hunks: Sequence[Hunk], shown: str) -> Edited:
    """Return a file's text after its hunks, each applied in the result of the one before.

    One that has no place there is made in the text before all, unless they change the same lines.

    Raises:
        ToolError: a hunk has no place in the file, or more than one.
    """
    done: list[Edited] = []
    original = file
    for number, hunk in enumerate(hunks, 1):
        try:
            make = partial(_apply, hunk=hunk, shown=shown)
            done.append(apply_to_either(file, original, make))
        except ToolError as error:
            which = f"{shown}, hunk {number}" if len(hunks) > 1 else shown
            raise ToolError(f"{which}: {error.shown}", advice=error.advice) from error
        file = msgspec.structs.replace(file, text=done[-1].text)
    return Edited(
        text=file.text,
        line=done[0].line,
        places=tuple(place for one in done for place in one.places),
        notes=tuple(dict.fromkeys(note for one in done for note in one.notes)),
    )


def _apply(file: TextFile, hunk: Hunk, shown: str) -> Edited:
    if not hunk.old:
        raise ToolError("a hunk only adds lines", advice="give a line before or after them as well")
    edit = Edit(_joined(hunk.old), _joined(hunk.new))
    start = _line_after(file.text, hunk.after)
    head, tail = file.text[:start], file.text[start:]
    try:
        edited = apply_edits(msgspec.structs.replace(file, text=tail), (edit,), shown)
    except ToolError:
        if start:
            apply_edits(file, (edit,), shown)  # its error has the numbers of the whole file
        raise
    first = edited.places[0][0].split("\n", 1)[0]
    if fold(first).strip() != fold(hunk.old[0]).strip():
        raise ToolError(f"there is no line {hunk.old[0].strip()[:80]!r}", advice="give whole lines")
    line = head.count("\n") + edited.line
    return msgspec.structs.replace(edited, text=head + edited.text, line=line)


def _line_after(text: str, after: Sequence[str]) -> int:
    """Return where the lines begin that follow the named ones.

    Raises:
        ToolError: one of those is not there.
    """
    at = 0
    for name in after:
        wanted = name.strip()
        for line in text[at:].splitlines(keepends=True):
            at += len(line)
            if line.strip() == wanted:
                break
        else:
            raise ToolError(f"the line after @@ is not there: {wanted[:80]}")
    return at


def _joined(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _patched(text: str) -> Iterator[FilePatch]:
    if not text.startswith(_BEGIN):
        raise ToolError(f"the patch does not begin with {_BEGIN}", advice="give a whole patch")
    if not text.endswith(_END):
        raise ToolError(
            f"the patch does not end with {_END}, so it may have been cut off",
            advice="write it again, in smaller pieces",
        )
    body = text.removeprefix(_BEGIN).removesuffix(_END).strip("\n")
    starts = list(FILE_LINE.finditer(body))
    if body and (not starts or body[: starts[0].start()].strip()):
        raise ToolError("the patch does not say which file it changes", advice=_FORM)
    for at, start in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(body)
        lines = body[start.end() : end].strip("\n").split("\n")
        match start[1]:
            case "Add":
                content = [line[1:] for line in lines if line.startswith("+")]
                yield FilePatch(start[2], content=_joined(content))
            case "Delete":
                raise ToolError("this tool deletes no files", advice=f"use `shell`: rm {start[2]}")
            case _:
                if lines[0].startswith("*** Move to:"):
                    raise ToolError(
                        "this tool renames no files",
                        advice=f"use `shell` for that: mv {start[2]} {lines[0][12:].strip()}",
                    )
                yield FilePatch(start[2], tuple(_hunks(lines)))


_FORM = "begin each file with *** Update File: path or *** Add File: path"


def _unified(text: str) -> Iterator[FilePatch]:
    starts = list(_DIFF.finditer(text))
    for at, start in enumerate(starts):
        end = starts[at + 1].start() if at + 1 < len(starts) else len(text)
        lines = [
            line
            for line in text[start.end() : end].strip("\n").split("\n")
            if not line.startswith(("diff --git ", "index ", "\\ No newline"))
        ]
        if start[2] == "/dev/null":
            raise ToolError("this tool deletes no files", advice=f"use `shell`: rm {start[1]}")
        hunks = tuple(_hunks(lines))
        if start[1] == "/dev/null":
            yield FilePatch(start[2], content=_joined([line for one in hunks for line in one.new]))
        else:
            yield FilePatch(start[2], hunks)


def _hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    after: list[str] = []
    old: list[str] = []
    new: list[str] = []
    for line in (*lines, "@@"):
        if line.startswith("@@"):
            if old or new:
                yield Hunk(tuple(after), tuple(old), tuple(new))
                after, old, new = [], [], []
            named = line[2:].strip()
            if named and not _RANGE.match(named):
                after.append(named)
        elif line == "*** End of File":
            continue
        elif line.startswith("+"):
            new.append(line[1:])
        elif line.startswith("-"):
            old.append(line[1:])
        else:  # context, which some write without the space before it
            old.append(line.removeprefix(" "))
            new.append(line.removeprefix(" "))
