"""Build skills and agents from their files, the agents they extend, and the configuration."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from acp_agent.config.types import DefinitionConfig
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.fields import (
    MAX_HINT_LENGTH,
    AgentFields,
    RunFields,
    SkillFields,
)
from acp_agent.extensions.definitions.locations import Source
from acp_agent.extensions.definitions.tool_names import may_exist, normalize_tools, restricted_tool
from acp_agent.extensions.definitions.types import (
    MEMORY,
    SMALL,
    TASK,
    AgentSpec,
    Argument,
    RunSettings,
    Skill,
    fill_variables,
)
from acp_agent.platform.decoding import struct_fields

INHERIT = "inherit"  # means the session's model
_SMALL_NAMES = frozenset({SMALL, "haiku"})  # haiku is Claude's small model

Fields = TypeVar("Fields", bound=RunFields)

_MODEL_REFERENCE = re.compile(r"[^/\s]+/\S")
MAX_EXTENDS = 10  # agents in one chain of `extends`

_OUTSIDE_BRACES = re.compile(r",(?![^{]*\})")
_MAX_PATTERNS = 100  # of one skill


class DefinitionFile(Struct, Generic[Fields], frozen=True, kw_only=True):
    """A parsed file: its front matter, and the Markdown below it, which begins at `line`.

    `file_text` is the text of the file. `entry` is the path of the definition in a table, such as
    ("agent", "reviewer"); it is empty for a file with a single definition.
    """

    path: Path
    source: Source
    fields: Fields
    text: str
    line: int = 1
    file_text: str = ""
    entry: tuple[str, ...] = ()


def build_skill(file: DefinitionFile[SkillFields], config: DefinitionConfig) -> Skill:
    """Return the skill of a file.

    Raises:
        ConfigError: the description is empty, or a flow has no valid chart.
    """
    fields = file.fields
    flow = None
    if fields.type == "flow":
        from acp_agent.extensions.flows.find import find_flow  # noqa: PLC0415 - for flows only

        flow = find_flow(file.text, file.line)
    hint = fields.argument_hint
    # YAML reads `argument-hint: [file]` as a list; it is used as written.
    hint = f"[{', '.join(hint)}]" if isinstance(hint, list) else hint
    output_folder = None if fields.output is None else fields.output.directory or None
    return Skill(
        name=fields.name,
        description=_description(fields.description),
        text="\n\n".join([file.text, *_describe_input_and_output(fields)]),
        path=file.path,
        source=file.source,
        hint=printable_line(hint or _hint(fields))[:MAX_HINT_LENGTH].rstrip() or None,
        uses=msgspec.structs.replace(_run_settings(fields, config), output_folder=output_folder),
        by_model=not fields.disable_model_invocation,
        by_user=fields.user_invocable is not False,
        runs_in_subagent=fields.context == "fork",
        agent=fields.agent.strip().lower() or None if fields.agent else None,
        paths=_patterns(fields.paths or ()),
        inputs=_inputs(fields),
        flow=flow,
        hooks=fields.hooks or {},
    )


def _patterns(value: str | Sequence[str]) -> tuple[str, ...]:
    """Return patterns of files; none if one of them matches all files."""
    texts = [value] if isinstance(value, str) else value
    words = (word.strip() for text in texts for word in _OUTSIDE_BRACES.split(text))
    patterns = tuple(filter(None, words))[:_MAX_PATTERNS]
    return () if not {"**", "**/*"}.isdisjoint(patterns) else patterns


def build_agent(file: DefinitionFile[AgentFields], config: DefinitionConfig) -> AgentSpec:
    """Return the agent of a file to which `AgentInheritance.resolve` has been applied.

    Raises:
        ConfigError: there is no description.
    """
    prompt = fill_variables(file.text, file.fields.system_prompt_args or {})
    uses = _run_settings(file.fields, config)
    if scope := file.fields.memory:
        prompt = f"{prompt}\n\n{_describe_memory(file.fields.name, scope)}"
        tools = None if uses.tools is None else (*uses.tools, MEMORY)
        uses = msgspec.structs.replace(uses, tools=tools, memory=True)
    return AgentSpec(
        name=file.fields.name,
        description=_description(file.fields.description),
        prompt=prompt,
        path=file.path,
        source=file.source,
        uses=uses,
        takes_tasks=file.fields.mode != "primary",
        subagents=_subagents(file.fields),
        has_worktree=file.fields.isolation is not None,
        skills=_split_names(file.fields.skills or ()),
        hooks=file.fields.hooks or {},
    )


def _describe_memory(name: str, scope: str) -> str:
    """Return the instruction for an agent with a memory."""
    scope = "user" if scope == "user" else "project"
    return (
        f"Your tool {MEMORY} keeps notes for later sessions. Read your note `{name}` of the scope "
        f"{scope} first, if there is one, and update it when you learn something of lasting use."
    )


def _subagents(fields: AgentFields) -> tuple[str, ...]:
    if fields.subagents is not None:
        return _split_names(fields.subagents)
    return ("*",) if TASK in normalize_tools(fields.tools or ()) else ()


def _split_names(value: str | Sequence[str]) -> tuple[str, ...]:
    names = value.split(",") if isinstance(value, str) else value
    return tuple(name.strip() for name in names if name.strip())


def _hint(fields: SkillFields) -> str:
    """Return a skill's inputs as the hint of its command."""
    names = (input_.name if input_.required else f"[{input_.name}]" for input_ in _inputs(fields))
    return " ".join(names) or ("" if fields.input is None else fields.input.description)


