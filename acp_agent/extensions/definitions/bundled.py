"""The skills and agents that come with the program, in `acp_agent/extensions/bundled`.

A session offers them using only `index.json`, and reads the file of one when it is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from acp_agent.config.types import DefinitionConfig
from acp_agent.extensions.definitions.build import DefinitionFile, build_agent, build_skill
from acp_agent.extensions.definitions.fields import AgentFields, SkillFields, parse_fields
from acp_agent.extensions.definitions.front_matter import read_front_matter
from acp_agent.extensions.definitions.locations import BUNDLED
from acp_agent.extensions.definitions.skill_files import FILE_NAME
from acp_agent.extensions.definitions.types import DEFAULT_PROMPT, AgentSpec, Skill


def read_bundled(name: str, config: DefinitionConfig) -> Skill:
    """Return a bundled skill, which only the user can choose. Blocks: reads its file."""
    return _read(BUNDLED / "skills" / name / FILE_NAME, config)


def read_bundled_agent(name: str, config: DefinitionConfig) -> AgentSpec:
    """Return a bundled agent. Blocks: reads its file."""
    return _read_agent(BUNDLED / "agents" / f"{name}.md", config)


def _read(path: Path, config: DefinitionConfig) -> Skill:
    front_matter, text = read_front_matter(path.read_text("utf-8"))
    fields = parse_fields(front_matter, SkillFields)
    file = DefinitionFile(path=path, source="bundled", fields=fields, text=text)
    return structs.replace(build_skill(file, config), by_model=False)


def _read_agent(path: Path, config: DefinitionConfig) -> AgentSpec:
    return build_agent(_agent_file(path), config)


def _agent_file(path: Path) -> DefinitionFile[AgentFields]:
    front_matter, text = read_front_matter(path.read_text("utf-8"))
    fields = parse_fields(front_matter, AgentFields)
    return DefinitionFile(path=path, source="bundled", fields=fields, text=text)


def bundled_agent_files() -> Sequence[DefinitionFile[AgentFields]]:
    """Return the files of the agents that can be extended: bundled ones and the built-in agent.

    Blocks: reads them.
    """
    default_agent = DefinitionFile(
        path=BUNDLED / "agents",
        source="bundled",
        fields=AgentFields(
            name="default",
            description="The built-in agent",
            system_prompt_args={"ROLE": "", "ROLE_ADDITIONAL": ""},
        ),
        text=f"{DEFAULT_PROMPT}\n\n${{ROLE}}${{ROLE_ADDITIONAL}}",
    )
    return [
        default_agent,
        *(_agent_file(path) for path in sorted((BUNDLED / "agents").glob("*.md"))),
    ]


def all_bundled() -> Sequence[Skill]:
    """Return every bundled skill. Blocks: reads their files."""
    files = sorted((BUNDLED / "skills").glob(f"*/{FILE_NAME}"))
    return [_read(path, DefinitionConfig()) for path in files]


def all_bundled_agents() -> Sequence[AgentSpec]:
    """Return every bundled agent. Blocks: reads their files."""
    files = sorted((BUNDLED / "agents").glob("*.md"))
    return [_read_agent(path, DefinitionConfig()) for path in files]
