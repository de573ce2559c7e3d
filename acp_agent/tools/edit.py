"""Replace a text in a file, without touching a byte around it.

Where the text is not found, the model is sent what is nearest to it, so that it can correct itself.
"""

from __future__ import annotations

import asyncio
import bisect
import difflib
import heapq
import re
from collections import Counter
from typing import Annotated, ClassVar, Literal

from msgspec import Struct
from pydantic import Field

from acp_agent.content import JsonObject
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.tools.base import (
    Outcome,
    Prepared,
    Progress,
    Tool,
    ToolParams,
    Touches,
    path_argument,
)
from acp_agent.tools.file_changes import Change, apply_change, hidden_value_error, prepare_change
from acp_agent.workspace.file_io import TextFile, display_path, with_lf
from acp_agent.workspace.scrub import REPLACEMENT

_LINES_NAMED = 10
_LINES_COMPARED = 20_000
_LINE_COMPARED = 300  # characters
_LINE_SKIMMED = 120  # characters, of each line of the file
_CANDIDATES = 50
_LIKENESS = 0.6  # between 0 and 1; below it two lines are no more alike than any two
_LINES_SHOWN = 15
_LINE_SHOWN = 200  # characters
_NUMBERED = re.compile(r"[ ]*\d+\t")


class EditParams(ToolParams):
    """What to replace by what."""

    path: str
    old: Annotated[str, Field(description="Exact text to replace.")]
    new: Annotated[str, Field(description="Text to put there.")]
    all: Annotated[bool, Field(description="Replace every occurrence.")] = False


class EditTool(Tool[EditParams]):
    """Edits a file of the session's folders."""

    name: ClassVar[str] = "edit"
    kind: ClassVar[ToolKind] = "edit"
    effect: ClassVar[Literal["reads", "writes"]] = "writes"
    params: ClassVar[type[EditParams]] = EditParams

    def title(self, arguments: JsonObject) -> str:
        """For instance "Edit src/a.py"."""
        return f"Edit {path_argument(self, arguments) or 'a file'}"

    def touches(self, params: EditParams) -> Touches:
        """The file."""
        return Touches(writes=(str(self.workspace.files.resolve(params.path)),))

    async def prepare(self, params: EditParams) -> Prepared:
        """Find the text and make the diff; demands that the model has seen the file as it is."""
        files = self.workspace.files
        path = files.resolve(params.path)
        shown = display_path(path, files.roots[0])
        before = await files.check_unchanged(path)
        result = await asyncio.to_thread(
            replace_text, before, params.old, params.new, every=params.all, shown=shown
        )
        change = Change(
            asked=params.path,
            path=path,
            opened=files.editor_path(path),
            shown=shown,
            before=before,
            after=result.text,
            line=result.line,
        )

        async def run(_: Progress) -> Outcome:
            times = (
                f"{result.count} replacements, the first" if result.count > 1 else "1 replacement"
            )
            done = f"{shown} edited: {times} in line {result.line}."
            return await apply_change(change, files, done)

        return prepare_change(change, title=f"Edit {shown}", run=run)


class Replacement(Struct, frozen=True):
    """The whole text after a replacement, where the first one begins (a line from 1), how many."""

    text: str
    line: int
    count: int


def replace_text(file: TextFile, old: str, new: str, *, every: bool, shown: str) -> Replacement:
    """`old` replaced by `new`, once or everywhere; CRLF and LF match each other.

    What is put in gets the line endings of what it replaces, so a file that mixes them keeps all
    others.

    Raises:
        ToolError: `old` is empty, the same as `new`, not in the file, or there more than once.
    """
    old, new = with_lf(old), with_lf(new)
    if not old:
        raise ToolError(
            "the text to replace is empty",
            advice="give it in `old`, or use `write` for a whole file",
        )
    if old == new:
        raise ToolError("the text to replace and the new one are the same; nothing would change")
    text = with_lf(file.text)
    places = _occurrences(text, old)
    if not places and REPLACEMENT in old:
        raise hidden_value_error()
    if not places:
        raise ToolError(f"the text to replace is not in {shown}", advice=explain_absence(text, old))
    lines = [text.count("\n", 0, place) + 1 for place in places[: _LINES_NAMED + 1]]
    if len(places) > 1 and not every:
        named = ", ".join(str(line) for line in lines[:_LINES_NAMED])
        more = " and more" if len(places) > _LINES_NAMED else ""
        raise ToolError(
            f"the text to replace is in {shown} {len(places)} times (lines {named}{more})",
            advice="add lines around it in `old` until it is unique, or set `all`",
        )
    return Replacement(_splice(file, text, old, new, places), lines[0], len(places))


def _occurrences(text: str, part: str) -> list[int]:
    places = []
    at = text.find(part)
    while at >= 0:
        places.append(at)
        at = text.find(part, at + len(part))
    return places


