"""What a skill wants to be run with, together with what the agent wants that runs it."""

from __future__ import annotations

from acp_agent.extensions.definitions.types import RunSettings


def test_a_skill_allows_no_tool_that_its_agent_lacks() -> None:
    both = RunSettings(tools=("*",), without=("grep",)).over(
        RunSettings(tools=("read", "gr*"), without=("glob",))
    )
    assert both.allows("read")
    assert not both.allows("shell"), "the agent has it not"
    assert not both.allows("grep"), "the skill refuses it"
    assert not both.allows("glob"), "the agent refuses it"


def test_the_fewer_requests_hold_of_those_that_a_skill_and_its_agent_name() -> None:
    assert RunSettings(max_requests=500).over(RunSettings(max_requests=10)).max_requests == 10
    assert RunSettings(max_requests=5).over(RunSettings(max_requests=10)).max_requests == 5
    assert RunSettings().over(RunSettings(max_requests=10)).max_requests == 10
    assert RunSettings(max_requests=5).over(RunSettings()).max_requests == 5


def test_settings_of_a_skill_take_precedence_over_those_of_its_agent() -> None:
    both = RunSettings(model="small").over(
        RunSettings(model="a/b", temperature=0.5, tools=("read",))
    )
    assert (both.model, both.temperature, both.allows("read")) == ("small", 0.5, True)
    assert not both.allows("shell")
