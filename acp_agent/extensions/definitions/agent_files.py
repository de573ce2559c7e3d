"""Read the formats of agent files: ours, which is also Claude's, and those of other programs.

opencode (the type `AgentConfig` in npm's @opencode-ai/sdk 1.19) names an agent after its file, and
has tools as switches. codex uses TOML, with the prompt in `developer_instructions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.fields import LONGEST_DESCRIPTION
from acp_agent.extensions.definitions.front_matter import read_front_matter
from acp_agent.extensions.definitions.skill_files import first_line, plain_name, read_toml
from acp_agent.extensions.definitions.tool_names import CHANGES, github_tools

_CODEX, _OPENCODE = ".codex", (".opencode", "opencode")
_GITHUB, _CURSOR, _GEMINI = (".github", ".copilot"), ".cursor", ".gemini"
# Their names for our fields.
_CODEX_FIELDS = {"model_reasoning_effort": "thought-level"}
_OPENCODE_FIELDS = {
    "steps": "max-requests", "maxSteps": "max-requests", "reasoningEffort": "thought-level",
}  # fmt: skip
_EDITS = frozenset({"edit", "write", "patch", "multiedit"})  # covered by one permission in opencode
_GEMINI_TOOL = re.compile(r"^mcp_(?!_)([^_]+)_")  # mcp_SERVER_TOOL
_GITHUB_LOOKS = frozenset({"argument-hint", "infer", "target"})
_LOOKS = ("color", "hidden", "nickname_candidates")  # only affect menus that do not exist here


_NO_AGENTS = frozenset({"README.md", "AGENTS.md", "CLAUDE.md"})


def agent_files(place: Path, names: list[str]) -> list[Path]:
    """Return the agent files in a folder.

    Args:
        place: the folder.
        names: the names of its entries, sorted.
    """
    suffix = ".toml" if place.parent.name == _CODEX else ".md"
    return [place / name for name in names if name.endswith(suffix) and name not in _NO_AGENTS]


def read_agent(
    path: Path, text: str, *, is_lenient: bool
) -> tuple[Mapping[str, object], str] | None:
    """Return the front matter of an agent, with our field names, and its prompt.

    Args:
        path: the path of the file.
        text: the text of the file.
        is_lenient: whether the name may come from the file name.

    Returns:
        None if the file disables the agent.

    Raises:
        ConfigError: the front matter is missing, or is not valid YAML or TOML.
    """
    program = path.parent.parent.name
    if program == _CODEX:
        fields, prompt = codex_fields(text)
        if not prompt:
            raise ConfigError("developer_instructions: expected text")
        return _named(path.stem, fields), prompt
    fields, prompt = read_front_matter(text)
    if program in _OPENCODE:
        off = fields.get("disable") is True or fields.get("disabled") is True
        return None if off else (opencode_fields(path.stem, fields), prompt)
    fields = {name: value for name, value in fields.items() if name not in _LOOKS}
    if fields.get("permissionMode") == "plan":
        fields = {**fields, "disallowedTools": [*_listed(fields.get("disallowedTools")), *CHANGES]}
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
    return _named(stem, fields) if is_lenient else fields, prompt


def _listed(names: object) -> list[object]:
    if isinstance(names, str):
        return [*names.split(",")]
    return names if isinstance(names, list) else []


def _github(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a GitHub agent with our names."""
    given = {name: one for name, one in fields.items() if name not in _GITHUB_LOOKS}
    if fields.get("infer") is False or given.pop("disable-model-invocation", None) is True:
        given["mode"] = "primary"
    elif given.get("mode") in ("agent", "ask", "edit"):  # belongs to a chat mode
        del given["mode"]
    given.pop("user-invocable", None)  # every agent can be chosen
    if isinstance(models := given.get("model"), list):  # the first one
        given["model"] = next(iter(models), None)
    if (agents := given.pop("agents", None)) is not None:
        given["subagents"] = agents
    if isinstance(given.get("tools"), str | list):
        several = [str(one).strip() for one in _listed(given["tools"])]
        ours = [name for one in several for name in github_tools(one)]
        given["tools"] = ours or several  # unknown names are reported
    return given


def _cursor(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a Cursor agent with our names."""
    given = {name: one for name, one in fields.items() if name not in {"readonly", "is_background"}}
    if fields.get("readonly") is True:
        given["disallowed-tools"] = [*CHANGES, "shell"]
    if given.get("model") == "fast":
        given["model"] = "small"
    return given


def _gemini(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of a Gemini agent with our names."""
    given = {name: one for name, one in fields.items() if name != "kind"}
    tools = given.get("tools")
    if isinstance(tools, list):
        given["tools"] = [
            _GEMINI_TOOL.sub(r"mcp__\1__", one) if isinstance(one, str) else one for one in tools
        ]
    return given


def _named(otherwise: str, fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return fields with a valid name and a description of valid length."""
    name, description = fields.get("name"), fields.get("description")
    if name is None or isinstance(name, str):
        fields = {**fields, "name": plain_name(name or otherwise)}
    if isinstance(description, str):
        fields = {**fields, "description": description[:LONGEST_DESCRIPTION]}
    return fields


def codex_fields(text: str) -> tuple[Mapping[str, object], str]:
    """Return the fields of an agent of codex as ours would have them, and its prompt.

    Raises:
        ConfigError: it is no TOML, or its prompt is no text.
    """
    given = read_toml(text)
    prompt = given.pop("developer_instructions", "")
    if not isinstance(prompt, str):
        raise ConfigError("developer_instructions: expected text")
    if given.pop("sandbox_mode", None) == "read-only":
        given["disallowed-tools"] = list(CHANGES)
    if prompt and given.get("description") is None:  # codex has it in its configuration
        given["description"] = first_line(prompt)
    known = {_CODEX_FIELDS.get(name, name): value for name, value in given.items()}
    return {name: value for name, value in known.items() if name not in _LOOKS}, prompt


def opencode_fields(named: str, fields: Mapping[str, object]) -> Mapping[str, object]:
    """Return the fields of an opencode agent with our names.

    Args:
        named: the agent's name: that of its file, or its key in a table.
        fields: the fields of the file or table entry.
    """
    given = {_OPENCODE_FIELDS.get(name, name): value for name, value in fields.items()}
    given["name"] = named  # overrides a `name` field
    switches = {**_switches(given.pop("tools", None)), **_switches(given.pop("permission", None))}
    if refused := [tool for name, on in switches.items() if not on for tool in _tools(name)]:
        given["disallowed-tools"] = [tool for tool in refused if tool != "*"]
    if switches.get("*") is False:
        given["tools"] = [tool for name, on in switches.items() if on for tool in _tools(name)]
    without = {"disable", "disabled", *_LOOKS}
    return _named(named, {name: one for name, one in given.items() if name not in without})


def _switches(given: object) -> dict[str, bool]:
    """Return the tools that are on; a tool denied in part is off, as parts cannot be denied."""
    if isinstance(given, str):  # one permission for all tools
        given = {"*": given}
    if not isinstance(given, dict):
        return {}
    return {str(name): not (_off(said) or _partly_off(said)) for name, said in given.items()}


def _off(said: object) -> bool:
    return said is False or said == "deny"


def _partly_off(said: object) -> bool:
    return isinstance(said, dict) and any(map(_off, said.values()))


def _tools(name: str) -> tuple[str, ...]:
    return CHANGES if name in _EDITS else (name,)
