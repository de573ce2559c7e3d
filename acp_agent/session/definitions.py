"""The skills and agents of a session, as their files say at the moment."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from acp_agent.config.words import Words
from acp_agent.events import NoticeShown
from acp_agent.extensions.definitions.places import any_there
from acp_agent.session.commands import Command

if TYPE_CHECKING:  # for sessions that have any
    from acp_agent.extensions.definitions.agent import AgentSpec
    from acp_agent.extensions.definitions.finding import Found, Problem
    from acp_agent.extensions.definitions.places import Places
    from acp_agent.extensions.definitions.skill import Skill
    from acp_agent.session.session import Session

SHOWN = 3  # problems that are told one by one
PREFIX = "skill:"  # what the name of a skill's command begins with


class Definitions:
    """Reads the files when the session is opened, and again before each turn.

    What is written meanwhile, by the user or by the agent itself, so holds from the next turn on.

    Args:
        session: the session.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._found: Found | None = None
        self._told: set[tuple[Path, str]] = set()
        self._looking = asyncio.Lock()

    @property
    def _places(self) -> Places:
        return self._session.services.places(self._session.cwd)

    @property
    def there(self) -> bool:
        """Whether there is any place with files; costs a few looks at the disk."""
        return self._found is not None or any_there(self._places)

    @property
    def found(self) -> bool:
        """Whether any were found; looks at no disk."""
        return bool(self.skills or self.agents)

    async def look(self) -> None:
        """Read the files, offer the commands that changed, and tell once of what is broken."""
        if not self.there:
            return
        async with self._looking:
            before = self.commands
            found = self._found = await asyncio.to_thread(self._find)
            if self.commands != before:
                self._session.extensions.offer_commands()
            new = [one for one in found.problems if (one.path, one.why) not in self._told]
            if new:
                self._told |= {(one.path, one.why) for one in new}
                # Not journaled: it is about the files as they are now.
                await self._session.tell(_notice(new, self._session.services.words))

    def _find(self) -> Found:
        from acp_agent.extensions.definitions.finding import (  # noqa: PLC0415 - in a thread
            Found,
            find_definitions,
        )

        found = find_definitions(self._places, self._session.services.config)
        # What is offered, and told, has no secret in it. The texts themselves are cleaned when one
        # of them is used.
        clean = self._session.clean
        return Found(
            skills=tuple(
                replace(
                    one,
                    description=clean(one.description),
                    hint=None if one.hint is None else clean(one.hint),
                )
                for one in found.skills
            ),
            agents=tuple(replace(one, description=clean(one.description)) for one in found.agents),
            problems=tuple(replace(one, why=clean(one.why)) for one in found.problems),
        )

    @property
    def skills(self) -> Sequence[Skill]:
        """The skills that were found."""
        return () if self._found is None else self._found.skills

    @property
    def agents(self) -> Sequence[AgentSpec]:
        """The agents that were found."""
        return () if self._found is None else self._found.agents

    def skill(self, name: str) -> Skill | None:
        """The skill of this name."""
        return next((one for one in self.skills if one.name == name), None)

    def agent(self, name: str) -> AgentSpec | None:
        """The agent of this name."""
        return next((one for one in self.agents if one.name == name), None)

    @property
    def commands(self) -> Sequence[Command]:
        """The skills that the user may choose, as commands."""
        return [
            Command(name=PREFIX + one.name, description=one.description, hint=one.hint)
            for one in self.skills
            if one.by_user
        ]


def _notice(problems: Sequence[Problem], words: Words) -> NoticeShown:
    """What is wrong, what is left out before the rest."""
    sorted_ones = sorted(problems, key=lambda one: not one.left_out)
    shown = [f"{one.path}: {words.told(one.why)}" for one in sorted_ones[:SHOWN]]
    if len(problems) > SHOWN:
        shown.append(words("`acp-agent doctor` tells the others."))
    count = len(problems)
    return NoticeShown(
        severity="warning",
        title="A skill or an agent is not used as it is written."
        if count == 1
        else f"{count} skills or agents are not used as they are written.",
        description="\n".join(shown),
    )
