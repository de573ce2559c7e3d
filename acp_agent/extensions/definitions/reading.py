"""Read the files of skills and agents in one folder, and report the errors in each."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal, TypeVar

from msgspec import Struct, structs

from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.agent_files import agent_files, read_agent
from acp_agent.extensions.definitions.build import DefinitionFile
from acp_agent.extensions.definitions.fields import (
    AgentFields,
    SkillFields,
    drop_invalid_notes,
    parse_fields,
    unused_fields,
)
from acp_agent.extensions.definitions.front_matter import field_line, parse_yaml
from acp_agent.extensions.definitions.locations import Source
from acp_agent.extensions.definitions.skill_files import (
    COMMANDS,
    FILE_NAME,
    PROGRAMS,
    command_files,
    is_visible,
    plain_name,
    read_command,
    read_skill,
    skill_files,
)
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.platform.trusted_files import (
    NOT_REGULAR,
    RefusedFileError,
    read_trusted,
    read_user_file,
)
from acp_agent.trust.store import (
    Item,
    Trusts,
    digest_with_files,
    folder_digest,
    named_files,
    text_item,
)

_Fields = TypeVar("_Fields", SkillFields, AgentFields)
_MAX_NAMED = 8  # number of unused fields, or programs, that are shown
# Fields that the question about trust shows, found without parsing the file.
_TRUST_FIELDS = re.compile(rb"^(model|tools|context|agent|extends):[ \t]*(\S.*)$", re.MULTILINE)

# The hooks of a skill or an agent, and what they run.
_HOOKS = re.compile(rb"^hooks:", re.MULTILINE)
_COMMANDS = re.compile(rb"\bcommand[\"']?:[ \t]*(\S.*)$", re.MULTILINE)

MAX_FILE_SIZE = 100_000  # bytes of a file
MAX_FILES = 1_000  # files of one folder that are read

_NO_FILE = "it is no ordinary file; put a Markdown file there"

Kind = Literal["skills", "commands", "agents"]


_FILES: Mapping[Kind, Callable[[Path, list[str]], list[Path]]] = {
    "skills": skill_files,
    "commands": command_files,
    "agents": agent_files,
}


class Origin(Struct, frozen=True, kw_only=True):
    """A project or a plugin that contains definitions.

    Attributes:
        folder: the folder; files outside it are refused.
        owners: the users whose files are accepted.
        top: the folder that the user trusts, as `folder_name` returns it.
        trusts: returns whether the user trusts a file; None: all are trusted.
        is_lenient: whether it follows another program, which requires less.
    """

    folder: Path
    owners: frozenset[int]
    source: Source
    top: str = ""
    trusts: Trusts | None = None
    is_lenient: bool = False
    prefix: str = ""


class Problem(Struct, frozen=True):
    """An error in a file or folder and its remedy, in one line of English.

    A file that is not `skipped` is used without the wrong part. `line` is the line of the wrong
    field, from 1, if it is known. `further_files` is the number of further files with the same
    error. `is_note` means that it is no error of the setup: the file is another program's, which
    ignores it as well, or another file of its name is used.
    """

    path: Path
    why: str
    skipped: bool = True
    line: int | None = None
    further_files: int = 0
    is_note: bool = False

    @property
    def location(self) -> str:
        """Return the file, with the line if it is known."""
        return str(self.path) if self.line is None else f"{self.path}:{self.line}"


def group_problems(problems: Iterable[Problem]) -> list[Problem]:
    """Return problems, with equal problems of several used files combined into one."""
    by_key: dict[tuple[Path, str] | str, Problem] = {}
    for problem in problems:
        key = (problem.path, problem.why) if problem.skipped else problem.why
        first = by_key.setdefault(key, problem)
        if first is not problem:
            by_key[key] = structs.replace(first, further_files=first.further_files + 1)
    return list(by_key.values())


def read_definitions(
    location: Path,
    origin: Origin | None,
    kind: Kind,
    fields: type[_Fields],
    problems: list[Problem],
) -> list[DefinitionFile[_Fields]]:
    """Read and parse the files of a folder, or a single file; report the invalid ones.

    Args:
        origin: the project or plugin that it belongs to; None for the user's own files.
        kind: the kind of its definitions; a folder named `commands` has commands.
        problems: errors are added to this list.
    """
    if kind == "skills" and location.name in COMMANDS:
        kind = "commands"
    is_plugin = origin is not None and bool(origin.prefix)
    lenient = location.parent.name in PROGRAMS or (origin is not None and origin.is_lenient)
    try:
        paths = (
            [location]
            if is_plugin and os.path.isfile(location)
            else find_files(location, kind, problems)
        )
    except ConfigError as error:
        problems.append(make_problem(location, error))
        return []
    files = []
    for path in paths:
        file_text = ""
        try:
            raw = read_file(path, origin)
            if (
                origin is not None
                and origin.trusts is not None
                and not origin.trusts(_item(kind, path, raw, origin.top))
            ):
                continue
            file_text = text = decode(raw)
            if kind == "commands":
                front_matter, text = read_command(path, text, location)
            elif kind == "skills":
                front_matter, text = read_skill(path, text, is_lenient=lenient)
                if _is_only_for_users(path, origin, problems):
                    front_matter = {**front_matter, "disable-model-invocation": True}
            elif (agent := read_agent(path, text, location, is_lenient=lenient)) is not None:
                front_matter, text = agent
            else:
                continue
            front_matter, wrong = drop_invalid_notes(front_matter, fields, is_lenient=lenient)
            checked = parse_fields(front_matter, fields)
        except ConfigError as error:
            line = field_line(file_text, str(error).partition(":")[0])
            is_note = True if lenient else None
            problems.append(make_problem(path, error, line=line, is_note=is_note))
        else:
            for note in wrong:
                line = field_line(file_text, str(note).partition(":")[0])
                problems.append(make_problem(path, note, skipped=False, line=line))
            if names := unused_fields(front_matter, fields):
                line = field_line(file_text, names[0])
                problems.append(
                    make_problem(path, unused_fields_error(names), skipped=False, line=line)
                )
            folder_name = path.parent.name
            if path.name == FILE_NAME and checked.name not in {
                folder_name,
                plain_name(folder_name),
            }:
                folder = path.parent.name
                name_error = ConfigError(
                    f"name: it is {checked.name}, that of its folder {folder}; give both the same"
                )
                line = field_line(file_text, "name")
                problems.append(make_problem(path, name_error, skipped=False, line=line))
            if origin is not None:
                checked = structs.replace(checked, name=f"{origin.prefix}{checked.name}")
            files.append(
                DefinitionFile(
                    path=path,
                    source="user" if origin is None else origin.source,
                    fields=checked,
                    text=text,
                    line=_first_line(file_text, text),
                    file_text=file_text,
                )
            )
    return files


def _is_only_for_users(path: Path, origin: Origin | None, problems: list[Problem]) -> bool:
    """Return whether codex's file next to a skill keeps the model from choosing it."""
    file = path.parent / "agents" / "openai.yaml"
    if path.name != FILE_NAME or not os.path.lexists(file):
        return False
    try:
        policy = parse_yaml(decode(read_file(file, origin)), first=1).get("policy")
    except ConfigError as error:
        problems.append(make_problem(file, error, skipped=False))
        return False
    return isinstance(policy, dict) and policy.get("allow_implicit_invocation") is False


