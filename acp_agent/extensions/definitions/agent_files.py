"""Read the formats of agent files: ours, which is also Claude's, and those of other programs.

opencode (the type `AgentConfig` in npm's @opencode-ai/sdk 1.19) names an agent after its path, and
has tools as switches. codex uses TOML, with the prompt in `developer_instructions`. A mode of Roo
(`packages/types/src/mode.ts` of RooCodeInc/Roo-Code) has groups of tools.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.fields import MAX_DESCRIPTION_LENGTH
from acp_agent.extensions.definitions.front_matter import read_front_matter
from acp_agent.extensions.definitions.skill_files import (
    files_below,
    first_line,
    path_name,
    plain_name,
    read_toml,
)
from acp_agent.extensions.definitions.tool_names import CHANGES, github_tools

_CODEX, _OPENCODE = ".codex", (".opencode", "opencode")
_GITHUB, _CURSOR, _GEMINI = (".github", ".copilot"), ".cursor", ".gemini"
# Their names for our fields.
_CODEX_FIELDS = {"model_reasoning_effort": "thought-level"}
_OPENCODE_FIELDS = {
    "steps": "max-requests", "maxSteps": "max-requests", "reasoningEffort": "thought-level",
}  # fmt: skip
# Covered by one permission in opencode.
_EDIT_TOOLS = frozenset({"edit", "write", "patch", "multiedit"})
_GEMINI_TOOL = re.compile(r"^mcp_(?!_)([^_]+)_")  # mcp_SERVER_TOOL
_GITHUB_IGNORED_FIELDS = frozenset({"argument-hint", "infer", "target"})
# Only affect menus that do not exist here.
_IGNORED_FIELDS = ("color", "hidden", "nickname_candidates")


# Groups of Roo's tools, and ours that a mode without the group does not have.
_ROO_GROUPS: Mapping[str, tuple[str, ...]] = {
    "read": ("read", "list", "glob", "grep"), "edit": CHANGES, "command": ("shell", "background"),
    "mcp": ("mcp__*",),
}  # fmt: skip
_ROO_IGNORED_FIELDS = frozenset({"groups", "iconName", "name", "slug", "source", "whenToUse"})


# Programs that use an agent's file without front matter, under the name of the file.
_WITHOUT_FRONT_MATTER = frozenset({*_OPENCODE, *_GITHUB, _CURSOR})
_NO_AGENTS = frozenset({"README.md", "AGENTS.md", "CLAUDE.md"})


def agent_files(folder: Path, names: list[str]) -> list[Path]:
    """Return the agent files in a folder and its subfolders. Raises OSError."""
    suffix = ".toml" if folder.parent.name == _CODEX else ".md"
    return [path for path in files_below(folder, names, suffix) if path.name not in _NO_AGENTS]


def read_agent(
    path: Path, text: str, location: Path, *, is_lenient: bool
) -> tuple[Mapping[str, object], str] | None:
    """Return the front matter of an agent, with our field names, and its prompt.

    Args:
        location: the folder of agents that contains the file, or the file itself.
        is_lenient: whether the name may come from the file name.

    Returns:
        None if the file disables the agent, or is a document in a subfolder.

    Raises:
        ConfigError: the front matter is missing, or is not valid YAML or TOML.
    """
    program = location.parent.name
    if program == _CODEX:
        fields, prompt = codex_fields(text)
        if not prompt:
            raise ConfigError("developer_instructions: expected text")
        return _with_valid_name(path.stem, fields), prompt
    is_below = location not in (path, path.parent)
    if is_below and program not in _OPENCODE and not text.startswith("---"):
        return None
    if program in _WITHOUT_FRONT_MATTER and not text.startswith("---"):
        fields, prompt = {"description": first_line(text)}, text.strip()
    else:
        fields, prompt = read_front_matter(text)
    if program in _OPENCODE:
        is_disabled = fields.get("disable") is True or fields.get("disabled") is True
        fields = {"description": first_line(prompt), **fields}
        return None if is_disabled else (opencode_fields(path_name(path, location), fields), prompt)
    fields = {name: value for name, value in fields.items() if name not in _IGNORED_FIELDS}
    if fields.get("permissionMode") == "plan":
        fields = {
            **fields,
            "disallowedTools": [*_split_names(fields.get("disallowedTools")), *CHANGES],
        }
        del fields["permissionMode"]
    if program in _GITHUB:
        fields = _github({"description": first_line(prompt), **fields})
    elif program == _CURSOR:
        fields = _cursor(fields)
    elif program == _GEMINI:
        if fields.get("kind") == "remote":
            raise ConfigError("kind: an agent at another address is not used here; take it out")
        fields = _gemini(fields)
    stem = path.stem.removesuffix(".agent").removesuffix(".chatmode")
    return _with_valid_name(stem, fields) if is_lenient else fields, prompt


def _split_names(names: object) -> list[object]:
    if isinstance(names, str):
        return [*names.split(",")]
    return names if isinstance(names, list) else []


def _github(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a GitHub agent with our names."""
    renamed = {name: value for name, value in fields.items() if name not in _GITHUB_IGNORED_FIELDS}
    if fields.get("infer") is False or renamed.pop("disable-model-invocation", None) is True:
        renamed["mode"] = "primary"
    elif renamed.get("mode") in ("agent", "ask", "edit"):  # belongs to a chat mode
        del renamed["mode"]
    renamed.pop("user-invocable", None)  # every agent can be chosen
    if isinstance(models := renamed.get("model"), list):  # the first one
        renamed["model"] = next(iter(models), None)
    if (agents := renamed.pop("agents", None)) is not None:
        renamed["subagents"] = agents
    if isinstance(renamed.get("tools"), str | list):
        several = [str(value).strip() for value in _split_names(renamed["tools"])]
        converted = [name for value in several for name in github_tools(value)]
        renamed["tools"] = converted or several  # unknown names are reported
    return renamed


