"""Find the permission files of other agents, and translate each by its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.policy.imports.claude import read_claude
from acp_agent.cli.policy.imports.codex import read_codex
from acp_agent.cli.policy.imports.codex_config import read_codex_config
from acp_agent.cli.policy.imports.cursor import read_cursor
from acp_agent.cli.policy.imports.gemini import read_gemini, read_gemini_settings
from acp_agent.cli.policy.imports.opencode import read_opencode
from acp_agent.cli.policy.imports.translation import Translation, read_settings
from acp_agent.errors import InvalidInputError
from acp_agent.extensions.definitions.locations import AGENT_TABLES

_CURSOR = ("cli.json", "cli-config.json")
_CODEX_CONFIG = "config.toml"
# Where an administrator sets Claude's permissions.
_MANAGED = (Path("/etc/claude-code"), Path("/Library/Application Support/ClaudeCode"))
_RULES = ("*.rules", "*.codexpolicy")


class PermissionFile(Struct, frozen=True):
    """A file with permissions; `project` means that it is the folder's and not the user's."""

    file: Path
    project: bool


def find_files(folder: Path, home: Path, environ: Mapping[str, str]) -> list[PermissionFile]:
    """Return the existing files of the user and of a folder, the user's first.

    The folder's Claude settings are not included, because they apply without an import.
    """
    claude = Path(environ.get("CLAUDE_CONFIG_DIR") or home / ".claude")
    codex = Path(environ.get("CODEX_HOME") or home / ".codex")
    config = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
    user = [
        *_managed_files(),
        claude / "settings.json",
        *_codex_files(codex),
        *_opencode_files(config / "opencode"),
        *_gemini_files(home / ".gemini"),
        home / ".cursor" / "cli-config.json",
        config / "cursor" / "cli-config.json",
    ]
    user_files = list(dict.fromkeys(map(_real, user)))
    project = [path for path in map(_real, _imported_files(folder)) if path not in user_files]
    return [
        PermissionFile(file, path is project)
        for path in (user_files, project)
        for file in path
        if file.is_file()
    ]


def find_files_at(path: Path, folder: Path) -> list[PermissionFile]:
    """Return the files at a path: the file itself, or those of a project folder.

    Raises:
        InvalidInputError: there is none.
    """
    files = [path] if path.is_file() else [file for file in _project_files(path) if file.is_file()]
    if not files:
        raise InvalidInputError(
            f"there are no permissions of another agent in {path}; name a settings.json, an "
            "opencode.json, a rules file of codex, or a folder with one",
            field="path",
        )
    return [PermissionFile(real, real.is_relative_to(folder)) for real in map(_real, files)]


def read_permissions(file: Path) -> Translation:
    """Translate a file; its name or content determines the format. Raises InvalidInputError."""
    try:
        return _reader(file)(file)
    except InvalidInputError as error:
        raise InvalidInputError(f"{file}: {error}", field="path") from None


def _reader(file: Path) -> Callable[[Path], Translation]:
    if any(file.match(pattern) for pattern in _RULES):
        return read_codex
    if file.name == _CODEX_CONFIG:
        return read_codex_config
    if file.suffix == ".toml":
        return read_gemini
    if file.name in _CURSOR:
        return read_cursor
    if file.name in AGENT_TABLES:
        return read_opencode
    settings = read_settings(file)
    if isinstance(settings.get("permissions"), dict):
        return read_claude
    if file.name == "settings.json" and (file.parent.name == ".gemini" or "tools" in settings):
        return read_gemini_settings
    return read_claude if file.name.startswith(("settings", "managed-")) else read_opencode


def applied_files(folder: Path) -> list[Path]:
    """Return the existing files of a folder whose rules apply without an import."""
    names = ("settings.json", "settings.local.json")
    return [file for name in names if (file := folder / ".claude" / name).is_file()]


def _project_files(folder: Path) -> Iterator[Path]:
    yield from applied_files(folder)
    yield from _imported_files(folder)


def _imported_files(folder: Path) -> Iterator[Path]:
    yield from _codex_files(folder / ".codex")
    yield from _opencode_files(folder)
    yield from _opencode_files(folder / ".opencode")
    yield from _gemini_files(folder / ".gemini")
    yield folder / ".cursor" / "cli.json"


def _managed_files() -> Iterator[Path]:
    for folder in _MANAGED:
        yield folder / "managed-settings.json"
        yield from sorted((folder / "managed-settings.d").glob("*.json"))


def _codex_files(codex: Path) -> Iterator[Path]:
    for name in ("rules", "policy"):
        for pattern in _RULES:
            yield from sorted((codex / name).glob(pattern))
    yield codex / _CODEX_CONFIG


def _gemini_files(gemini: Path) -> Iterator[Path]:
    yield from sorted((gemini / "policies").glob("*.toml"))
    yield gemini / "settings.json"


def _opencode_files(folder: Path) -> Iterator[Path]:
    yield from (folder / name for name in AGENT_TABLES)


def _real(file: Path) -> Path:
    return file.expanduser().absolute()