def _inputs(fields: SkillFields) -> tuple[Argument, ...]:
    """Return a skill's inputs; names are unique."""
    argument_names = fields.arguments or []
    names = argument_names.split() if isinstance(argument_names, str) else argument_names
    inputs = [*(fields.input.args if fields.input else ()), *map(Argument, names)]
    # A number would be confused with a position.
    return tuple({input_.name: input_ for input_ in inputs if input_.name.isidentifier()}.values())


def _describe_input_and_output(fields: SkillFields) -> Iterator[str]:
    """Yield a skill's input and output as text for the model."""
    input_, output = fields.input, fields.output
    if input_ is not None:
        lines = [f"- {_describe_argument(argument)}" for argument in input_.args]
        yield "\n".join(filter(None, [f"Input: {input_.description}".rstrip(), *lines]))
    if output is not None:
        folder = f"Write it into the folder {output.directory}." if output.directory else ""
        description = (
            f"{output.description.rstrip('. ')}." if output.description.strip(". ") else ""
        )
        yield " ".join(filter(None, ["Output:", description, folder]))


def _describe_argument(argument: Argument) -> str:
    details = ", ".join(
        filter(None, [argument.type, "required" if argument.required else "optional"])
    )
    return (
        f"{argument.name} ({details}){f': {argument.description}' if argument.description else ''}"
    )


def find_warnings(fields: RunFields, config: DefinitionConfig) -> Iterator[ConfigError]:
    """Yield the parts of a file that cannot be applied, although the file can be used."""
    if config.model is None and fields.model is not None and _unknown(fields.model):
        yield ConfigError(
            f"model: {printable_line(fields.model, 80)} is not known here, so the session's model "
            "is used; write provider/name, small or inherit"
        )
    for tool in normalize_tools(fields.tools or ()):
        if restricted_tool(tool) is not None:
            yield ConfigError(
                f"tools: {printable_line(tool, 80)} is a part of a tool, so it is left out; name "
                "the tool alone"
            )
    tools = [name for name in normalize_tools(fields.tools or ()) if restricted_tool(name) is None]
    if tools and not any(map(may_exist, tools)):
        yield ConfigError(
            f"tools: {printable_line(', '.join(tools), 80)} is not known here, so it has no tools; "
            "name tools of this program, such as read and shell, or take the field out"
        )
    unknown = [name for name in tools if not may_exist(name)]
    if unknown and len(unknown) < len(tools):
        yield ConfigError(
            f"tools: {printable_line(', '.join(unknown), 200)} is not known here and left out; "
            "name a tool of this program or of an MCP server, or take it out"
        )
    for tool in normalize_tools(fields.disallowed_tools or ()):
        if restricted_tool(tool) is not None:
            yield ConfigError(
                f"disallowed-tools: {printable_line(tool, 80)} is a part of a tool, so all of the "
                "tool is refused; name the tool alone"
            )


