"""Read the formats of skill files: SKILL.md, commands of other programs, and zhi's YAML.

Claude (2.1.80) takes a skill's name from its folder and a command's name from its path, and uses
the first line of the text if there is no description. zhi (github.com/chan-kinghin/zhicli) has one
YAML file per skill, with the text in `system_prompt`.
"""

from __future__ import annotations

import os
import re
import tomllib
import unicodedata
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.fields import MAX_DESCRIPTION_LENGTH, MAX_NAME_LENGTH
from acp_agent.extensions.definitions.front_matter import parse_yaml, read_front_matter
from acp_agent.platform.trusted_files import path_exists

FILE_NAME = "SKILL.md"
YAML_SUFFIXES = (".yaml", ".yml")
# Names of folders of commands.
COMMANDS = frozenset({"commands", "command", "prompts", "workflows"})
_GEMINI = ".gemini"
_ONE_BASED = frozenset({".codex", ".opencode", "opencode"})  # where `$1` is the first word
_NUMBER = re.compile(r"\$([1-9])(?!\d)")
# Folders of programs that require less than the standard of skills.
PROGRAMS = frozenset(
    {
        ".claude", ".clinerules", ".codex", ".copilot", ".cursor", ".gemini", ".github",
        ".opencode", ".roo", ".windsurf", "opencode",
    }
)  # fmt: skip
_GITHUB = ".github"
_INPUT = re.compile(r"\$\{input:([A-Za-z_]\w*)(?::[^}\n]*)?\}")  # in a GitHub prompt
# Agents of other programs that are replaced by the session's model.
_FOREIGN_AGENTS = frozenset({"agent", "ask", "edit", "build", "plan"})
_PROMPT = ".prompt.md"
_MAX_LEVELS = 4  # of folders, within a folder of commands or agents
_MAX_FIRST_LINE = 100  # characters of a first line that is used as the description
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")
# Commands and files in a text of Gemini, whose commands may have braces in pairs.
_COMMAND_IN_BRACES = re.compile(r"(?<!\S)!\{((?:[^{}`\n]|\{[^{}`\n]*\})+)\}")
_FILE_IN_BRACES = re.compile(r"@\{([^{}\s]+)\}")
# zhi's defaults.
_ZHI_REQUESTS = 15
_ZHI_FOLDER = "zhi-output"
_BY_USER = {"disable-model-invocation": True}


def skill_files(folder: Path, names: list[str]) -> list[Path]:
    """Return the skill files in a folder; of two with the same name the later one is used.

    Raises:
        OSError: a folder in it cannot be read.
    """
    return [
        *(folder / name for name in names if name.endswith(YAML_SUFFIXES)),
        *(path for name in names if path_exists(path := folder / name / FILE_NAME)),
    ]


def command_files(folder: Path, names: list[str]) -> list[Path]:
    """Return the command files in a folder and its subfolders; see `skill_files`."""
    program = folder.parent.name
    suffix = {_GEMINI: ".toml", _GITHUB: _PROMPT}.get(program, ".md")
    return files_below(folder, names, suffix)


def files_below(folder: Path, names: list[str], suffix: str) -> list[Path]:
    """Return the files with a suffix among the names in a folder, and in subfolders, sorted.

    Raises:
        OSError: a folder in it cannot be read.
    """
    return sorted(_files_below(folder, names, _MAX_LEVELS, suffix))


def path_name(path: Path, location: Path) -> str:
    """Return the name of a file below a folder: its path without suffix, with hyphens."""
    folder = location if path != location else location.parent
    return "-".join(path.relative_to(folder).with_suffix("").parts)


def _files_below(folder: Path, names: list[str], levels: int, suffix: str) -> Iterator[Path]:
    for name in names:
        path = folder / name
        if name.endswith(suffix):
            yield path
        elif levels > 1 and os.path.isdir(path) and not os.path.islink(path):
            with os.scandir(path) as entries:
                inner = [entry.name for entry in entries if is_visible(entry.name)]
            yield from _files_below(path, inner, levels - 1, suffix)


def read_command(path: Path, text: str, location: Path) -> tuple[Mapping[str, object], str]:
    """Return the front matter of a command, as in a SKILL.md, and its text.

    Args:
        location: the folder of commands that contains the file, or the file itself.

    Raises:
        ConfigError: the front matter or the TOML is invalid.
    """
    program = location.parent.name
    fields: Mapping[str, object] = {}
    if program == _GEMINI:
        fields, text = _gemini(text)
    elif text.startswith("---"):
        fields, text = read_front_matter(text)
    if program == _GITHUB:
        text, names = _convert_inputs(text)
        fields = {**({"arguments": names} if names else {}), **fields}
    name = path_name(path, location).removesuffix(".prompt")
    return command_fields(name, fields, text, program)


def command_fields(
    name: str, fields: Mapping[str, object], text: str, program: str
) -> tuple[Mapping[str, object], str]:
    """Return the front matter of a command, as a SKILL.md would have it, and the text."""
    fields = _convert_runner(fields, program)
    if program in _ONE_BASED:
        text = _NUMBER.sub(lambda match: f"${int(match[1]) - 1}", text)
    return {**_with_description(fields, text), "name": plain_name(name), **_BY_USER}, text.strip()


