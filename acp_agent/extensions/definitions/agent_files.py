"""The forms of an agent's file: ours and Claude's are one; opencode and codex have their own.

opencode (the type `AgentConfig` in npm's @opencode-ai/sdk 1.19) names an agent by its file, and has
tools as switches. codex has TOML, whose `developer_instructions` are the prompt.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.front_matter import read_front_matter

_CODEX, _OPENCODE = ".codex", ".opencode"
_CHANGES = ("edit", "write", "apply_patch")  # tools that a read-only agent does not have
# Their names of our fields.
_CODEX_FIELDS = {"model_reasoning_effort": "thought-level"}
_OPENCODE_FIELDS = {"steps": "max-requests", "maxSteps": "max-requests"}
_LOOKS = ("color", "hidden", "nickname_candidates")  # mean nothing where there is no such menu


def agent_files(place: Path, names: list[str]) -> list[Path]:
    """Return the files of agents in a folder.

    Args:
        place: the folder.
        names: what is in it, sorted.
    """
    suffix = ".toml" if place.parent.name == _CODEX else ".md"
    return [place / name for name in names if name.endswith(suffix) and name != "README.md"]


def read_agent(path: Path, text: str) -> tuple[Mapping[str, object], str] | None:
    """Return the front matter of an agent, as ours would have it, and its prompt.

    Args:
        path: of the file.
        text: of the file.

    Returns:
        None where the file says that it is turned off.

    Raises:
        ConfigError: it is no front matter, no YAML, or no TOML.
    """
    program = path.parent.parent.name
    if program == _CODEX:
        return _codex(text)
    fields, prompt = read_front_matter(text)
    if program == _OPENCODE:
        return None if fields.get("disable") is True else (_opencode(path, fields), prompt)
    return {name: value for name, value in fields.items() if name not in _LOOKS}, prompt


def _codex(text: str) -> tuple[Mapping[str, object], str]:
    try:
        given = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"it is not TOML ({error})") from None
    prompt = given.pop("developer_instructions", None)
    if not isinstance(prompt, str):
        raise ConfigError("developer_instructions: expected text")
    if given.pop("sandbox_mode", None) == "read-only":
        given["disallowed-tools"] = list(_CHANGES)
    known = {_CODEX_FIELDS.get(name, name): value for name, value in given.items()}
    return {name: value for name, value in known.items() if name not in _LOOKS}, prompt


def _opencode(path: Path, fields: Mapping[str, object]) -> Mapping[str, object]:
    given = {_OPENCODE_FIELDS.get(name, name): value for name, value in fields.items()}
    given.setdefault("name", path.stem.lower())
    refused = [
        *_refused(given.pop("tools", None), False),
        *_refused(given.pop("permission", None), "deny"),
    ]
    if refused:
        given["disallowed-tools"] = refused
    without = {"mode", "disable", *_LOOKS}
    return {name: value for name, value in given.items() if name not in without}


def _refused(switches: object, value: object) -> Iterator[str]:
    """Yield the tools that have a value; what a part of a tool is allowed, the gate asks about."""
    if isinstance(switches, dict):
        yield from (str(name) for name, said in switches.items() if said == value)
