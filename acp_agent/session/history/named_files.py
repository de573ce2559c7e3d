"""Check whether the user named files that steer agents; full mode changes only those unasked.

Names in files, pages, and output of commands and servers do not count, as with web addresses.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence

from acp_agent.content import TextBlock
from acp_agent.events import AnyEvent, UserMessage
from acp_agent.permissions.guarded_files import steers_agents
from acp_agent.session.core import SessionCore

_INIT = re.compile(r"\s*/init\b")
_INIT_FILE = "AGENTS.md"


def user_texts(events: Sequence[AnyEvent]) -> Iterator[str]:
    """Yield the texts that the user wrote, without attachments and prompts of child sessions."""
    for event in events:
        if isinstance(event, UserMessage):
            yield from (block.text for block in event.content if isinstance(block, TextBlock))


class NamedFiles:
    """The files that the user named in a session, or that a slash command of the user writes."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._project = os.path.realpath(core.cwd)

    async def __call__(self, files: Sequence[Sequence[str]]) -> bool:
        """Return whether the user named all files that steer agents.

        A file counts as named if its own name, or that of its folder for agents, was mentioned.

        Args:
            files: the absolute paths of each file; the name of one of them is enough.
        """
        project = self._project
        steering = [
            [path for path in paths if steers_agents(path, project)]
            for paths in files
            if any(steers_agents(path, project) for path in paths)
        ]
        if not steering:
            return True
        texts = list(self._texts(await self._core.history()))
        return all(
            any(mention.search(text) for text in texts)
            for mention in (_mention(paths, project) for paths in steering)
        )

    @staticmethod
    def _texts(events: Sequence[AnyEvent]) -> Iterator[str]:
        for text in user_texts(events):
            yield text
            if _INIT.match(text):
                yield _INIT_FILE


def _mention(paths: Sequence[str], project: str) -> re.Pattern[str]:
    """Return a pattern that finds the names of a file in a text."""
    names: set[str] = set()
    for path in paths:
        *folders, name = os.path.relpath(path, project).split("/")
        names |= {name, *(folder for folder in folders if steers_agents(f"/{folder}", ""))}
    alternatives = "|".join(map(re.escape, sorted(names)))
    return re.compile(rf"(?<![\w.-])(?:{alternatives})(?!\.?[\w-])", re.IGNORECASE)
