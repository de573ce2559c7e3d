"""Read agents from the table `agent` of opencode.json, with prompts in separate files.

A project's table is trusted together with the prompt files that it names: the user trusts the table
with the files filled in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.json_comments import read_json
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.agent_files import opencode_fields
from acp_agent.extensions.definitions.build import AgentFile, DefinitionFile
from acp_agent.extensions.definitions.fields import AgentFields, parse_fields, unused_fields
from acp_agent.extensions.definitions.locations import Source
from acp_agent.extensions.definitions.reading import (
    MOST,
    Origin,
    Problem,
    decode,
    problem,
    read_file,
    unused,
)
from acp_agent.trust.items import text_item

# Entries with these names but no prompt configure agents that are part of opencode.
_THEIRS = frozenset({"build", "compaction", "explore", "general", "plan", "summary", "title"})
_FILE = re.compile(r"\{file:([^{}\n]{1,500})\}")
_VARIABLE = re.compile(r"\{env:[^{}\n]{1,200}\}")
_MOST_FILES = 100  # prompt files of one table
_LONGEST_FIRST_LINE = 200  # characters


class _Entry(Struct, frozen=True):
    """An agent of a table: fields, prompt with files filled in, and the error if that failed."""

    name: str
    fields: Mapping[str, object]
    prompt: str
    error: ConfigError | None = None


def read_table(path: Path, origin: Origin | None, problems: list[Problem]) -> list[AgentFile]:
    """Read the agents of a table; report the invalid ones. Blocks: reads files.

    Args:
        path: the path of the file.
        origin: the project that the file belongs to; None for the user's own file.
        problems: errors are added to this list.
    """
    try:
        path.lstat()
    except OSError:
        return []  # usually there is no such file
    try:
        raw = read_file(path, origin)
        entries = _entries(path, raw, origin)
    except ConfigError as error:
        problems.append(problem(path, error))
        return []
    if not entries:
        return []
    if (
        origin is not None
        and origin.trusts is not None
        and not origin.trusts(text_item("agent", origin.top, path, _raw(entries), _wants(entries)))
    ):
        return []
    found = []
    for entry in entries:
        try:
            agent = _agent(path, origin, entry, problems)
        except ConfigError as error:
            problems.append(problem(path, _of(entry, error)))
        else:
            whole = raw.decode("utf-8", "replace")
            found.append(replace(agent, whole=whole, entry=("agent", entry.name)))
    return found


def _entries(path: Path, raw: bytes, origin: Origin | None) -> list[_Entry]:
    """Return the agents of a file that are not disabled.

    Raises:
        ConfigError: the file cannot be read.
    """
    try:
        content = read_json(raw)
    except InvalidInputError as error:
        raise ConfigError(str(error)) from None
    agents = content.get("agent") if isinstance(content, dict) else None
    if not isinstance(agents, dict):
        return []
    if len(agents) > MOST:
        raise ConfigError(f"there are more than {MOST} agents in it; take some out")
    files = _PromptFiles(path, origin)
    entries = []
    for name, given in agents.items():
        if not isinstance(given, dict) or given.get("disable") is True:
            continue
        fields = {key: value for key, value in given.items() if key != "prompt"}
        prompt = given.get("prompt")
        if prompt is None and name in _THEIRS:
            continue
        try:
            entries.append(_Entry(name, fields, files.fill(prompt)))
        except ConfigError as error:
            entries.append(_Entry(name, fields, str(prompt), error))
    return entries


class _PromptFiles:
    """Replaces file references in prompts by the files' texts."""

    def __init__(self, table: Path, origin: Origin | None) -> None:
        self._table = table
        self._origin = origin
        self._count = 0

    def fill(self, prompt: object) -> str:
        """Return a prompt with each `{file:…}` replaced by the file's text.

        Raises:
            ConfigError: the prompt is not text, or a file cannot be read.
        """
        if prompt is None:
            return ""
        if not isinstance(prompt, str):
            raise ConfigError("prompt: expected text")
        return _FILE.sub(lambda found: self._read(found[1].strip()), prompt).strip()

    def _read(self, name: str) -> str:
        self._count += 1
        if self._count > _MOST_FILES:
            raise ConfigError(f"prompt: there are more than {_MOST_FILES} files; take some out")
        path = self._table.parent / name
        if self._origin is None and name.startswith("~/"):
            path = Path(name).expanduser()
        try:
            return decode(read_file(path, self._origin))
        except ConfigError as error:
            raise ConfigError(f"prompt: {printable_line(name, 80)}: {error}") from None


def _raw(entries: list[_Entry]) -> bytes:
    """Return the content of a table that the user trusts."""
    agents = {one.name: {**one.fields, "prompt": one.prompt} for one in entries}
    return json.dumps(agents, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def _wants(entries: list[_Entry]) -> str:
    models = (one.fields.get("model") for one in entries)
    wants = [f"agents: {', '.join(printable_line(one.name, 40) for one in entries)}"]
    wants += [f"model: {printable_line(one, 80)}" for one in models if isinstance(one, str)]
    return "; ".join(wants)[:_LONGEST_FIRST_LINE]


def _agent(path: Path, origin: Origin | None, entry: _Entry, problems: list[Problem]) -> AgentFile:
    if entry.error is not None:
        raise entry.error
    given = dict(opencode_fields(entry.name, entry.fields))
    if not entry.prompt:
        given.setdefault("extends", "default")
    if given.get("description") is None:
        first = entry.prompt.partition("\n")[0].lstrip("# ")
        given["description"] = first[:_LONGEST_FIRST_LINE] or entry.name
    fields = parse_fields(given, AgentFields)
    if names := unused_fields(given, AgentFields):
        problems.append(problem(path, _of(entry, unused(names)), left_out=False))
    if _VARIABLE.search(entry.prompt):
        error = ConfigError(
            "prompt: variables of the environment are not filled in; write the text"
        )
        problems.append(problem(path, _of(entry, error), left_out=False))
    source: Source = "user" if origin is None else origin.source
    return DefinitionFile(path=path, source=source, fields=fields, text=entry.prompt)


def _of(entry: _Entry, error: ConfigError) -> ConfigError:
    return ConfigError(f"agent {printable_line(entry.name, 80)}: {error}")
