"""Settings in a project's files for other programs that are used here too, once they are trusted.

| Program | Settings |
| --- | --- |
| Claude | `env`, `permissions.additionalDirectories`, `outputStyle`, `disabledMcpjsonServers` |
| codex | `shell_environment_policy.set`, `project_doc_fallback_filenames` |
| Gemini | `context.fileName`, `context.includeDirectories` |

The other settings of such a file may change without a new question.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.json_files import member_line, read_json
from acp_agent.config.secrets import is_secret_name
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import project_top, settings_files
from acp_agent.platform.trusted_files import read_trusted, trusted_owners
from acp_agent.trust.store import Item, Trusts, folder_name, text_item

_MAX_BYTES = 1_000_000  # of one file
_MAX_ENTRIES = 100  # of one list or table
_MAX_SHOWN_LENGTH = 800  # characters of the description of a file
_NAME = re.compile(r"[A-Za-z_]\w*")
# The keys of folders, by the folder of the file.
_FOLDER_KEYS = {
    ".claude": ("permissions", "additionalDirectories"),
    ".gemini": ("context", "includeDirectories"),
}


class FileSettings(Struct, frozen=True, omit_defaults=True):
    """The used settings of one file, as they are written there.

    Attributes:
        variables: the environment variables for commands, hooks and the project's MCP servers.
        folders: further folders of the session.
        file_names: the names of further instruction files, in each folder.
        fallback_names: the same, for folders without AGENTS.md.
        style: the name of the output style.
    """

    variables: dict[str, str] = {}
    folders: tuple[str, ...] = ()
    file_names: tuple[str, ...] = ()
    fallback_names: tuple[str, ...] = ()
    style: str = ""

    def __str__(self) -> str:
        """Return a description for the user, without values that may be secret."""
        variables = [
            f"{name}={'…' if is_secret_name(name) else printable_line(value, 80)}"
            for name, value in self.variables.items()
        ]
        parts = {
            "variables": variables,
            "folders": self.folders,
            "instructions": (*self.file_names, *self.fallback_names),
            "output style": [self.style] if self.style else [],
        }
        lines = (f"{label}: {', '.join(texts)}" for label, texts in parts.items() if texts)
        return printable_line("; ".join(lines), _MAX_SHOWN_LENGTH)


class FolderSetting(Struct, frozen=True):
    """A folder that a setting names, as it is written; `location` is the file, line and key."""

    text: str
    project: Path
    location: str


class ProjectSettings(Struct, frozen=True, kw_only=True):
    """The trusted settings of a project.

    Attributes:
        style: the file with the settings and the name of its output style; None if there is none.
        disabled_servers: the servers of `.mcp.json` that Claude's settings turn off, which needs
            no trust.
        untrusted: the files whose settings the user does not trust.
    """

    variables: Mapping[str, str] = {}
    folders: tuple[FolderSetting, ...] = ()
    file_names: tuple[str, ...] = ()
    fallback_names: tuple[str, ...] = ()
    style: tuple[Path, str] | None = None
    disabled_servers: frozenset[str] = frozenset()
    untrusted: tuple[Item, ...] = ()


def find_settings(cwd: Path, trusts: Trusts) -> ProjectSettings:
    """Return the settings for a session in a folder; later files win. Reads files."""
    found = ProjectSettings()
    readers = {".claude": _claude, ".codex": _codex, ".gemini": _gemini}
    for file, raw, document in _read_documents(cwd):
        off = found.disabled_servers.union(_texts(document.get("disabledMcpjsonServers")))
        found = replace(found, disabled_servers=off)
        settings = readers[file.parent.name](document)
        if settings == FileSettings():
            continue
        content = msgspec.json.format(msgspec.json.encode(settings), indent=1)
        item = text_item("settings", folder_name(project_top(cwd)), file, content, str(settings))
        if not trusts(item):
            found = replace(found, untrusted=(*found.untrusted, item))
            continue
        found = replace(
            found,
            variables={**found.variables, **settings.variables},
            folders=(*found.folders, *_located(settings.folders, file, raw)),
            file_names=(*found.file_names, *settings.file_names),
            fallback_names=(*found.fallback_names, *settings.fallback_names),
            style=(file, settings.style) if settings.style else found.style,
        )
    return found


def settings_items(cwd: Path) -> Sequence[Item]:
    """Return the trust items of a project's settings, trusted or not. Reads files."""
    return find_settings(cwd, lambda _: False).untrusted