def _first_line(file_text: str, text: str) -> int:
    """Return the number of the line at which the Markdown of a file begins."""
    return 1 + file_text.count("\n", 0, max(0, file_text.replace("\r\n", "\n").find(text)))


def unused_fields_error(names: list[str]) -> ConfigError:
    """Return the error for fields that have no meaning here."""
    quoted = ", ".join(printable_line(name)[:40] for name in names[:_MAX_NAMED])
    further = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    if len(names) == 1:
        return ConfigError(f"the field {quoted} is not used here; take it out, or leave it")
    return ConfigError(
        f"the fields {quoted}{further} are not used here; take them out, or leave them"
    )


def make_problem(
    path: Path,
    error: ConfigError,
    *,
    skipped: bool = True,
    line: int | None = None,
    is_note: bool | None = None,
) -> Problem:
    """Return an error as a `Problem`; by default, one in another program's folder is a note."""
    if is_note is None:
        is_note = not PROGRAMS.isdisjoint(path.parts)
    return Problem(path, printable_line(str(error)), skipped, line, is_note=is_note)


def _item(kind: Kind, path: Path, raw: bytes, top: str) -> Item:
    """Return the item that the user trusts: an agent's file, or all files of a skill."""
    fields = {
        match[1].decode(): match[2].decode("utf-8", "replace")
        for match in _TRUST_FIELDS.finditer(raw)
    }
    lines = [f"{name}: {printable_line(value.strip())[:80]}" for name, value in fields.items()]
    scripts: list[Path] = []
    if _HOOKS.search(raw):
        commands = [match[1].decode("utf-8", "replace") for match in _COMMANDS.finditer(raw)]
        lines.append(f"hooks: {printable_line('; '.join(commands))[:200]}")
        scripts = named_files(" ".join(commands), Path(top))
    if kind == "agents" or path.name != FILE_NAME:
        item = text_item("agent" if kind == "agents" else "skill", top, path, raw, "; ".join(lines))
        return structs.replace(item, digest=digest_with_files(item.digest, scripts))
    digest, programs = folder_digest(Path(os.path.realpath(path.parent)))
    if programs:
        lines.append(f"programs: {printable_line(', '.join(programs[:_MAX_NAMED]))[:80]}")
    item = text_item("skill", top, path, raw, "; ".join(lines))
    combined_digest = digest and hashlib.sha256(f"{digest} {item.digest}".encode()).hexdigest()
    return structs.replace(
        item, digest=combined_digest and digest_with_files(combined_digest, scripts)
    )


