"""Plan the change of a configuration file, before anything is asked or written."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

import tomlkit
from msgspec import Struct
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import Table

from acp_agent.cli.editors import config_file, settings
from acp_agent.cli.editors.catalog import (
    Editor,
    Setting,
    check_written_by_us,
    fill_entry,
    fill_template,
    plugin,
    resolve_paths,
)
from acp_agent.cli.editors.config_file import ConfigFile
from acp_agent.cli.editors.launch import Launch
from acp_agent.errors import InvalidInputError

NAME = "acp-agent"  # name of our entry in lists of agents


class Plan(Struct, frozen=True):
    """A file's current and planned content.

    Attributes:
        after: its planned bytes; None to delete it.
        restores: whether they are those of the backup.
        keep: whether to back up the current version.
    """

    file: ConfigFile
    after: bytes | None
    restores: bool = False
    keep: bool = True

    @property
    def changes(self) -> bool:
        """Return whether the file would change."""
        return self.after != self.file.data


def find_files(
    editor: Editor, environ: Mapping[str, str], platform: str
) -> tuple[list[Path], bool]:
    """Return the paths of the editor's configuration, and whether any exists.

    Every place with an existing folder counts, because an editor may be installed twice. If there
    is none, the first place is returned, where the editor would look.
    """
    candidates = resolve_paths(editor.places.get(platform, editor.places.get("linux", ())), environ)
    existing = [path for path in candidates if path.exists() or _folder_of_editor(path).is_dir()]
    return (existing, True) if existing else (candidates[:1], False)


def settings_to_write(
    editor: Editor, environ: Mapping[str, str], platform: str
) -> tuple[list[Setting], bool]:
    """Return the settings that get an entry, and whether anything reads them.

    If extensions read them, these are the settings of the installed extensions, or else the first.
    """
    folders = resolve_paths(
        editor.extensions.get(platform, editor.extensions.get("linux", ())), environ
    )
    read = [
        setting
        for setting in editor.settings
        if not setting.extension or any(_has(folder, setting.extension) for folder in folders)
    ]
    return (read, True) if read else ([*editor.settings[:1]], False)


def find_launches(editor: Editor, plan: Plan, command: Sequence[str]) -> list[Launch]:
    """Return what the editor starts with the new file, with the user's arguments and variables."""
    launches = []
    for setting in editor.settings:
        entry = settings.find_entry(plan.after or b"", _entry_place(editor, setting))
        program, words = entry.get("command"), entry.get("args", [])
        argv = entry.get("argv") or ([program, *words] if isinstance(words, list) else None)
        environment = entry.get("env")
        variables = environment if isinstance(environment, dict) else {}
        if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
            variables_by_name = {str(name): str(value) for name, value in variables.items()}
            launches.append(Launch(argv, variables_by_name))
    return launches or [Launch(list(command))]


def lines(editor: Editor, chosen: Sequence[Setting], command: Sequence[str]) -> str:
    """Return the lines to add by hand."""
    if editor.form == "json":
        return "\n".join(
            settings.lines_to_add(_entry_place(editor, setting), fill_entry(setting.entry, command))
            for setting in chosen
        )
    if editor.form == "toml":
        return lines_to_add(editor.table, editor.switch)
    return template_text(editor, command)


def template_text(editor: Editor, command: Sequence[str]) -> str:
    """Return the template of an editor with the command filled in."""
    folder = plugin(editor.plugin) if editor.plugin else None
    return fill_template(editor.template, command, folder).rstrip("\n")


def plan_setup(
    editor: Editor, path: Path, chosen: Sequence[Setting], command: Sequence[str]
) -> Plan:
    """Plan the change that adds the agent. Raises InvalidInputError."""
    file = config_file.read(path)
    if editor.form == "file":
        check_written_by_us(file.data)
    after = _with_agent(editor, file.data or b"", chosen, command)
    return Plan(file, after, keep=editor.form != "file" and file.data is not None)


def plan_undo(editor: Editor, path: Path, command: Sequence[str]) -> Plan:
    """Plan the change that removes only our part.

    If nothing else has changed since, the file is restored to the byte; one that we created is
    deleted.

    Raises:
        InvalidInputError: the file cannot be changed; the message says why.
    """
    file = config_file.read(path)
    if file.data is None:
        return Plan(file, None)
    if editor.form == "file":
        check_written_by_us(file.data)
        return Plan(file, None)
    for before in (config_file.read_backup(file), None):
        if _is_result_of_setup(editor, before, file.data, command):
            return Plan(file, before, restores=before is not None, keep=False)
    after = _without_agent(editor, file.data)
    restores = after == config_file.read_backup(file)
    return Plan(file, after, restores=restores, keep=not restores)


