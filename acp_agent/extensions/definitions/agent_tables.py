"""Agents and commands in tables: of opencode.json, codex's config.toml and Roo's `.roomodes`.

codex has `[agents.NAME]` with a description and a `config_file`, Roo a list of modes in YAML or
JSON. A project's table is trusted with the files that it names: the user trusts the table with
their texts filled in.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.json_files import member_line, read_json
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.agent_files import (
    codex_fields,
    opencode_fields,
    roo_fields,
)
from acp_agent.extensions.definitions.build import AgentFile, DefinitionFile
from acp_agent.extensions.definitions.fields import (
    AgentFields,
    SkillFields,
    parse_fields,
    unused_fields,
)
from acp_agent.extensions.definitions.front_matter import parse_yaml
from acp_agent.extensions.definitions.locations import ROO_MODES, Source, project_folder
from acp_agent.extensions.definitions.reading import (
    MAX_FILES,
    Origin,
    Problem,
    decode,
    make_problem,
    read_file,
    unused_fields_error,
)
from acp_agent.extensions.definitions.skill_files import command_fields, plain_name, read_toml
from acp_agent.trust.store import Kind as ItemKind, text_item

# Entries with these names but no prompt configure agents that are part of opencode.
_OPENCODE_AGENTS = frozenset(
    {"build", "compaction", "explore", "general", "plan", "summary", "title"}
)
# Roles of codex itself, of which an entry without a file only changes the settings.
_ROLES = frozenset({"awaiter", "default", "explorer", "monitor", "worker"})
_FILE = re.compile(r"\{file:([^{}\n]{1,500})\}")
_VARIABLE = re.compile(r"\{env:[^{}\n]{1,200}\}")
_ROO_PROMPT = frozenset({"roleDefinition", "customInstructions"})  # fields of a mode of Roo
_MAX_PROMPT_FILES = 100  # prompt files of one table
_MAX_FIRST_LINE = 200  # characters


Kind = Literal["agent", "command"]
_Fields = TypeVar("_Fields", SkillFields, AgentFields)


class _Entry(Struct, frozen=True):
    """A definition of a table: its fields, and its prompt with the files filled in, or an error."""

    kind: Kind
    name: str
    fields: Mapping[str, object]
    prompt: str
    error: ConfigError | None = None


def read_agents(path: Path, origin: Origin | None, problems: list[Problem]) -> list[AgentFile]:
    """Read the agents of a table; report the invalid ones. Blocks: reads files.

    Args:
        origin: the project that the file belongs to; None for the user's own file.
        problems: errors are added to this list.
    """
    return _read(path, origin, "agent", problems, _agent)


def read_commands(
    path: Path, origin: Origin | None, problems: list[Problem]
) -> list[DefinitionFile[SkillFields]]:
    """Read the commands of a table as skills that only the user chooses; see `read_agents`."""
    return _read(path, origin, "command", problems, _command)


def _read(
    path: Path,
    origin: Origin | None,
    kind: Kind,
    problems: list[Problem],
    build: Callable[[Path, Source, _Entry, list[Problem]], DefinitionFile[_Fields]],
) -> list[DefinitionFile[_Fields]]:
    try:
        path.lstat()
    except OSError:
        return []  # usually there is no such file
    try:
        raw = read_file(path, origin)
        entries = _entries(path, raw, origin, kind)
    except ConfigError as error:
        if kind == "agent" and path.suffix != ".toml":  # else reported with agents, or hooks
            problems.append(make_problem(path, error, is_note=path.name == ROO_MODES or None))
        return []
    if not entries:
        return []
    item: ItemKind = "agent" if kind == "agent" else "skill"
    if (
        origin is not None
        and origin.trusts is not None
        and not origin.trusts(
            text_item(item, origin.top, path, _encode_entries(entries), _summary(entries))
        )
    ):
        return []
    file_text = "" if path.suffix == ".toml" else raw.decode("utf-8", "replace")
    files = []
    for entry in entries:
        try:
            if entry.error is not None:
                raise entry.error
            source: Source = "user" if origin is None else origin.source
            definition = build(path, source, entry, problems)
        except ConfigError as error:
            problems.append(make_problem(path, _with_entry_name(entry, error)))
        else:
            files.append(replace(definition, file_text=file_text, entry=(kind, entry.name)))
    return files


def named_skill_folders(path: Path, origin: Origin | None, problems: list[Problem]) -> list[Path]:
    """Return the folders of skills that a table of opencode names. Blocks: reads the file.

    A relative path begins at the project, or at the table if the project has no such folder.
    """
    try:
        raw = read_file(path, origin)
        content = read_json(raw)
    except (ConfigError, InvalidInputError):
        return []  # absent, or reported with the agents
    skills = content.get("skills") if isinstance(content, dict) else None
    if not isinstance(skills, dict):
        return []
    if skills.get("urls"):
        error = ConfigError("skills: skills at an address are not loaded; add them as files")
        line = member_line(raw.decode("utf-8", "replace"), ("skills",))
        problems.append(make_problem(path, error, skipped=False, line=line))
    names = skills.get("paths")
    folders = []
    for name in names if isinstance(names, list) else []:
        expanded = Path(str(name)).expanduser() if origin is None else Path(str(name))
        in_project = project_folder(path) / expanded
        folders.append(in_project if os.path.isdir(in_project) else path.parent / expanded)
    return folders


def _entries(path: Path, raw: bytes, origin: Origin | None, kind: Kind) -> list[_Entry]:
    """Return the definitions of a kind in a file that are not disabled. Raises ConfigError."""
    is_codex = path.suffix == ".toml"
    try:
        if path.name == ROO_MODES and not raw.lstrip().startswith(b"{"):
            content: object = parse_yaml(decode(raw), first=1)
        else:
            content = read_toml(decode(raw)) if is_codex else read_json(raw)
    except InvalidInputError as error:
        raise ConfigError(str(error)) from None
    if path.name == ROO_MODES:
        modes = content.get("customModes") if isinstance(content, dict) else None
        if not isinstance(modes, list):
            raise ConfigError(
                "customModes: expected a list of modes; write one, or remove the file"
            )
        return [_roo_entry(mode) for mode in modes[:MAX_FILES] if isinstance(mode, dict)]
    tables = content.get("agents" if is_codex else kind) if isinstance(content, dict) else None
    if not isinstance(tables, dict):
        return []
    if len(tables) > MAX_FILES:
        raise ConfigError(f"there are more than {MAX_FILES} {kind}s in it; take some out")
    files = _PromptFiles(path, origin)
    read = _codex_entry if is_codex else _opencode_entry
    entries = (
        read(kind, name, table, files) for name, table in tables.items() if isinstance(table, dict)
    )
    return [table for table in entries if table is not None]


def _opencode_entry(
    kind: Kind, name: str, table: Mapping[str, object], files: _PromptFiles
) -> _Entry | None:
    key = "prompt" if kind == "agent" else "template"
    prompt = table.get(key)
    if kind == "agent" and (
        table.get("disable") is True or (prompt is None and name in _OPENCODE_AGENTS)
    ):
        return None
    fields = {field: value for field, value in table.items() if field != key}
    try:
        text = files.fill(prompt if kind == "agent" else _text(prompt, "template"))
    except ConfigError as error:
        return _Entry(kind, name, fields, str(prompt), error)
    return _Entry(kind, name, fields, text)


def _codex_entry(
    kind: Kind, name: str, table: Mapping[str, object], files: _PromptFiles
) -> _Entry | None:
    """Return a role of codex: its description, over the settings in its `config_file`."""
    file = table.get("config_file")
    unseen = {"config_file", "nickname_candidates"}  # here agents have no nicknames
    entry_fields = {field: value for field, value in table.items() if field not in unseen}
    if file is None and name in _ROLES:
        return None
    try:
        settings = "" if file is None else files.read(_text(file, "config_file"), "config_file")
        fields, prompt = codex_fields(settings)
    except ConfigError as error:
        return _Entry(kind, name, entry_fields, "", error)
    return _Entry(kind, name, {**fields, **entry_fields}, prompt)


def _roo_entry(mode: Mapping[str, object]) -> _Entry:
    texts = (mode.get("roleDefinition"), mode.get("customInstructions"))
    prompt = "\n\n".join(text.strip() for text in texts if isinstance(text, str))
    fields = {name: value for name, value in mode.items() if name not in _ROO_PROMPT}
    return _Entry("agent", str(mode.get("slug") or mode.get("name") or ""), fields, prompt)


def _text(value: object, field: str) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{field}: expected text")
    return value


class _PromptFiles:
    """Replaces file references in prompts by the files' texts."""

    def __init__(self, table: Path, origin: Origin | None) -> None:
        self._table = table
        self._origin = origin
        self._count = 0

    def fill(self, prompt: object) -> str:
        """Return a prompt with each `{file:…}` replaced by the file's text. Raises ConfigError."""
        if prompt is None:
            return ""
        if not isinstance(prompt, str):
            raise ConfigError("prompt: expected text")
        return _FILE.sub(lambda match: self.read(match[1].strip(), "prompt"), prompt).strip()

    def read(self, name: str, field: str) -> str:
        """Return the text of a file that a field names. Raises ConfigError."""
        self._count += 1
        if self._count > _MAX_PROMPT_FILES:
            raise ConfigError(
                f"{field}: there are more than {_MAX_PROMPT_FILES} files; take some out"
            )
        path = self._table.parent / name
        if self._origin is None and name.startswith("~/"):
            path = Path(name).expanduser()
        try:
            return decode(read_file(path, self._origin))
        except ConfigError as error:
            raise ConfigError(f"{field}: {printable_line(name, 80)}: {error}") from None


