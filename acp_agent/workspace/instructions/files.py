"""Read the instructions for a folder and for files in its subfolders, and what they import."""

from __future__ import annotations

import itertools
import logging
import os
from collections.abc import Callable, Iterator
from functools import cache, partial
from pathlib import Path
from typing import Literal

from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.extensions.definitions.locations import PROJECT_TABLES, project_top
from acp_agent.extensions.project_settings import ProjectSettings, find_settings
from acp_agent.platform.data_tables import read_table
from acp_agent.platform.nofollow import real_path
from acp_agent.platform.trusted_files import (
    RefusedFileError,
    read_trusted,
    read_user_file,
    trusted_owners,
)
from acp_agent.trust.store import Item, Trusts, folder_name, text_item
from acp_agent.workspace.instructions.imports import imported_files
from acp_agent.workspace.instructions.opencode import (
    CONFIG_LIMIT,
    listed_entries,
    matching_files,
    trusted_text,
)
from acp_agent.workspace.instructions.rules import parse_rule, split_front_matter

FILE_LIMIT = 32_000  # bytes of one file
TOTAL_LIMIT = 96_000  # characters of all instructions found by one call
_MAX_SHOWN_LENGTH = 400  # characters of a list of files
_MAX_RULE_FILES = 200  # maximum number of files, and of folders, in one folder of rules

_log = logging.getLogger(__name__)


class Instruction(Struct, frozen=True):
    """The text of an instruction file."""

    path: Path
    text: str

    def __str__(self) -> str:
        """Return the text under a heading with its path, as sent to the model."""
        return f"{heading(self.path)}\n\n{self.text}"


class Instructions(Struct, frozen=True):
    """The instructions that apply, and the files that are refused, each with the reason.

    `untrusted` holds the files above the project that the user does not trust.
    """

    entries: tuple[Instruction, ...]
    refused: tuple[tuple[Path, str], ...] = ()
    untrusted: tuple[Item, ...] = ()

    @property
    def text(self) -> str:
        """The text of all instructions, each under its path."""
        return "\n\n".join(map(str, self.entries))


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    path: str
    imports: bool = False