def _run_settings(fields: RunFields, config: DefinitionConfig) -> RunSettings:
    tools = None
    if fields.tools is not None:
        tools = tuple(
            tool for tool in normalize_tools(fields.tools) if restricted_tool(tool) is None
        )
    # A part of a tool cannot be refused here, so the whole tool is refused.
    without = tuple(
        restricted_tool(tool) or tool for tool in normalize_tools(fields.disallowed_tools or ())
    )
    return RunSettings(
        model=_model(fields.model) if config.model is None else config.model,
        thought_level=config.thought_level or fields.thought_level,
        temperature=fields.temperature if config.temperature is None else config.temperature,
        max_output=config.max_output_tokens or fields.max_output_tokens,
        tools=tools,
        without=without,
        max_requests=fields.max_requests,
    )


def _model(model: str | None) -> str | None:
    if model in _SMALL_NAMES:
        return SMALL
    return None if model is None or model == INHERIT or _unknown(model) else model


def _unknown(model: str) -> bool:
    return model not in {*_SMALL_NAMES, INHERIT} and _MODEL_REFERENCE.match(model) is None


def _description(text: str | None) -> str:
    description = printable_line(text or "")
    if not description:
        raise ConfigError("description: it is missing; add it to the front matter")
    return description


AgentFile = DefinitionFile[AgentFields]


class AgentInheritance:
    """All agent files, including those that others override.

    Args:
        files: from the most general to the most specific.
    """

    def __init__(self, files: Iterable[AgentFile]) -> None:
        self._by_name: dict[str, list[AgentFile]] = {}
        for file in files:
            self._by_name.setdefault(file.fields.name, []).append(file)

    def by_name(self) -> Iterator[list[AgentFile]]:
        """Return the files of each name, from the most specific to the most general."""
        return (files[::-1] for files in self._by_name.values())

    def resolve(self, file: AgentFile) -> AgentFile:
        """Return an agent's file with missing fields filled in from the agent that it extends.

        Raises:
            ConfigError: it extends a missing agent, or itself through others.
        """
        chain = [file]
        while (parent := self._parent(chain[-1])) is not None:
            chain.append(parent)
            if any(parent is ancestor for ancestor in chain[:-1]):
                names = ", ".join(ancestor.fields.name for ancestor in chain)
                raise ConfigError(f"extends: it goes in a circle ({names}); take one out")
            if len(chain) > MAX_EXTENDS:
                raise ConfigError(
                    f"extends: it goes over more than {MAX_EXTENDS} agents; shorten it"
                )
        result = chain.pop()
        while chain:
            result = _merged(result, chain.pop())
        return result

    def _parent(self, file: AgentFile) -> AgentFile | None:
        """Return the file that a file extends; its own name means the file that it overrides."""
        name = file.fields.extends
        if name is None:
            return None
        files = self._by_name.get(name, [])
        if name == file.fields.name:
            files = files[
                : next(index for index, candidate in enumerate(files) if candidate is file)
            ]
        if not files:
            raise ConfigError(
                f"extends: there is no agent {name} to extend; add it, or fix the name"
            )
        return files[-1]


def _merged(parent: AgentFile, child: AgentFile) -> AgentFile:
    names = (field.name for field in struct_fields(AgentFields))
    child_values = {
        name: value for name in names if (value := getattr(child.fields, name)) is not None
    }
    values = parent.fields.system_prompt_args
    if values and child.fields.system_prompt_args:  # keep the parent's other values
        child_values["system_prompt_args"] = values | child.fields.system_prompt_args
    return msgspec.structs.replace(
        child,
        fields=msgspec.structs.replace(parent.fields, **child_values),
        text=child.text or parent.text,
    )