def _convert_inputs(text: str) -> tuple[str, list[str]]:
    """Return a GitHub prompt with our placeholders for its inputs, and the input names."""
    names = list(dict.fromkeys(_INPUT.findall(text)))
    if len(names) == 1:
        return _INPUT.sub("$ARGUMENTS", text), []
    return _INPUT.sub(lambda match: f"${match[1]}", text), names


def _convert_runner(fields: Mapping[str, object], program: str) -> Mapping[str, object]:
    """Return a command's fields; those that select who runs it are converted to ours.

    In opencode a command with another agent runs as a subtask, as with `subtask`.
    """
    renamed = {name: value for name, value in fields.items() if name not in {"mode", "subtask"}}
    if isinstance(renamed.get("tools"), dict):  # switches, which opencode ignores in a command
        del renamed["tools"]
    agent = renamed.get("agent")
    if isinstance(agent, str) and agent.lower() in _FOREIGN_AGENTS:
        del renamed["agent"]
    subtask = fields.get("subtask")
    if subtask is True or (program in _ONE_BASED and "agent" in renamed and subtask is not False):
        renamed["context"] = "fork"
    return renamed


def read_toml(text: str) -> dict[str, Any]:
    """Return the content of a TOML file of another program. Raises ConfigError."""
    try:
        return tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        from acp_agent.config.toml_errors import explain_syntax_error  # noqa: PLC0415 - rarely

        line, why = explain_syntax_error(text, error)
        raise ConfigError(f"line {line or 1} is not TOML ({why}); fix the line") from None


def _gemini(text: str) -> tuple[Mapping[str, object], str]:
    table = read_toml(text)
    prompt = table.pop("prompt", None)
    if not isinstance(prompt, str) or not prompt.strip():
        raise ConfigError("prompt: it is missing; add what the model is to do")
    prompt = prompt.replace("{{args}}", "$ARGUMENTS")
    return table, _FILE_IN_BRACES.sub(r"@\1", _COMMAND_IN_BRACES.sub(r"!`\1`", prompt))


def read_skill(path: Path, text: str, *, is_lenient: bool) -> tuple[Mapping[str, object], str]:
    """Return the front matter of a skill, as in a SKILL.md, and its text.

    Args:
        path: the path of the file.
        is_lenient: whether its folder names it and its text describes it.

    Raises:
        ConfigError: the front matter or the YAML is invalid.
    """
    if path.suffix in YAML_SUFFIXES:
        return _zhi(text)
    fields, text = read_front_matter(text)
    if not is_lenient:
        return fields, text
    return {**_with_description(fields, text), "name": plain_name(path.parent.name)}, text


def plain_name(name: str) -> str:
    """Return another program's name in our form: `My_Skill` becomes `my-skill`."""
    plain = unicodedata.normalize("NFKC", name).lower()
    plain = plain.replace("#", "-sharp").replace("+", "-plus")  # C, C# and C++ stay distinct
    return _NOT_IN_NAMES.sub("-", plain)[:MAX_NAME_LENGTH].strip("-") or name


def _with_description(fields: Mapping[str, object], text: str) -> dict[str, object]:
    """Return the fields with the description that Claude would use."""
    described = dict(fields)
    description = described.get("description") or first_line(text)
    # Claude shows both to the model.
    when = described.pop("when_to_use", None)
    if isinstance(description, str) and isinstance(when, str):
        description = f"{description.strip()} {when.strip()}"
    if isinstance(description, str):
        description = description[:MAX_DESCRIPTION_LENGTH]
    return {**described, "description": description}


def first_line(text: str) -> str:
    """Return the first line of a text that is not blank, shortened."""
    lines = (line.strip().lstrip("#").strip() for line in text.splitlines())
    first = next(filter(None, lines), "")
    return first if len(first) <= _MAX_FIRST_LINE else f"{first[: _MAX_FIRST_LINE - 1]}…"


def _zhi(text: str) -> tuple[Mapping[str, object], str]:
    fields = dict(parse_yaml(text.replace("\r\n", "\n"), first=1))
    prompt = fields.pop("system_prompt", None)
    if not isinstance(prompt, str) or not prompt.strip():
        raise ConfigError("system_prompt: it is missing; add what the model is to do")
    if isinstance(name := fields.get("name"), str):
        fields["name"] = plain_name(name)
    # In zhi it means that the model does the work itself, without a nested agent.
    fields.pop("disable-model-invocation", None)
    if not {"max_turns", "max-requests"} & set(fields):
        fields["max_turns"] = _ZHI_REQUESTS
    fields.setdefault("model", "small")  # zhi's second, cheaper model
    output = fields.get("output") or {}
    if isinstance(output, dict):
        fields["output"] = {"directory": _ZHI_FOLDER, **output}
    return fields, prompt.strip()


def is_visible(name: str) -> bool:
    """Return whether a name is printable and not hidden."""
    return name.isprintable() and not name.startswith(".")