def _cursor(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a Cursor agent with our names."""
    renamed = {
        name: value for name, value in fields.items() if name not in {"readonly", "is_background"}
    }
    if fields.get("readonly") is True:
        renamed["disallowed-tools"] = [*CHANGES, "shell"]
    if renamed.get("model") == "fast":
        renamed["model"] = "small"
    return renamed


def _gemini(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a Gemini agent with our names."""
    renamed = {name: tool for name, tool in fields.items() if name != "kind"}
    tools = renamed.get("tools")
    if isinstance(tools, list):
        renamed["tools"] = [
            _GEMINI_TOOL.sub(r"mcp__\1__", tool) if isinstance(tool, str) else tool
            for tool in tools
        ]
    return renamed


def _with_valid_name(otherwise: str, fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return fields with a valid name and a description of valid length."""
    name, description = fields.get("name"), fields.get("description")
    if name is None or isinstance(name, str):
        fields = {**fields, "name": plain_name(name or otherwise)}
    if isinstance(description, str):
        fields = {**fields, "description": description[:MAX_DESCRIPTION_LENGTH]}
    return fields


def codex_fields(text: str) -> tuple[Mapping[str, object], str]:
    """Return the fields of an agent of codex as ours would have them, and its prompt.

    Raises:
        ConfigError: it is no TOML, or its prompt is no text.
    """
    table = read_toml(text)
    prompt = table.pop("developer_instructions", "")
    if not isinstance(prompt, str):
        raise ConfigError("developer_instructions: expected text")
    if table.pop("sandbox_mode", None) == "read-only":
        table["disallowed-tools"] = list(CHANGES)
    if prompt and table.get("description") is None:  # codex has it in its configuration
        table["description"] = first_line(prompt)
    fields = {_CODEX_FIELDS.get(name, name): value for name, value in table.items()}
    return {name: value for name, value in fields.items() if name not in _IGNORED_FIELDS}, prompt


def opencode_fields(agent_name: str, fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of an opencode agent with our names.

    Args:
        agent_name: the agent's name: that of its file, or its key in a table.
        fields: the fields of the file or table entry.
    """
    renamed = {_OPENCODE_FIELDS.get(name, name): value for name, value in fields.items()}
    renamed["name"] = agent_name  # overrides a `name` field
    switches = {
        **_switches(renamed.pop("tools", None)),
        **_switches(renamed.pop("permission", None)),
    }
    if refused := [tool for name, on in switches.items() if not on for tool in _tools(name)]:
        renamed["disallowed-tools"] = [tool for tool in refused if tool != "*"]
    if switches.get("*") is False:
        renamed["tools"] = [tool for name, on in switches.items() if on for tool in _tools(name)]
    without = {"disable", "disabled", *_IGNORED_FIELDS}
    return _with_valid_name(
        agent_name, {name: field for name, field in renamed.items() if name not in without}
    )


def roo_fields(slug: str, mode: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a mode of Roo with our names; an edit of some files only is refused."""
    renamed = {name: value for name, value in mode.items() if name not in _ROO_IGNORED_FIELDS}
    groups = mode.get("groups")
    granted = groups if isinstance(groups, list) else []
    refused = [
        tool for group, tools in _ROO_GROUPS.items() if group not in granted for tool in tools
    ]
    if refused:
        renamed["disallowed-tools"] = refused
    renamed["description"] = mode.get("whenToUse") or mode.get("description") or mode.get("name")
    return _with_valid_name(slug, renamed)


def _switches(setting: object) -> dict[str, bool]:
    """Return the tools that are on; a tool denied in part is off, as parts cannot be denied."""
    if isinstance(setting, str):  # one permission for all tools
        setting = {"*": setting}
    if not isinstance(setting, dict):
        return {}
    return {
        str(name): not (_is_denied(value) or _is_partly_denied(value))
        for name, value in setting.items()
    }


def _is_denied(setting: object) -> bool:
    return setting is False or setting == "deny"


def _is_partly_denied(setting: object) -> bool:
    return isinstance(setting, dict) and any(map(_is_denied, setting.values()))


def _tools(name: str) -> tuple[str, ...]:
    return CHANGES if name in _EDIT_TOOLS else (name,)