class _Rules(Struct, frozen=True, forbid_unknown_fields=True):
    folder: str
    suffix: str
    otherwise: Literal["always", "never"]


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of files.toml."""

    first: str
    override: str
    packages: frozenset[str]
    importable: frozenset[str]
    files: tuple[_File, ...]
    rules: tuple[_Rules, ...]


@cache
def _table() -> _Table:
    return read_table(__package__, "files.toml", _Table)


def heading(path: Path) -> str:
    """Return the heading for the text of an instruction file."""
    return f"## {path}"


def read_instructions(cwd: Path, user_file: Path, trusts: Trusts) -> Instructions:
    """Return the instructions that apply in `cwd`, from the most general to the most specific.

    The user's own instructions come first, then those of each folder from the outermost parent
    down to `cwd`. In the project, a file may be a symlink to another file of the project. Above
    the project only a trusted `AGENTS.md` is used, and it must not be a link out of its folder. A
    file that cannot be read is skipped and logged.
    """
    top, settings = project_top(cwd), find_settings(cwd, trusts)
    collector = _Collector(settings)
    collector.add_file(user_file, partial(read_user_file, user_file, limit=FILE_LIMIT + 1))
    project_reader, parent_owners = _Reader(top, trusted_owners(top, cwd)), trusted_owners()
    for folder in reversed((cwd, *cwd.parents)):
        if folder.is_relative_to(top):
            collector.add_folder(folder, project_reader)
        else:
            collector.add_trusted(folder / _table().first, _Reader(folder, parent_owners), trusts)
    collector.add_listed(top, cwd, project_reader, trusts)
    collector.add_style(project_reader)
    return collector.instructions()


def item_paths(cwd: Path, top: Path) -> tuple[Path, ...]:
    """Return the files in which `instruction_items` may find one; reads no file.

    Args:
        top: the top folder of its project.
    """
    tables = (folder / name for folder in (top, cwd) for name in PROJECT_TABLES)
    return (*tables, *(folder / _table().first for folder in top.parents))


def instruction_items(cwd: Path) -> tuple[Item, ...]:
    """Return the instructions that the user can trust.

    These are the files above the project of `cwd`, and the lists of files in its opencode.json.
    """
    top = project_top(cwd)
    collector, owners = _Collector(ProjectSettings()), trusted_owners()
    for folder in top.parents:
        collector.add_trusted(folder / _table().first, _Reader(folder, owners), lambda _: False)
    collector.add_listed(top, cwd, _Reader(top, trusted_owners(top, cwd)), lambda _: False)
    return collector.instructions().untrusted


def added_instructions(
    path: Path,
    root: Path,
    is_known: Callable[[Path], bool],
    settings: ProjectSettings | None = None,
) -> Instructions:
    """Return the instructions for a file that the model does not have yet, most general first.

    They come from the file's folder and all folders above it in the project, and from rules whose
    patterns match the file.

    Args:
        path: the file, resolved.
        root: the session folder that contains the file, resolved.
        is_known: returns whether the model already has an instruction file, which is then skipped.
        settings: the trusted settings of the project, which may name further files.
    """
    top = project_top(root)
    if not path.is_relative_to(top) or not _table().packages.isdisjoint(
        path.relative_to(root).parts
    ):
        return Instructions(())
    collector = _Collector(
        settings or ProjectSettings(), lambda candidate: candidate == path or is_known(candidate)
    )
    reader = _Reader(top, trusted_owners(top, root))
    for folder in reversed(path.parents):
        if folder.is_relative_to(top):
            collector.add_folder(folder, reader, touched=path)
    return collector.instructions()


class _Reader:
    """Reads the files of one project, or of one folder above it."""

    def __init__(self, within: Path, owners: frozenset[int]) -> None:
        self._within = within
        self._owners = owners

    def read(self, path: Path, limit: int = FILE_LIMIT) -> bytes:
        """Return the first bytes of a file; raise the same errors as `read_trusted`."""
        return read_trusted(path, self._within, self._owners, limit=limit + 1)

    def imported(self, path: Path) -> str | None:
        """Return the text of a file that an instruction file of the project imports, or None."""
        try:
            inner = Path(real_path(path)).relative_to(real_path(self._within))
            hidden = [part for part in inner.parts if part.startswith(".")]
            if not _table().importable.issuperset(hidden):
                return None  # such as .env
            raw = self.read(path)
        except (OSError, ValueError):  # usually not an import, but a person's name
            return None
        return None if b"\0" in raw else _text(path, raw)


class _Collector:
    """Collects instructions in the order in which they are found, without duplicates."""

    def __init__(
        self, settings: ProjectSettings, is_known: Callable[[Path], bool] = lambda _: False
    ) -> None:
        self._settings = settings
        self._is_known = is_known
        self._entries: dict[str, Instruction] = {}
        self._refused: list[tuple[Path, str]] = []
        self._untrusted: list[Item] = []
        self._remaining = TOTAL_LIMIT

    def instructions(self) -> Instructions:
        """Return what was collected."""
        return Instructions(
            tuple(self._entries.values()), tuple(self._refused), tuple(self._untrusted)
        )

    def add_file(self, path: Path, read: Callable[[], bytes]) -> str:
        """Add a file; return its text, or "" if there is none."""
        text = self._read(path, read)
        self._add(path, text)
        return text

    def add_trusted(self, path: Path, reader: _Reader, trusts: Trusts) -> None:
        """Add a file from a folder above the project, if the user trusts it."""

        def read() -> bytes:
            raw = reader.read(path)
            item = text_item("instructions", folder_name(path.parent), path, raw)
            if trusts(item) or not raw.strip():
                return raw
            self._untrusted.append(item)
            return b""

        self.add_file(path, read)

    def add_listed(self, top: Path, cwd: Path, reader: _Reader, trusts: Trusts) -> None:
        """Add the files that `instructions` of the project's opencode.json lists, if trusted."""
        for folder in dict.fromkeys((top, cwd)):
            for config in (folder / name for name in PROJECT_TABLES):
                try:
                    entries = listed_entries(reader.read(config, CONFIG_LIMIT))
                except OSError:
                    continue  # missing, or reported with its agents
                if not entries:
                    continue
                summary = printable_line(", ".join(entries), _MAX_SHOWN_LENGTH)
                raw = trusted_text(entries)
                item = text_item("instructions", folder_name(top), config, raw, summary)
                if trusts(item):
                    for entry in entries:
                        self._add_entry(entry, config, reader)
                else:
                    self._untrusted.append(item)

    def _add_entry(self, entry: str, config: Path, reader: _Reader) -> None:
        """Add the files of one entry of a list; report an entry without any."""
        label = printable_line(entry, 80)
        if entry.startswith(("http://", "https://")):
            reason = f"instructions: {label} is not fetched; save it as a file of the project"
            self._refused.append((config, reason))
            return
        has_file = False
        for path in matching_files(entry, config.parent, _table().packages):
            text = reader.imported(path)
            has_file = has_file or text is not None
            self._add(path, text or "")
        if not has_file:
            reason = f"instructions: {label} is no readable file of the project; fix the path"
            self._refused.append((config, reason))

    def add_folder(self, folder: Path, reader: _Reader, *, touched: Path | None = None) -> None:
        """Add the instructions of a folder, and those of its rules that match `touched`."""
        table = _table()
        for name in self._settings.file_names:
            self._add_named(folder / name, reader)
        first = folder / table.override
        first = first if os.path.exists(first) else folder / table.first
        if self._is_known(first) or self.add_file(first, partial(reader.read, first)):
            return
        for file in table.files:
            path = folder / file.path
            if self._is_known(path) or os.path.isdir(path):  # .clinerules may be a folder of rules
                continue
            text = self.add_file(path, partial(reader.read, path))
            if file.imports:
                self._add_imports(path, text, reader)
        for name in self._settings.fallback_names:
            self._add_named(folder / name, reader)
        for rules in table.rules:
            for path in _rule_files(folder / rules.folder, rules.suffix):
                if self._is_known(path):
                    continue
                content = self._read(path, partial(reader.read, path))
                rule = parse_rule(content, otherwise=rules.otherwise)
                matching = (
                    rule.when == "matching"
                    and touched is not None
                    and rule.applies_to(touched.relative_to(folder).as_posix())
                )
                if rule.when == "always" or matching:
                    self._add(path, rule.text)
                elif rule.topic and touched is None:
                    self._add(path, f"[Read this file before work on: {rule.topic}]")

    def add_style(self, reader: _Reader) -> None:
        """Add the output style that the project's settings name."""
        if self._settings.style is None:
            return
        file, name = self._settings.style
        folder = file.parent / "output-styles"
        for path in itertools.islice(sorted(folder.glob("*.md")), _MAX_RULE_FILES):
            fields, text = split_front_matter(reader.imported(path) or "")
            if name in {path.stem, *fields.get("name", ())}:
                self._add(path, text)
                return
        if name != "default":
            label = printable_line(name, 80)
            self._refused.append((file, f"outputStyle: {label} is no file of {folder}; add it"))

    def _add_named(self, path: Path, reader: _Reader) -> None:
        """Add a file that the settings name, and those that it imports."""
        text = reader.imported(path)
        if text and not self._is_known(path):
            self._add(path, text)
            self._add_imports(path, text, reader)

    def _add_imports(self, path: Path, text: str, reader: _Reader) -> None:
        for imported, content in imported_files(text, path, reader.imported):
            self._add(imported, content)

    def _add(self, path: Path, text: str) -> None:
        if not text or text in self._entries or self._is_known(path):
            return
        if len(text) > self._remaining:
            _log.warning("%s is not used: the instructions are too long together", path)
            return
        self._remaining -= len(text)
        self._entries[text] = Instruction(path, text)

    def _read(self, path: Path, read: Callable[[], bytes]) -> str:
        try:
            return _text(path, read())
        except RefusedFileError as error:
            _log.warning("%s is not used: %s", path, error.why)
            self._refused.append((path, error.why))
        except (FileNotFoundError, NotADirectoryError):
            pass
        except OSError as error:
            _log.warning("%s cannot be read: %s", path, error.strerror or error)
        return ""


def _rule_files(folder: Path, suffix: str) -> Iterator[Path]:
    """Yield the files below a folder of rules, folder by folder, sorted by name."""
    remaining = _MAX_RULE_FILES
    for parent, folders, names in itertools.islice(os.walk(folder), _MAX_RULE_FILES):
        folders.sort()
        for name in sorted(names):
            if name.endswith(suffix) and remaining:
                remaining -= 1
                yield Path(parent) / name


def _text(path: Path, raw: bytes) -> str:
    if len(raw) > FILE_LIMIT:
        _log.warning("%s is longer than %d bytes; the rest is left out", path, FILE_LIMIT)
    return raw[:FILE_LIMIT].decode("utf-8", "replace").strip()
