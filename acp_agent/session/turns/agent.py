"""The agent that a session runs as instead of the built-in one."""

from __future__ import annotations

from msgspec.structs import replace

from acp_agent.agent.system_prompt import agent_prompt, built_in_prompt
from acp_agent.errors import InvalidInputError
from acp_agent.events import ConfigChanged
from acp_agent.extensions.definitions.types import SMALL, AgentSpec, RunSettings
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import Extensions
from acp_agent.session.settings import DEFAULT_AGENT
from acp_agent.session.turns.plan import RunOptions, run_options


async def find_agent(core: SessionCore, extensions: Extensions) -> AgentSpec | None:
    """Return the agent that the session runs as; None for the built-in one.

    Changes the session's model to the one that the agent names, unless the user has chosen another
    one since. A missing agent is an error, because it may have limited the tools.

    Raises:
        InvalidInputError: there is no such agent, or its model cannot be used.
    """
    settings, definitions = core.settings, extensions.definitions
    if settings.agent == DEFAULT_AGENT:
        return None
    await extensions.ready()
    agent = await definitions.find_agent(settings.agent)
    if agent is None:
        names = ", ".join(
            (DEFAULT_AGENT, *(offered.name for offered in definitions.offered_agents))
        )
        raise InvalidInputError(
            f"this session runs as the agent {settings.agent!r}, which is not there; choose "
            f"another one with /agent NAME ({names})"
        )
    model = agent.uses.model
    # The small model is for side requests only.
    if settings.follows_agent and model is not None and model not in {SMALL, settings.model.ref}:
        chosen = run_options(
            RunSettings(model=model), main=settings.model, thought=None, services=core.services
        ).model
        await core.emit(ConfigChanged(option="model", value=chosen.ref))
        core.client.options_changed(core.id)
    return agent


def agent_options(core: SessionCore, agent: AgentSpec, requested: RunOptions | None) -> RunOptions:
    """Return the run options of a turn of an agent.

    Args:
        requested: the run options of a skill; they are limited to the agent's tools.

    Raises:
        InvalidInputError: the agent's settings cannot be used.
    """
    uses = replace(agent.uses, model=None)
    if requested is None:
        options = run_options(
            uses,
            main=core.settings.model,
            thought=core.settings.thought_level,
            services=core.services,
        )
    else:
        options = replace(requested, uses=requested.uses.over(uses))
    return replace(options, inherited=RunSettings(tools=uses.tools, without=uses.without))


def agent_system_prompt(core: SessionCore, agent: AgentSpec) -> str | None:
    """Return the agent's system prompt; None if it has none."""
    if not agent.prompt:
        return None
    return agent_prompt(core.clean(agent.prompt_in(core.cwd, built_in_prompt)))
