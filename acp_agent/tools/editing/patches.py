"""Patches of several files, in codex's form between `*** Begin Patch` and `*** End Patch`.

Source: the instructions of the tool `apply_patch`, which models of several makers were trained
with. A unified diff, as `diff -u` and git print it, is read as well.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import islice, takewhile

import msgspec
from msgspec import Struct

from acp_agent.errors import ToolError
from acp_agent.tools.editing.folding import fold
from acp_agent.tools.editing.replace import (
    END_OF_FILE,
    Edit,
    EditResult,
    apply_edits,
    apply_to_current_or_original,
)
from acp_agent.workspace.file_io import TextFile, with_lf

FILE_LINE = re.compile(r"^\*\*\* (Update|Add|Delete) File: *(.+?)\s*$", re.MULTILINE)
_BEGIN_MARKER, _END_MARKER = "*** Begin Patch", "*** End Patch"
_MOVE_MARKER = "*** Move to:"
_END_OF_FILE = "*** End of File"
_HEREDOC = re.compile(r"(?:apply_patch\s*)?<<-?\s*(['\"]?)(\w+)\1\n(.*)\n\2", re.DOTALL)
_FENCE = re.compile(r"```\w*\n(.*?)\n?```", re.DOTALL)
_BARE_PATCH = re.compile(
    rf"^{re.escape(_BEGIN_MARKER)}$.*?^{re.escape(_END_MARKER)}$", re.DOTALL | re.MULTILINE
)
_RANGE = re.compile(r"-\d+(?:,\d+)? \+\d+(?:,\d+)?(?: @@|$)")
_MAX_BREAKS = 50  # in a hunk that is split
_LINE_NUMBER = re.compile(r"^\s*\d+(?:\t|[:|→] ?)")
_DIFF = re.compile(
    r"^--- (?:a/)?(\S[^\t\n]*)(?:\t.*)?\n\+\+\+ (?:b/)?(\S[^\t\n]*)(?:\t.*)?\n", re.MULTILINE
)


class Hunk(Struct, frozen=True):
    """Lines that replace others, below the lines that are named in `after`.

    `at_end` is set if the last of them is the last line of the file. `breaks` are numbers of lines,
    old and new, after which other lines of the file may come: between two changes.
    """

    after: tuple[str, ...]
    old: tuple[str, ...]
    new: tuple[str, ...]
    at_end: bool = False
    breaks: tuple[tuple[int, int], ...] = ()


class FilePatch(Struct, frozen=True):
    """The changes of one file.

    `content` is that of a new file, None if there is one. A file that is `deleted` has no other
    changes. `new_path` is the path to which a file is renamed.
    """

    path: str
    hunks: tuple[Hunk, ...] = ()
    content: str | None = None
    deleted: bool = False
    new_path: str = ""


def parse_patch(text: str) -> list[FilePatch]:
    """Return what a patch changes.

    Raises:
        ToolError: it is no patch, has no end, or needs what this tool does not do.
    """
    stripped = text.replace("\r\n", "\n").strip("\n ")
    fenced = _FENCE.fullmatch(stripped)
    stripped = fenced[1].strip("\n ") if fenced else stripped
    if heredoc := _HEREDOC.fullmatch(stripped):
        stripped = heredoc[3].strip("\n ")
    elif (bare := _BARE_PATCH.findall(stripped)) and len(bare) == 1:
        stripped = bare[0]  # without words around it
    files = _join_updates(
        _parse_unified_diff(stripped)
        if _DIFF.search(stripped) and _BEGIN_MARKER not in stripped
        else _parse_codex_patch(stripped)
    )
    if not files:
        raise ToolError("the patch changes no file", advice="name one: *** Update File: a.py")
    paths = [path for file in files for path in (file.path, file.new_path) if path]
    if len(set(paths)) != len(paths):
        raise ToolError("the patch names a file twice", advice="put all hunks of a file together")
    return files


def _join_updates(files: Iterable[FilePatch]) -> list[FilePatch]:
    """Return the files, those that several parts of the patch only change once."""
    joined: list[FilePatch] = []
    updates: dict[str, int] = {}
    for file in files:
        is_update = bool(file.hunks) and not file.new_path
        if is_update and file.path in updates:
            first = joined[updates[file.path]]
            hunks = first.hunks + file.hunks
            joined[updates[file.path]] = msgspec.structs.replace(first, hunks=hunks)
            continue
        if is_update:
            updates[file.path] = len(joined)
        joined.append(file)
    return joined


def apply_hunks(file: TextFile, hunks: Sequence[Hunk], display_path: str) -> EditResult:
    """Return a file's text after its hunks, each applied in the result of the one before.

    One that has no place there is made in the text before all, unless they change the same lines.

    Raises:
        ToolError: a hunk has no place in the file, or more than one.
    """
    results: list[EditResult] = []
    original = file
    for number, hunk in enumerate(hunks, 1):
        try:
            for piece in _split_hunk(hunk, with_lf(file.text)):
                apply = partial(_apply, hunk=piece, display_path=display_path)
                results.append(apply_to_current_or_original(file, original, apply))
                file = msgspec.structs.replace(file, text=results[-1].text)
        except ToolError as error:
            label = f"{display_path}, hunk {number}" if len(hunks) > 1 else display_path
            raise ToolError(f"{label}: {error.shown}", advice=error.advice) from error
    return EditResult(
        text=file.text,
        line=results[0].line,
        changes=tuple(change for result in results for change in result.changes),
        notes=tuple(dict.fromkeys(note for result in results for note in result.notes)),
    )


def _split_hunk(hunk: Hunk, text: str) -> list[Hunk]:
    """Return the hunks of a hunk whose places are apart, because an @@ between them is missing.

    The lines of each must be in the text exactly once; otherwise the hunk is returned as it is.
    """
    pieces: list[Hunk] = []
    old_start = new_start = 0
    ends = (*hunk.breaks, (len(hunk.old), len(hunk.new)))
    if not 0 < len(hunk.breaks) <= _MAX_BREAKS:
        return [hunk]
    while old_start < len(hunk.old):
        for old_end, new_end in reversed(ends):
            piece = Hunk(hunk.after, hunk.old[old_start:old_end], hunk.new[new_start:new_end])
            if piece.old != piece.new and _is_unique(text, piece.old):
                pieces.append(piece)
                old_start, new_start = old_end, new_end
                break
        else:
            return [hunk]
    return pieces if len(pieces) > 1 else [hunk]


def _is_unique(text: str, lines: Sequence[str]) -> bool:
    """Return whether a text has these lines, with a word in them, exactly once."""
    block = "\n" + _join_lines(lines)
    return bool(re.search(r"\w", block)) and f"\n{text}\n".count(block) == 1


def _apply(file: TextFile, hunk: Hunk, display_path: str) -> EditResult:
    start = _offset_after(file.text, hunk.after)
    if not hunk.old:
        if not start and not hunk.at_end:
            raise ToolError(
                "a hunk only adds lines", advice="give a line before or after them as well"
            )
        line = END_OF_FILE if hunk.at_end else file.text.count("\n", 0, start)
        edit = Edit("", _join_lines(hunk.new), after_line=line)
        return apply_edits(file, (edit,), display_path)
    edit = Edit(_join_lines(hunk.old), _join_lines(hunk.new))
    head, tail = file.text[:start], file.text[start:]
    try:
        edited = apply_edits(msgspec.structs.replace(file, text=tail), (edit,), display_path)
    except ToolError:
        end = _block_end(tail, head)
        if start and end:
            edited = apply_edits(
                msgspec.structs.replace(file, text=tail[:end]), (edit,), display_path
            )
            edited = msgspec.structs.replace(edited, text=edited.text + tail[end:])
        else:
            if start:
                apply_edits(file, (edit,), display_path)  # its error has the file's line numbers
            raise
    first = edited.changes[0][0].split("\n", 1)[0]
    if fold(first).strip() not in {fold(line).strip() for line in _readings(hunk.old[0])}:
        raise ToolError(f"there is no line {hunk.old[0].strip()[:80]!r}", advice="give whole lines")
    line = head.count("\n") + edited.line
    return msgspec.structs.replace(edited, text=head + edited.text, line=line)


def _readings(line: str) -> tuple[str, str]:
    """Return a line as it is, and without a line number that was copied with it."""
    return line, _LINE_NUMBER.sub("", line)


def _block_end(text: str, head: str) -> int:
    """Return where the block ends that begins before `text`, with the last line of `head`.

    Its lines are deeper than that one. 0 if there is no such block, or no line after it.
    """
    opening = head.rstrip("\n").rpartition("\n")[2]
    depth = len(opening) - len(opening.lstrip())
    offset = 0
    for line in text.splitlines(keepends=True):
        if line.strip() and len(line) - len(line.lstrip()) <= depth:
            return offset
        offset += len(line)
    return 0


def _offset_after(text: str, after: Sequence[str]) -> int:
    """Return where the lines begin that follow the named ones.

    Raises:
        ToolError: one of those is not there.
    """
    offset = 0
    for name in after:
        target = name.strip()
        line = re.compile(rf"^[^\S\n]*{re.escape(target)}\s*?$\n?", re.MULTILINE)
        match = line.search(text, offset)
        if match is None:  # perhaps a part of a line
            line = re.compile(rf"^.*(?<!\w){re.escape(target)}(?!\w).*$\n?", re.MULTILINE)
            matches = list(islice(line.finditer(text, offset), 2))
            if len(matches) != 1:
                problem = "in several lines" if matches else "not there"
                raise ToolError(
                    f"the line after @@ is {problem}: {target[:80]}",
                    advice="give one whole line of the file after @@, or leave it out",
                )
            match = matches[0]
        offset = match.end()
    return offset


def _join_lines(lines: Sequence[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


def _parse_codex_patch(text: str) -> Iterator[FilePatch]:
    if not text.startswith(_BEGIN_MARKER):
        raise ToolError(
            f"the patch does not begin with {_BEGIN_MARKER}", advice="give a whole patch"
        )
    if not text.endswith(_END_MARKER):
        raise ToolError(
            f"the patch does not end with {_END_MARKER}, so it may have been cut off",
            advice="write it again, in smaller pieces",
        )
    body = text.removeprefix(_BEGIN_MARKER).removesuffix(_END_MARKER).strip("\n")
    headers = list(FILE_LINE.finditer(body))
    if body and (not headers or body[: headers[0].start()].strip()):
        raise ToolError("the patch does not say which file it changes", advice=_FORMAT_ADVICE)
    for index, header in enumerate(headers):
        end = headers[index + 1].start() if index + 1 < len(headers) else len(body)
        lines = body[header.end() : end].strip("\n").split("\n")
        match header[1]:
            case "Add":
                yield FilePatch(header[2], content=_join_lines(_added_lines(lines)))
            case "Delete":
                yield FilePatch(header[2], deleted=True)
            case _:
                is_renamed = lines[0].startswith(_MOVE_MARKER)
                new_path = lines.pop(0).removeprefix(_MOVE_MARKER).strip() if is_renamed else ""
                yield FilePatch(header[2], tuple(_parse_hunks(lines)), new_path=new_path)


def _added_lines(lines: Sequence[str]) -> list[str]:
    """Return the lines of a new file, also if none of them has its sign."""
    if not any(line.startswith("+") for line in lines) and any(lines):
        return list(lines)
    if plain := next((line for line in lines if line and not line.startswith("+")), None):
        raise ToolError(
            f"a line of a new file does not begin with +: {plain[:80]!r}",
            advice="begin each of its lines with +",
        )
    return [line[1:] for line in lines if line]


_FORMAT_ADVICE = "begin each file with *** Update File: path or *** Add File: path"


def _parse_unified_diff(text: str) -> Iterator[FilePatch]:
    headers = list(_DIFF.finditer(text))
    for index, header in enumerate(headers):
        end = headers[index + 1].start() if index + 1 < len(headers) else len(text)
        lines = [
            line
            for line in text[header.end() : end].strip("\n").split("\n")
            if not line.startswith(("diff --git ", "index ", "\\ No newline"))
        ]
        hunks = tuple(_parse_hunks(lines))
        if header[2] == "/dev/null":
            yield FilePatch(header[1], deleted=True)
        elif header[1] == "/dev/null":
            yield FilePatch(
                header[2], content=_join_lines([line for hunk in hunks for line in hunk.new])
            )
        else:
            yield FilePatch(header[2], hunks)


def _parse_hunks(lines: Sequence[str]) -> Iterator[Hunk]:
    after: list[str] = []
    old: list[str] = []
    new: list[str] = []
    breaks: list[tuple[int, int]] = []
    previous_sign, has_changes = "", False
    context_sign = " "
    for number, line in enumerate((*lines, "@@")):
        if line.startswith("@@"):
            if old or new:
                at_end = number > 0 and lines[number - 1] == _END_OF_FILE
                yield Hunk(tuple(after), tuple(old), tuple(new), at_end, tuple(breaks))
                after, old, new, breaks = [], [], [], []
                previous_sign, has_changes = "", False
            context_sign = _context_sign(lines, number + 1)
            heading = line[2:].strip().removesuffix("@@").rstrip()
            if heading.strip(".") and not _RANGE.match(heading):
                after.append(heading)
            continue
        if line == _END_OF_FILE:
            continue
        sign = line[:1] if line.startswith(("+", "-")) else " "
        if has_changes and previous_sign + sign not in {"--", "-+", "++"}:
            breaks.append((len(old), len(new)))
        previous_sign, has_changes = sign, has_changes or sign != " "
        if sign == " ":  # context, which some write without the space before it
            old.append(line.removeprefix(context_sign))
            new.append(line.removeprefix(context_sign))
        else:
            (new if sign == "+" else old).append(line[1:])


def _context_sign(lines: Sequence[str], start: int) -> str:
    """Return what the context lines of a hunk begin with: a space, or nothing."""
    following = (lines[index] for index in range(start, len(lines)))
    hunk = takewhile(lambda line: not line.startswith("@@"), following)
    return " " if all(line[:1] in {"", " ", "+", "-", "*"} for line in hunk) else ""
