"""Who changed the files of a folder since a checkpoint: the session itself, or somebody else.

Every checkpoint in the journal has the tree of the folder at its time. From one to the next it is
known who may have changed files: while a turn runs that may run commands, its changes count as the
turn's; where only the tools for files could write, theirs are those that left what they wrote; from
the end of a turn to the next checkpoint every change is somebody else's.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from acp_agent.events import (
    AnyEvent,
    CheckpointMade,
    ChildWorked,
    ToolEnded,
    TurnEnded,
    TurnInterrupted,
)
from acp_agent.workspace.checkpoints.base import Span

_Why = Literal["turn", "turn_end", "restore", "restore_end", "now"]


def spans(
    history: Sequence[AnyEvent], checkpoint: str, folder: str, now: str, *, only_tools: bool
) -> list[Span]:
    """Return what happened to a folder from a checkpoint until now, piece by piece.

    Args:
        history: the session's events.
        checkpoint: where to begin.
        folder: the folder, resolved.
        now: the tree of the folder as it is.
        only_tools: whether in the turn that runs, if one does, only tools for files could write.
    """
    walk = _Walk(folder)
    begun = False
    for event in _flat(history):
        match event:
            case ToolEnded():
                walk.wrote(event.wrote)
            case TurnEnded() | TurnInterrupted():
                walk.turn_runs = False
            case CheckpointMade():
                tree = dict(event.trees).get(folder)
                walk.trees[event.checkpoint] = tree or ""
                begun = begun or event.checkpoint == checkpoint
                if begun and tree is not None:
                    walk.reach(tree, event.why, only_tools=event.only_tools, target=event.target)
            case _:
                pass
    walk.reach(now, "now", only_tools=only_tools)
    return walk.found


def _flat(history: Iterable[AnyEvent]) -> Iterator[AnyEvent]:
    """The events, those of children as if they were the session's, but for the ends of turns."""
    for event in history:
        if not isinstance(event, ChildWorked):
            yield event
        elif isinstance(event.did, ToolEnded):
            yield event.did


class _Walk:
    """The way from one tree of a folder to the next."""

    def __init__(self, folder: str) -> None:
        self.found: list[Span] = []
        self.trees: dict[str, str] = {}  # by checkpoint
        self.turn_runs = False  # one that saved the files before it wrote
        self._folder = os.fsencode(folder.rstrip("/")) + b"/"
        self._tree: str | None = None
        self._since: _Why = "now"
        self._target = ""
        self._wrote: dict[bytes, str] = {}

    def wrote(self, files: Iterable[tuple[str, str]]) -> None:
        """Take in what a tool wrote."""
        for name, content in files:
            path = os.fsencode(name)
            if path.startswith(self._folder):
                self._wrote[path.removeprefix(self._folder)] = content

    def reach(self, tree: str, why: _Why, *, only_tools: bool, target: str = "") -> None:
        """Come to the next tree."""
        if self._tree is not None:
            self.found.append(self._span(self._tree, tree, why, only_tools=only_tools))
        self._tree, self._since, self._target = tree, why, target
        self._wrote = {}
        if why in {"turn", "turn_end"}:
            self.turn_runs = why == "turn"

    def _span(self, old: str, new: str, why: _Why, *, only_tools: bool) -> Span:
        in_turn = self.turn_runs or (self._since == "turn" and why == "turn_end")
        restored = self._since == "restore" and why == "restore_end"
        cut_off = self._since == "restore" and not restored
        return Span(
            old=old,
            new=new,
            is_own=restored or (in_turn and not only_tools),
            wrote=self._wrote if in_turn or self._since == "turn" else {},
            target=self.trees.get(self._target, "") if cut_off else "",
            is_known=not cut_off and (in_turn or self._since != "turn"),
        )