def find_files(folder: Path, kind: Kind, problems: list[Problem]) -> list[Path]:
    """Return the definition files of a folder, sorted; hidden and other files are skipped.

    Names with invisible characters and too many files are reported in `problems`.

    Raises:
        ConfigError: the folder cannot be read.
    """
    try:
        with os.scandir(folder) as entries:
            all_names = sorted(entry.name for entry in entries)
        names = [name for name in all_names if is_visible(name)]
        problems += [
            _unprintable_name(folder, name)
            for name in all_names
            if not name.isprintable() and not name.startswith(".")
        ]
        files = _FILES[kind](folder, names)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise ConfigError(
            f"cannot be read ({describe_os_error(error)}); check who may read it"
        ) from None
    if len(files) > MAX_FILES:
        limit = ConfigError(
            f"only the first {MAX_FILES} of {len(files)} files are used; take some out"
        )
        problems.append(make_problem(folder, limit, is_note=False))
    return files[:MAX_FILES]


def _unprintable_name(folder: Path, name: str) -> Problem:
    text = f"the name {ascii(name)[:80]} has characters that cannot be seen; rename it"
    return make_problem(folder, ConfigError(text))


def read_file(path: Path, origin: Origin | None) -> bytes:
    """Read a definition file.

    Args:
        origin: the project or plugin that it belongs to; None for the user's own file, anywhere.

    Raises:
        ConfigError: the file is unreadable, not regular, too large, outside the folder, or owned by
            another user.
    """
    try:
        if origin is None:
            raw = read_user_file(path, limit=MAX_FILE_SIZE + 1)
        else:
            raw = read_trusted(path, origin.folder, origin.owners, limit=MAX_FILE_SIZE + 1)
    except RefusedFileError as error:
        why = _NO_FILE if error.why == NOT_REGULAR else error.why
        raise ConfigError(why) from None
    except OSError as error:
        raise ConfigError(
            f"cannot be read ({describe_os_error(error)}); check who may read it"
        ) from None
    if len(raw) > MAX_FILE_SIZE:
        raise ConfigError("it is larger than 100 kB; put parts of it into files beside it")
    return raw


def decode(raw: bytes) -> str:
    """Return the text of a definition file. Raises ConfigError if it is not UTF-8."""
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        lines = raw[: error.start].split(b"\n")
        raise ConfigError(f"line {len(lines)} is not UTF-8 text; save the file as UTF-8") from None