def existing_folders(
    settings: ProjectSettings, cwd: Path, home: Path
) -> tuple[list[Path], list[str]]:
    """Return the further folders of a session, resolved, and errors with file, line and remedy.

    Neither the user's home folder nor a folder that contains it is used. Reads the disk.
    """
    session, user = Path(os.path.realpath(cwd)), Path(os.path.realpath(home))
    folders: dict[Path, None] = {}
    problems = []
    for setting in settings.folders:
        text = setting.text
        path = home / text[1:].lstrip("/") if text.startswith("~") else setting.project / text
        folder = Path(os.path.realpath(path))
        if user.is_relative_to(folder):
            why = "contains your home folder, so it is not used; name a folder below it"
        elif not folder.is_dir():
            why = "is not a folder; fix the path or take it out"
        else:
            folders |= {} if folder.is_relative_to(session) else {folder: None}
            continue
        problems.append(f"{setting.location}: {printable_line(text, 200)} {why}")
    return list(folders), problems


def _located(texts: Sequence[str], file: Path, raw: bytes) -> Iterator[FolderSetting]:
    for text in texts:
        keys = _FOLDER_KEYS[file.parent.name]
        line = member_line(raw.decode("utf-8", "replace"), keys, value=text)
        yield FolderSetting(text, file.parent.parent, f"{file}:{line}: {'.'.join(keys)}")


def _read_documents(cwd: Path) -> Iterator[tuple[Path, bytes, dict[str, Any]]]:
    """Yield each readable file; errors are reported with its servers, hooks or rules."""
    top = Path(os.path.realpath(project_top(cwd)))
    for file in settings_files(cwd):
        try:
            raw = read_trusted(file, top, trusted_owners(top, cwd), limit=_MAX_BYTES)
            document = _parse_toml(raw) if file.suffix == ".toml" else read_json(raw)
        except (OSError, UnicodeDecodeError, ConfigError, InvalidInputError):
            continue
        if isinstance(document, dict):
            yield file, raw, document


def _parse_toml(raw: bytes) -> dict[str, Any]:
    from acp_agent.extensions.definitions.skill_files import read_toml  # noqa: PLC0415 - codex's only

    return read_toml(raw.decode())


def _claude(settings: Mapping[str, Any]) -> FileSettings:
    return FileSettings(
        variables=_variables(settings.get("env")),
        folders=_texts(_table(settings, "permissions").get("additionalDirectories")),
        style=next(iter(_texts(settings.get("outputStyle"))), ""),
    )


def _codex(settings: Mapping[str, Any]) -> FileSettings:
    return FileSettings(
        variables=_variables(_table(settings, "shell_environment_policy").get("set")),
        fallback_names=_texts(settings.get("project_doc_fallback_filenames")),
    )


def _gemini(settings: Mapping[str, Any]) -> FileSettings:
    context = _table(settings, "context")
    return FileSettings(
        folders=_texts(context.get("includeDirectories")),
        file_names=_texts(context.get("fileName")),
    )


def _table(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = settings.get(key)
    return value if isinstance(value, dict) else {}


def _texts(value: object) -> tuple[str, ...]:
    """Return the texts of a text or of a list."""
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    texts = (text.strip() for text in values if isinstance(text, str) and "\0" not in text)
    return tuple(filter(None, texts))[:_MAX_ENTRIES]


def _variables(value: object) -> dict[str, str]:
    """Return the variables of a table whose names and values a program can be given."""
    entries = list(value.items())[:_MAX_ENTRIES] if isinstance(value, dict) else []
    return {
        name: text if isinstance(text, str) else msgspec.json.encode(text).decode()
        for name, text in entries
        if _NAME.fullmatch(name) and isinstance(text, str | int | float) and "\0" not in str(text)
    }