def _is_result_of_setup(
    editor: Editor, before: bytes | None, now: bytes, command: Sequence[str]
) -> bool:
    """Return whether `now` is the result of adding our part to `before`."""
    base = before or b""
    try:
        chosen = [
            setting
            for setting in editor.settings
            if settings.find_entry(now, _entry_place(editor, setting))
        ]
        result = _with_agent(editor, base, chosen, command)
        # A switch that was off before is turned off again.
        clean = editor.form == "toml" or _without_agent(editor, base) == base
        return result == now != base and clean
    except InvalidInputError:
        return False


def _with_agent(
    editor: Editor, data: bytes, chosen: Sequence[Setting], command: Sequence[str]
) -> bytes:
    if editor.form == "file":
        return template_text(editor, command).encode() + b"\n"
    if editor.form == "toml":
        return add_switch(data, editor.table, editor.switch)
    return reduce(
        lambda text, setting: settings.add_entry(
            text, _entry_place(editor, setting), fill_entry(setting.entry, command)
        ),
        chosen,
        data,
    )


def _without_agent(editor: Editor, data: bytes) -> bytes:
    if editor.form == "toml":
        return remove_switch(data, editor.table, editor.switch)
    return reduce(
        lambda text, setting: settings.remove_entry(text, _entry_place(editor, setting)),
        editor.settings,
        data,
    )


def _entry_place(editor: Editor, setting: Setting) -> settings.EntryPlace:
    return settings.EntryPlace(setting.key, NAME, editor.step)


def _folder_of_editor(path: Path) -> Path:
    """Return the folder that an editor creates; Neovim's may have no `plugin` folder yet."""
    return next(folder for folder in path.parents if folder.name not in {"plugin", "after"})


def _has(folder: Path, extension: str) -> bool:
    """Return whether an extension is installed in a folder, in any version."""
    try:
        return any(path.name.lower().startswith(f"{extension}-") for path in folder.iterdir())
    except OSError:
        return False


def add_switch(data: bytes, table: str, switch: str) -> bytes:
    """Return the file with `switch = true` in `[table]` and no other change.

    Raises:
        InvalidInputError: the file cannot be read or changed safely.
    """
    expected = _content(data)
    inner = expected.setdefault(table, {})
    if not isinstance(inner, dict):
        raise InvalidInputError(f"{table} is not a table")
    if inner.get(switch) is True:
        return data
    inner[switch] = True
    document = tomlkit.parse(data.decode())
    if table not in document:
        document[table] = tomlkit.table()
    _table(document, table)[switch] = True
    return _check_result(tomlkit.dumps(document), expected)


def remove_switch(data: bytes, table: str, switch: str) -> bytes:
    """Return the file without the switch, and without its table if that is empty.

    Raises:
        InvalidInputError: the file cannot be read or changed safely.
    """
    expected = _content(data)
    inner = expected.get(table)
    if not isinstance(inner, dict) or switch not in inner:
        return data
    del inner[switch]
    document = tomlkit.parse(data.decode())
    _table(document, table).remove(switch)
    if not inner:
        del expected[table]
        document.remove(table)
    return _check_result(tomlkit.dumps(document), expected)


def lines_to_add(table: str, switch: str) -> str:
    """Return the lines to add by hand."""
    return f"[{table}]\n{switch} = true"


def _content(data: bytes) -> dict[str, object]:
    try:
        content: dict[str, object] = tomllib.loads(data.decode())
        tomlkit.parse(data.decode())
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"it is not UTF-8 (byte {error.start + 1})") from None
    except RecursionError:
        raise InvalidInputError("it is nested too deeply") from None
    except (ValueError, TOMLKitError) as error:  # also for an integer with too many digits
        raise InvalidInputError(f"it cannot be read as TOML ({error})") from None
    return content


def _table(document: tomlkit.TOMLDocument, name: str) -> Table:
    table = document[name]
    if not isinstance(table, Table):  # written as `name = { … }` or with dotted keys
        raise InvalidInputError(f"[{name}] is written in a way that cannot be changed safely")
    return table


def _check_result(text: str, expected: object) -> bytes:
    if tomllib.loads(text) != expected:
        raise InvalidInputError("it is written in a way that cannot be changed safely")
    return text.encode()