def _splice(file: TextFile, text: str, old: str, new: str, places: list[int]) -> str:
    if "\r\n" not in file.text:
        return text.replace(old, new)
    # Where in `text` a line feed stood for CRLF, to find each place again in the file's own text.
    crlf: list[int] = []
    at = file.text.find("\r\n")
    while at >= 0:
        crlf.append(at - len(crlf))
        at = file.text.find("\r\n", at + 2)
    pieces = []
    done = 0
    for place in places:
        start = place + bisect.bisect_left(crlf, place)
        end = place + len(old) + bisect.bisect_left(crlf, place + len(old))
        line_end = text.find("\n", place)
        is_crlf = _has(crlf, line_end) if line_end >= 0 else file.newline == "\r\n"
        pieces.append(file.text[done:start])
        pieces.append(new.replace("\n", "\r\n") if is_crlf else new)
        done = end
    pieces.append(file.text[done:])
    return "".join(pieces)


def _has(items: list[int], item: int) -> bool:
    """Whether a sorted list has an item."""
    at = bisect.bisect_left(items, item)
    return at < len(items) and items[at] == item


def explain_absence(text: str, wanted: str) -> str:
    """Say why `wanted` may not be in `text` and, where something is near it, what and where.

    Both have LF line endings. The work is bounded (the first 20,000 lines are compared) and takes
    up to some seconds for the largest files: call it in a thread.
    """
    wanted_lines = wanted.strip("\n").split("\n")
    if not wanted.strip():
        return "it is only white space: add text around it"
    if all(_NUMBERED.match(line) for line in wanted_lines if line.strip()):
        return "leave out the line numbers and tabs that `read` puts before each line"
    lines = text.split("\n")[:_LINES_COMPARED]
    start = _same_but_for_white_space(lines, wanted_lines)
    if start is not None:
        found = lines[start : start + len(wanted_lines)]
        return f"white space differs; {_quote(found, start)}"
    start = _nearest(lines, wanted_lines)
    if start is None:
        return "nor is anything like it: read the file again"
    return _quote(lines[start : start + len(wanted_lines)], start)


def _quote(lines: list[str], start: int) -> str:
    rows = [f"{start + 1 + at}\t{line[:_LINE_SHOWN]}" for at, line in enumerate(lines)]
    more = f"\n[{len(rows) - _LINES_SHOWN} more lines]" if len(rows) > _LINES_SHOWN else ""
    return (
        f"the nearest text begins in line {start + 1} (number, tab, text):\n"
        + "\n".join(rows[:_LINES_SHOWN])
        + more
    )


def _same_but_for_white_space(lines: list[str], wanted: list[str]) -> int | None:
    """The index where the wanted lines begin when all white space is left out of account."""
    keys = ["".join(line.split()) for line in lines]
    wanted_keys = ["".join(line.split()) for line in wanted]
    count = len(wanted_keys)
    for at in range(len(keys) - count + 1):
        if keys[at] == wanted_keys[0] and keys[at : at + count] == wanted_keys:
            return at
    if count == 1:
        return next((at for at, key in enumerate(keys) if wanted_keys[0] in key), None)
    return None


def _nearest(lines: list[str], wanted: list[str]) -> int | None:
    """The index where text that looks like the wanted lines begins."""
    stripped = [line.strip()[:_LINE_COMPARED] for line in lines]
    targets = [line.strip()[:_LINE_COMPARED] for line in wanted]
    # Lines that say something and that the file has: the rarest of them anchors the comparison.
    common = {target for target in targets if any(c.isalnum() for c in target)} & set(stripped)
    if common:
        times = Counter(stripped)
        anchor = min(common, key=lambda line: (times[line], -len(line), line))
        return max(0, stripped.index(anchor) - targets.index(anchor))
    longest = max(targets, key=len)
    close = _closest(longest, _candidates(stripped, longest))
    return None if close is None else max(0, stripped.index(close) - targets.index(longest))


def _closest(wanted: str, lines: list[str]) -> str | None:
    """The line most like the wanted one, None where none is much like it."""
    # Not get_close_matches: it takes the frequent characters of long lines for junk.
    matcher = difflib.SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted)
    best, closest = _LIKENESS, None
    for line in lines:
        matcher.set_seq1(line)
        if matcher.quick_ratio() > best and (likeness := matcher.ratio()) > best:
            best, closest = likeness, line
    return closest


def _candidates(lines: list[str], wanted: str) -> list[str]:
    """The few lines that share most with the wanted one; comparing all in full takes too long."""
    parts = _trigrams(wanted)
    shared = {line: len(parts & _trigrams(line)) for line in dict.fromkeys(lines)}
    return heapq.nlargest(_CANDIDATES, shared, key=shared.__getitem__)


def _trigrams(line: str) -> set[str]:
    return {line[at : at + 3] for at in range(min(len(line), _LINE_SKIMMED) - 2)}