def _encode_entries(entries: list[_Entry]) -> bytes:
    """Return the content of a table that the user trusts."""
    content = {
        entry.name: {
            **entry.fields,
            "prompt" if entry.kind == "agent" else "template": entry.prompt,
        }
        for entry in entries
    }
    return json.dumps(content, ensure_ascii=False, indent=1, default=str).encode("utf-8", "replace")


def _summary(entries: list[_Entry]) -> str:
    models = (entry.fields.get("model") for entry in entries)
    names = ", ".join(printable_line(entry.name, 40) for entry in entries)
    lines = [f"{entries[0].kind}s: {names}"]
    lines += [f"model: {printable_line(entry, 80)}" for entry in models if isinstance(entry, str)]
    return "; ".join(lines)[:_MAX_FIRST_LINE]


def _agent(path: Path, source: Source, entry: _Entry, problems: list[Problem]) -> AgentFile:
    if path.suffix == ".toml":
        raw_fields = {**entry.fields, "name": plain_name(entry.name)}
    elif path.name == ROO_MODES:
        raw_fields = dict(roo_fields(entry.name, entry.fields))
        groups = entry.fields.get("groups")
        if any(isinstance(group, list) for group in (groups if isinstance(groups, list) else ())):
            why = "groups: edits of some files only cannot be allowed here, so all are refused"
            error = ConfigError(f"{why}; write an agent in .claude/agents if it is to edit")
            problems.append(make_problem(path, _with_entry_name(entry, error), skipped=False))
    else:
        raw_fields = dict(opencode_fields(entry.name, entry.fields))
    if not entry.prompt:
        raw_fields.setdefault("extends", "default")
    if raw_fields.get("description") is None:
        first_line_text = entry.prompt.partition("\n")[0].lstrip("# ")
        raw_fields["description"] = first_line_text[:_MAX_FIRST_LINE] or entry.name
    fields = parse_fields(raw_fields, AgentFields)
    _report_unused(path, entry, unused_fields(raw_fields, AgentFields), problems)
    return DefinitionFile(path=path, source=source, fields=fields, text=entry.prompt)


def _command(
    path: Path, source: Source, entry: _Entry, problems: list[Problem]
) -> DefinitionFile[SkillFields]:
    raw_fields, text = command_fields(entry.name, entry.fields, entry.prompt, ".opencode")
    fields = parse_fields(raw_fields, SkillFields)
    _report_unused(path, entry, unused_fields(raw_fields, SkillFields), problems)
    return DefinitionFile(path=path, source=source, fields=fields, text=text)


def _report_unused(path: Path, entry: _Entry, names: list[str], problems: list[Problem]) -> None:
    if names:
        problems.append(
            make_problem(path, _with_entry_name(entry, unused_fields_error(names)), skipped=False)
        )
    if _VARIABLE.search(entry.prompt):
        field = "prompt" if entry.kind == "agent" else "template"
        error = ConfigError(
            f"{field}: variables of the environment are not filled in; write the text"
        )
        problems.append(make_problem(path, _with_entry_name(entry, error), skipped=False))


def _with_entry_name(entry: _Entry, error: ConfigError) -> ConfigError:
    return ConfigError(f"{entry.kind} {printable_line(entry.name, 80)}: {error}")
