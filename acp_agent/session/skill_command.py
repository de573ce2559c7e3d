"""`/skill:name what for`: the user chooses a skill for a turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from acp_agent.agent.said import said_part
from acp_agent.content import ContentBlock
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.definitions.types import Uses
from acp_agent.models.base import UserText
from acp_agent.session.chosen import choose
from acp_agent.session.commands import FoundCommand, is_command
from acp_agent.session.definitions import PREFIX
from acp_agent.session.skill_text import skill_text

if TYPE_CHECKING:
    from acp_agent.session.session import Session

SKILL_TOOL = "skill"  # `acp_agent.tools.skill`, which brings pydantic


async def skill_command(
    session: Session, name: str, rest: str, content: Sequence[ContentBlock] = ()
) -> FoundCommand | None:
    """What a command does that names a skill; None where it names none.

    The turn that it begins is run with what the skill wants to be run with, or begins by having an
    agent follow it, where the skill wants that. In a turn that runs
    already the skill's text joins in, and the turn stays what it is.

    Args:
        session: the session.
        name: the command's.
        rest: what follows it.
        content: the prompt that has it. An agent sees nothing else of the conversation, so it is
            told of what the user attached.
    """
    definitions, translate = session.extensions.definitions, session.services.translate
    if not name.startswith(PREFIX):
        return None
    name = name.removeprefix(PREFIX)
    await definitions.look()  # it may have been written just now
    skill = definitions.skill(name)
    if skill is None or not skill.by_user:
        text = translate("There is no skill {name!r}; /help lists those that there are.", name=name)
        return _answered(text)
    if skill.apart:
        request = session.clean("\n\n".join([*filter(None, [rest]), *_attached(content)]))
        given = msgspec.json.encode({"skill": skill.name, "request": request}).decode()
        return FoundCommand(ask=skill_text(skill, rest), call=(SKILL_TOOL, given))
    if skill.uses == Uses():
        return FoundCommand(ask=skill_text(skill, rest))
    settings, services = session.settings, session.services
    try:
        chosen = choose(
            skill.uses,
            main=settings.model,
            thought=settings.thought_level,
            models=services.models,
            config=services.config,
        )
    except InvalidInputError as error:
        why = translate.rendered(str(error))
        return _answered(
            translate("The skill {name} cannot be used: {why}", name=skill.name, why=why)
        )
    return FoundCommand(ask=skill_text(skill, rest), chosen=chosen)


def _attached(content: Sequence[ContentBlock]) -> list[str]:
    """What stands beside a command in a prompt, in words."""
    command = next((block for block in content if is_command(block)), None)
    said = [said_part(block) for block in content if block is not command]
    return [part.text for part in said if isinstance(part, UserText) and part.text.strip()]


def _answered(text: str) -> FoundCommand:
    async def answer(session: Session) -> str:
        return session.clean(text)

    return FoundCommand(answer=answer)
