"""The types of the front matter of skills and agents, from which JSON Schemas are generated.

Equivalent fields of other programs are accepted under their names; all other fields are reported by
`unused_fields`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import Meta, Struct

from acp_agent.config.model_types import ThoughtLevel
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.types import AgentMode, Argument
from acp_agent.platform.decoding import convert, struct_fields

# (?!\n), because Python's $ also matches before a final line break.
NAME_PATTERN = r"^[a-z0-9]+(-[a-z0-9]+)*$(?!\n)"
MAX_NAME_LENGTH = 64
MAX_DESCRIPTION_LENGTH = 1_024
MAX_HINT_LENGTH = 200

# The expected value, for error messages.
_TEXT = {"wants": "text"}
_NAME = {"wants": "a name of lowercase letters, digits and hyphens, at most 64"}
_DESCRIPTION = {"wants": "text of at most 1,024 characters"}
_NAMES = {"wants": "a list of names, or names with commas between"}
_ANSWER = {"wants": "true or false"}

Name = Annotated[str, Meta(pattern=NAME_PATTERN, max_length=MAX_NAME_LENGTH)]
Description = Annotated[str, Meta(min_length=1, max_length=MAX_DESCRIPTION_LENGTH)]
Names = str | list[str]
# Fields whose wrong values are reported, and the file is used.
_NOTES = frozenset(
    {"allowed-tools", "compatibility", "isolation", "license", "metadata", "version"}
)
# Fields whose wrong values other programs ignore, and that allow nothing.
_IGNORED_BY_OTHERS = frozenset({"context", "memory", "paths", "type"})
# Fields in which authors describe a file; no program uses them.
_FOR_PEOPLE = frozenset(
    {
        "author", "authors", "categories", "category", "color", "colour", "created", "date",
        "date_added", "display-name", "display_name", "displayName", "emoji", "homepage", "icon",
        "keywords", "last-updated", "last_updated", "license", "maintainer", "metadata", "origin",
        "owner", "repo", "repository", "risk", "source", "tags", "title", "updated", "version",
    }
)  # fmt: skip
# Names of our fields in other programs or in earlier versions of this one.
FIELD_ALIASES: Mapping[str, str] = {
    "allowedTools": "allowed-tools",
    "allowed_tools": "allowed-tools",
    "argument_hint": "argument-hint",
    "disable_model_invocation": "disable-model-invocation",
    "effort": "thought-level",
    "disallowedTools": "disallowed-tools",
    "exclude_tools": "disallowed-tools",
    "max-output": "max-output-tokens",
    "maxTurns": "max-requests",
    "max_turns": "max-requests",
    "system_prompt_args": "system-prompt-args",
    "user-invokable": "user-invocable",
    "user_invocable": "user-invocable",
}


class RunFields(Struct, frozen=True, kw_only=True, rename="kebab"):
    """What a skill or an agent wants to be run with."""

    model: Annotated[
        str | None,
        Meta(
            description="provider/name, `small` for the small model, or `inherit` for the "
            "session's, which is what it gets without.",
            examples=["small", "openai/gpt-5-mini", "inherit"],
            extra=_TEXT,
        ),
    ] = None
    thought_level: Annotated[
        ThoughtLevel | None,
        Meta(
            description="How much the model reasons.",
            extra={"wants": "one of off, minimal, low, medium, high, xhigh, max"},
        ),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(
            description="How much chance there is in the model's answers.",
            extra={"wants": "a number from 0 to 2"},
        ),
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=100_000_000)] | None,
        Meta(
            description="The longest answer of the model, in tokens.",
            extra={"wants": "a whole number from 1 to 100,000,000"},
        ),
    ] = None
    tools: Annotated[
        Names | None,
        Meta(
            description="The tools it may use, `*` standing for any letters; without, all that "
            "the session has.",
            extra=_NAMES,
        ),
    ] = None
    disallowed_tools: Annotated[
        Names | None, Meta(description="Tools it may not use.", extra=_NAMES)
    ] = None
    max_requests: Annotated[
        Annotated[int, Meta(ge=1, le=10_000)] | None,
        Meta(
            description="How many requests to the model one run may make.",
            extra={"wants": "a whole number from 1 to 10,000"},
        ),
    ] = None
    hooks: Annotated[
        dict[str, Any] | None,
        Meta(
            description="Hooks that run while it is in use: a list for each event, as in "
            ".claude/settings.json.",
            extra={"wants": "events with a list each"},
        ),
    ] = None


class Input(Struct, frozen=True):
    """What a skill is given."""

    description: str = ""
    args: list[Argument] = []


class Output(Struct, frozen=True):
    """What a skill makes."""

    description: str = ""
    directory: str = ""


class SkillFields(RunFields, frozen=True, kw_only=True, rename="kebab"):
    """The front matter of a SKILL.md (https://agentskills.io/specification), and some more."""

    name: Annotated[Name, Meta(description="The name of the skill's folder.", extra=_NAME)]
    description: Annotated[
        Description, Meta(description="What it does, and when it is of use.", extra=_DESCRIPTION)
    ]
    license: Annotated[
        str | None, Meta(description="Its licence, or the file that has it.", extra=_TEXT)
    ] = None
    compatibility: Annotated[
        str | None, Meta(description="What it needs to be there.", extra=_TEXT)
    ] = None
    metadata: Annotated[
        dict[str, Any] | None,
        Meta(description="What other programs know of it.", extra={"wants": "names with values"}),
    ] = None
    allowed_tools: Annotated[
        Names | None,
        Meta(
            description="Tools that other programs let it use unasked. Here it allows nothing.",
            extra=_NAMES,
        ),
    ] = None
    argument_hint: Annotated[
        Names | None,
        Meta(description="What may follow its command.", examples=["[file]"], extra=_TEXT),
    ] = None
    disable_model_invocation: Annotated[
        bool | None, Meta(description="Whether only the user may choose it.", extra=_ANSWER)
    ] = None
    user_invocable: Annotated[
        bool | None, Meta(description="Whether it is a command of the user's.", extra=_ANSWER)
    ] = None
    context: Annotated[
        Literal["fork"] | None,
        Meta(
            description="`fork`: a subagent runs it, apart from the conversation.",
            extra={"wants": "fork, or nothing"},
        ),
    ] = None
    agent: Annotated[str | None, Meta(description="The agent that runs it then.", extra=_TEXT)] = (
        None
    )
    arguments: Annotated[
        str | list[str] | None,
        Meta(
            description="Names for what follows its command, in order: `$NAME` in the text stands "
            "for the word.",
            extra={"wants": "a list of names, or names with blanks between"},
        ),
    ] = None
    paths: Annotated[
        Names | None,
        Meta(
            description="Patterns of files; the skill is offered when the model uses one of them.",
            extra=_NAMES,
        ),
    ] = None
    version: Annotated[
        str | int | float | None, Meta(description="Its version, for people.", extra=_TEXT)
    ] = None
    type: Annotated[
        Literal["standard", "flow"] | None,
        Meta(
            description="`flow`: the first Mermaid or D2 chart in the text drives the turns.",
            extra={"wants": "standard or flow"},
        ),
    ] = None
    input: Annotated[
        Input | None,
        Meta(
            description="Its input: the hint of its command if that has none; the model sees it.",
            extra={"wants": "a description, and args with a name, a type and required each"},
        ),
    ] = None
    output: Annotated[
        Output | None,
        Meta(
            description="What it is to make, and the folder for it; the model sees it.",
            extra={"wants": "a description and a directory"},
        ),
    ] = None


class AgentFields(RunFields, frozen=True, kw_only=True, rename="kebab"):
    """The front matter of an agent's file."""

    name: Annotated[Name, Meta(description="By which it is chosen.", extra=_NAME)]
    description: Annotated[
        Description | None,
        Meta(
            description="What it is good at, and when it is of use. Required, unless it extends "
            "another.",
            extra=_DESCRIPTION,
        ),
    ] = None
    extends: Annotated[
        Name | None, Meta(description="The agent that has what this one does not say.", extra=_NAME)
    ] = None
    subagents: Annotated[
        Names | None,
        Meta(
            description="Agents that it may give tasks to, `*` standing for any letters. Without, "
            "all if its tools name `task`, else none.",
            extra=_NAMES,
        ),
    ] = None
    skills: Annotated[
        Names | None, Meta(description="Skills whose texts follow its prompt.", extra=_NAMES)
    ] = None
    memory: Annotated[
        Literal["user", "project", "local"] | None,
        Meta(
            description="It keeps notes for later sessions, about all projects or this one.",
            extra={"wants": "user, project or local"},
        ),
    ] = None
    isolation: Annotated[
        Literal["worktree"] | None,
        Meta(description="It works in its own git worktree.", extra={"wants": "worktree"}),
    ] = None
    mode: Annotated[
        AgentMode | None,
        Meta(
            description="`primary`: tasks are not given to it. `subagent` and `all`: they are.",
            extra={"wants": "subagent, primary or all"},
        ),
    ] = None
    system_prompt_args: Annotated[
        dict[str, str | int | float | bool] | None,
        Meta(
            description="What stands in the prompt in the place of `${NAME}`.",
            extra={"wants": "names with texts or numbers"},
        ),
    ] = None


_Fields = TypeVar("_Fields", SkillFields, AgentFields)


def parse_fields(front_matter: Mapping[str, object], kind: type[_Fields]) -> _Fields:
    """Convert front matter to one of the types; a field without a value counts as missing.

    Raises:
        ConfigError: a field is missing or wrong; the message names the first one.
    """
    fields = normalize_fields(
        {name: value for name, value in front_matter.items() if value is not None}
    )
    if "tools" in front_matter and "tools" not in fields:
        # It is unclear whether all or no tools are meant.
        raise ConfigError("tools: there is nothing behind it; write [] for none, or take it out")
    # The author's spelling of fields that have two names.
    spelled = {FIELD_ALIASES[name]: name for name in front_matter if name in FIELD_ALIASES}
    try:
        return convert(fields, kind)
    except msgspec.ValidationError:
        raise _first_mistake(fields, kind, spelled) from None


def unused_fields(front_matter: Mapping[str, object], kind: type[RunFields]) -> list[str]:
    """Return the fields that have no meaning here, except those that have none in any program."""
    field_names = {field.encode_name for field in struct_fields(kind)} | _FOR_PEOPLE
    return sorted(name for name in front_matter if FIELD_ALIASES.get(name, name) not in field_names)


def drop_invalid_notes(
    front_matter: Mapping[str, object], kind: type[RunFields], *, is_lenient: bool = False
) -> tuple[Mapping[str, object], list[ConfigError]]:
    """Return front matter without wrong values of fields without effect here, and the errors.

    A description that is too long is cut.

    Args:
        is_lenient: whether the file is for another program, which ignores other values of some
            fields; these are dropped without an error.
    """
    fields = dict(front_matter)
    problems = []
    optional = _NOTES | _IGNORED_BY_OTHERS if is_lenient else _NOTES
    description = fields.get("description")
    if isinstance(description, str) and len(description) > MAX_DESCRIPTION_LENGTH:
        fields["description"] = description[:MAX_DESCRIPTION_LENGTH]
        problems.append(
            ConfigError(
                "description: it has more than 1,024 characters, of which the first are used; "
                "shorten it"
            )
        )
    for field in struct_fields(kind):
        for name in (name for name in front_matter if normal_name(name) == field.encode_name):
            if field.encode_name in optional and fields[name] is not None:
                try:
                    convert(fields[name], field.type)
                except msgspec.ValidationError:
                    value = fields.pop(name)
                    if field.encode_name in _NOTES:
                        problems.append(_wrong_value(name, value, field.type))
    return fields, problems


def normal_name(name: str) -> str:
    """Return our name of a field."""
    return FIELD_ALIASES.get(name, name)


def _first_mistake(
    fields: dict[str, object], kind: type[Struct], spelled: Mapping[str, str]
) -> ConfigError:
    """Return a readable error for the first wrong field; msgspec's message is too technical."""
    for field in struct_fields(kind):
        name = field.encode_name
        if name not in fields:
            if field.required:
                return ConfigError(f"{name}: it is missing; add it to the front matter")
            continue
        try:
            convert(fields[name], field.type)
        except msgspec.ValidationError:
            return _wrong_value(spelled.get(name, name), fields[name], field.type)
    raise AssertionError(f"each field of {kind.__name__} is right, but not all")


def _wrong_value(name: str, value: object, expected: object) -> ConfigError:
    wants = next(
        meta.extra["wants"]
        for meta in get_args(expected)
        if isinstance(meta, Meta) and meta.extra is not None
    )
    return ConfigError(f"{name}: expected {wants}, found {_describe_value(value)}")


def _describe_value(value: object) -> str:
    """Return a short description of the value that was found."""
    if isinstance(value, str):
        shortened = " ".join(value.split())
        return f'"{shortened if len(shortened) <= 40 else f"{shortened[:37]}..."}"'
    kinds = {list: "a list", dict: "names with values", bool: str(value).lower()}
    return kinds.get(type(value)) or " ".join(str(value).split())[:40]


def normalize_fields(front_matter: Mapping[str, object]) -> dict[str, object]:
    """Return front matter with our field names, which take precedence over other spellings."""
    normalized = {normal_name(name): value for name, value in front_matter.items()}
    normalized |= {name: value for name, value in front_matter.items() if name not in FIELD_ALIASES}
    arguments = normalized.get("arguments")
    if isinstance(arguments, list):  # other programs describe each
        normalized["arguments"] = [
            argument.get("name") if isinstance(argument, dict) else argument
            for argument in arguments
        ]
    for name in ("input", "output"):
        if isinstance(normalized.get(name), str):
            normalized[name] = {"description": normalized[name]}
    return normalized
