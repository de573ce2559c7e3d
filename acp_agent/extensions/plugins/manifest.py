"""Read the manifests of plugins: that of the Agent Plugins standard, and those of other programs.

The standard (https://agent-plugins.org, version 1.0.0, section 5) has a `plugin.json` with a closed
set of fields at the top of the plugin. Other programs have their own manifest in a folder such as
`.claude-plugin`, which may also name the places of the plugin's parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.json_files import explain_json
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.platform.decoding import convert
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.trusted_files import (
    RefusedFileError,
    path_exists,
    read_trusted,
    trusted_owners,
)

FILE_NAME = "plugin.json"
SCHEMA = "https://agent-plugins.org/schemas/1.0.0/plugin.schema.json"
MCP_SCHEMA = "https://agent-plugins.org/schemas/1.0.0/mcp.schema.json"
PROGRAM_FOLDER = "dev.acp-agent"  # the folder of a standard plugin with parts for this program only
FOREIGN = (".claude-plugin", ".codex-plugin", ".cursor-plugin")
_EXTRA_PARTS = ("commands", "agents", "hooks")
MAX_JSON_SIZE = 1_000_000  # bytes of a JSON file
MAX_NAME_LENGTH = 64
_NAME = re.compile(r"(?!.*(?:--|\.\.))[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


Remark = tuple[Path, str]  # a file or folder, and its error


class PluginError(ConfigError):
    """A file or folder of a plugin cannot be used."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.remark: Remark = (path, why)


class _Author(Struct, frozen=True, forbid_unknown_fields=True):
    name: str = ""
    email: str = ""
    url: str = ""


class _Portable(Struct, frozen=True, kw_only=True):
    """The fields of the standard's manifest, section 5."""

    schema: str = msgspec.field(name="$schema")
    name: str
    version: str = ""
    description: str = ""
    author: _Author = _Author()
    homepage: str = ""
    repository: str = ""
    license: str = ""
    keywords: list[str] = []


_MANIFEST_FIELDS = frozenset({*(field.encode_name for field in msgspec.structs.fields(_Portable))})


class Manifest(Struct, frozen=True, kw_only=True):
    """The content of a plugin's manifest.

    Attributes:
        portable: whether it follows the standard.
        foreign: whether it has another program's manifest, alone or beside that of the standard.
        remarks: harmless errors.
    """

    name: str
    version: str = ""
    description: str = ""
    portable: bool = True
    foreign: bool = False
    part_paths: Mapping[str, object] = {}
    remarks: tuple[Remark, ...] = ()


def read_manifest(root: Path, marketplace_entry: Mapping[str, object] | None = None) -> Manifest:
    """Return the manifest of a plugin. Reads files.

    Args:
        marketplace_entry: a marketplace's entry for it, which may replace a manifest.

    Raises:
        PluginError: there is no manifest, or it cannot be used.
    """
    files = (root / folder / FILE_NAME for folder in FOREIGN)
    foreign = next((file for file in files if path_exists(file)), None)
    portable = root / FILE_NAME
    content = read_json(portable, root) if path_exists(portable) else None
    # Without a schema it does not follow the standard, and another program's manifest takes
    # precedence.
    if content is not None and ("$schema" in content or foreign is None):
        manifest = _portable(portable, content)
        return manifest if foreign is None else _with_foreign_parts(manifest, foreign, root)
    if foreign is not None:
        return _foreign(foreign, {**(marketplace_entry or {}), **read_json(foreign, root)})
    if marketplace_entry is not None:
        return _foreign(root, marketplace_entry)
    raise PluginError(root, f"it has no {FILE_NAME}, so it is no plugin; add one")


def _portable(file: Path, content: Mapping[str, object]) -> Manifest:
    schema = content.get("$schema")
    if schema != SCHEMA:
        reason = (
            "it is missing" if schema is None else f"{printable_line(str(schema), 100)}: unknown"
        )
        raise PluginError(file, f"$schema: {reason}; this program knows {SCHEMA}")
    remarks: list[Remark] = []
    if unknown := sorted(content.keys() - _MANIFEST_FIELDS - {"extensions"}):
        names = printable_line(", ".join(unknown), 200)
        remarks.append((file, f"{names}: the standard has no such field; take it out"))
    if not isinstance(content.get("extensions", {}), dict):
        remarks.append((file, "extensions: expected an object; take it out"))
    try:
        manifest = convert(content, _Portable)
    except msgspec.ValidationError as error:
        raise PluginError(file, f"{error}; fix the value") from None
    _require_name(file, manifest.name)
    return Manifest(
        name=manifest.name,
        version=printable_line(manifest.version, 100),
        description=printable_line(manifest.description, 300),
        remarks=tuple(remarks),
    )


def _with_foreign_parts(manifest: Manifest, foreign: Path, root: Path) -> Manifest:
    """Add the parts that the standard lacks, from another program's manifest."""
    try:
        content = read_json(foreign, root)
    except PluginError as error:
        return replace(manifest, remarks=(*manifest.remarks, error.remark))
    part_paths = {key: content[key] for key in _EXTRA_PARTS if content.get(key) is not None}
    return replace(manifest, foreign=True, part_paths=part_paths)


def _foreign(file: Path, content: Mapping[str, object]) -> Manifest:
    """Return another program's manifest; only the name is required."""
    name = content.get("name", file.parent.parent.name)
    if not isinstance(name, str):
        raise PluginError(file, "name: expected text")
    name = re.sub(r"[^a-z0-9.]+", "-", name.lower()).strip("-.")
    _require_name(file, name)
    version, description = content.get("version"), content.get("description")
    return Manifest(
        name=name,
        version=printable_line(version, 100) if isinstance(version, str) else "",
        description=printable_line(description, 300) if isinstance(description, str) else "",
        portable=False,
        foreign=True,
        part_paths={key: value for key, value in content.items() if value is not None},
    )


def _require_name(file: Path, name: str) -> None:
    if len(name) > MAX_NAME_LENGTH or _NAME.fullmatch(name) is None:
        raise PluginError(
            file,
            f"name: expected lowercase letters, digits, hyphens and periods, at most "
            f"{MAX_NAME_LENGTH}, found {printable_line(name, 80)!r}",
        )


def part_values(part_paths: Mapping[str, object], key: str) -> Sequence[object]:
    """Return a manifest's values for a key: a single value counts as a list of one."""
    value = part_paths.get(key)
    if value is None:
        return ()
    return value if isinstance(value, list) else (value,)


def read_json(file: Path, root: Path) -> dict[str, Any]:
    """Return the object in a JSON file of a plugin. The file must be in the plugin's folder.

    Raises:
        PluginError: the file cannot be read, is outside the folder, or is not an object.
    """
    try:
        raw = read_trusted(file, root, trusted_owners(root), limit=MAX_JSON_SIZE + 1)
    except RefusedFileError as error:
        raise PluginError(file, f"{error.why}") from None
    except OSError as error:
        why = describe_os_error(error)
        raise PluginError(file, f"cannot be read ({why}); check who may read it") from None
    if len(raw) > MAX_JSON_SIZE:
        raise PluginError(file, f"it is larger than {MAX_JSON_SIZE:,} bytes; shorten it")
    try:
        content = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise PluginError(file, str(explain_json(raw))) from None
    if not isinstance(content, dict):
        raise PluginError(file, "line 1: expected an object; write { first")
    return content
