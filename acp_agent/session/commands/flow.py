"""The command `/flow:NAME`: run a flow skill; `/flow:NAME resume` continues its last run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from acp_agent.events import AnyEvent, UserMessage
from acp_agent.extensions.definitions.inputs import fill_inputs
from acp_agent.extensions.definitions.types import Skill
from acp_agent.session.commands.command import FoundCommand, command_line
from acp_agent.session.core import SessionCore
from acp_agent.session.extensions import FLOW_PREFIX
from acp_agent.session.turns.flow import FlowRun, stopped_at
from acp_agent.session.turns.plan import RunOptions

RESUME = "resume"


async def flow_command(
    core: SessionCore,
    skill: Skill,
    arguments: str,
    options: RunOptions,
    variables: Mapping[str, str],
) -> FoundCommand:
    """Return the effect of `/flow:name`.

    Args:
        skill: a skill with a flow.
        variables: the values of placeholders such as `${CLAUDE_SKILL_DIR}`.
    """
    flow = skill.flow
    assert flow is not None
    request, history = arguments.strip(), list[AnyEvent]()
    if resumes := request == RESUME:
        history = list(await core.history())
        request = _last_request(skill.name, history)
    filled, has_request = {}, False
    for id_, node in flow.nodes.items():
        text, uses_request = fill_inputs(node.text, request, {}, variables)
        filled[id_] = replace(node, text=core.clean(text))
        has_request = has_request or uses_request
    flow = replace(flow, nodes=filled, notes=core.clean(flow.notes))
    resumed = stopped_at(flow, history)
    if resumes and resumed is None:
        return FoundCommand.answering(
            core.translate(
                ("There is no stopped run of the flow {name} in this session."), name=skill.name
            )
        )
    further_text = "" if has_request else core.clean(request)
    run = FlowRun(skill.name, flow, request=further_text, resumed=resumed)
    # The plan shows the flow.
    uses = replace(options.uses, without=(*options.uses.without, "todo"))
    return FoundCommand(ask=run.first_note, flow=run, options=replace(options, uses=uses))


def _last_request(name: str, history: Sequence[AnyEvent]) -> str:
    """Return the user's text for the last run of a flow."""
    lines = (
        command_line(event.content) for event in reversed(history) if isinstance(event, UserMessage)
    )
    requests = (line[1].strip() for line in lines if line and line[0] == FLOW_PREFIX + name)
    return next((request for request in requests if request != RESUME), "")
