"""A changed file as the lines around its changes, each with the mark of a unified diff."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from acp_agent.content import DiffPart
from acp_agent.line_diff import changed_blocks
from acp_agent.unified_diff import NO_END, Hunk, Mark, hunks, split_lines
from acp_agent.view.plain import Cleaner, visible
from acp_agent.view.steps import Diff, DiffKind, DiffLines

_KINDS: dict[Mark, DiffKind] = {" ": "same", "-": "removed", "+": "added"}


def diff(part: DiffPart, clean: Cleaner) -> Diff:
    """The changes of a file; long ones are cut in their middle."""
    old = split_lines(clean.scrubbed(part.old_text or ""))
    new = split_lines(clean.scrubbed(part.new_text))
    blocks = changed_blocks(old, new)
    return Diff(
        path=clean.line(part.path),
        lines=[
            DiffLines(kind=kind, text=clean.fitted(visible("".join(lines))))
            for hunk in hunks(old, new, blocks)
            for kind, lines in _pieces(hunk)
        ],
        added=sum(block.new_end - block.new_start for block in blocks),
        removed=sum(block.old_end - block.old_start for block in blocks),
        new=part.old_text is None,
    )


def _pieces(hunk: Hunk) -> Iterator[tuple[DiffKind, list[str]]]:
    yield "place", [hunk.header]
    for mark, lines in hunk.runs:
        yield from _marked(_KINDS[mark], mark, lines)


def _marked(
    kind: DiffKind, mark: str, lines: Sequence[str]
) -> Iterator[tuple[DiffKind, list[str]]]:
    if lines[-1].endswith("\n"):
        yield kind, [f"{mark}{line}" for line in lines]
        return
    yield kind, [f"{mark}{line}" for line in (*lines[:-1], f"{lines[-1]}\n")]
    yield "unended", [NO_END]
