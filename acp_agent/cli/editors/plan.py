"""What is to become of a configuration file: worked out before anything is asked or written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path

from msgspec import Struct

from acp_agent.cli.editors import config_file, settings, toml_switch
from acp_agent.cli.editors.catalog import (
    Editor,
    Setting,
    check_ours,
    fill_template,
    filled,
    places,
    plugin,
)
from acp_agent.cli.editors.config_file import ConfigFile
from acp_agent.cli.editors.launch import Launch
from acp_agent.errors import InvalidInputError

NAME = "acp-agent"  # of our entry, wherever agents are listed


class Plan(Struct, frozen=True):
    """A file as it is, and as it is to be.

    Attributes:
        file: as it was read.
        after: its bytes to be; None where there is to be no file.
        restores: whether they are what the copy beside it has.
        keep: whether a copy of what it was is to lie beside it.
    """

    file: ConfigFile
    after: bytes | None
    restores: bool = False
    keep: bool = True

    @property
    def changes(self) -> bool:
        """Whether there is anything to do."""
        return self.after != self.file.data


def found_places(
    editor: Editor, environ: Mapping[str, str], platform: str
) -> tuple[list[Path], bool]:
    """Where the editor's configuration is, and whether it is there at all.

    Every place whose folder is there counts, since an editor may be installed twice. Where there is
    none, the first place is where the editor would look.
    """
    known = places(editor.places.get(platform, editor.places.get("linux", ())), environ)
    found = [path for path in known if path.exists() or _folder_of_editor(path).is_dir()]
    return (found, True) if found else (known[:1], False)


def settings_to_write(
    editor: Editor, environ: Mapping[str, str], platform: str
) -> tuple[list[Setting], bool]:
    """The settings that get an entry, and whether somebody reads them.

    Where extensions read them: those of the extensions that are installed, or else the first.
    """
    folders = places(editor.extensions.get(platform, editor.extensions.get("linux", ())), environ)
    read = [
        setting
        for setting in editor.settings
        if not setting.extension or any(_has(folder, setting.extension) for folder in folders)
    ]
    return (read, True) if read else ([*editor.settings[:1]], False)


def launches(editor: Editor, plan: Plan, command: Sequence[str]) -> list[Launch]:
    """What the editor starts by a file that is written: its own arguments and variables count."""
    found = []
    for setting in editor.settings:
        entry = settings.entry_in(plan.after or b"", _place(editor, setting))
        program, words = entry.get("command"), entry.get("args", [])
        argv = entry.get("argv") or ([program, *words] if isinstance(words, list) else None)
        given = entry.get("env")
        variables = given if isinstance(given, dict) else {}
        if isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv):
            named = {str(name): str(value) for name, value in variables.items()}
            found.append(Launch(argv, named))
    return found or [Launch(list(command))]


def lines(editor: Editor, chosen: Sequence[Setting], command: Sequence[str]) -> str:
    """What a person would add by hand."""
    if editor.form == "json":
        return "\n".join(
            settings.lines_to_add(_place(editor, setting), filled(setting.entry, command))
            for setting in chosen
        )
    if editor.form == "toml":
        return toml_switch.lines_to_add(editor.table, editor.switch)
    return own_text(editor, command)


def own_text(editor: Editor, command: Sequence[str]) -> str:
    """The template of an editor with the command in it."""
    folder = plugin(editor.plugin) if editor.plugin else None
    return fill_template(editor.template, command, folder).rstrip("\n")


def plan_setup(
    editor: Editor, path: Path, chosen: Sequence[Setting], command: Sequence[str]
) -> Plan:
    """The change that makes the agent known.

    Raises:
        InvalidInputError: the file is none that can be changed; the message says why.
    """
    file = config_file.read(path)
    if editor.form == "file":
        check_ours(file.data)
    after = _with_agent(editor, file.data or b"", chosen, command)
    return Plan(file, after, keep=editor.form != "file" and file.data is not None)


def plan_undo(editor: Editor, path: Path, command: Sequence[str]) -> Plan:
    """The change that takes just our part out again.

    Where nothing but our part has changed since, the file becomes what it was, to the byte; one
    that we made goes away.

    Raises:
        InvalidInputError: the file is none that can be changed; the message says why.
    """
    file = config_file.read(path)
    if file.data is None:
        return Plan(file, None)
    if editor.form == "file":
        check_ours(file.data)
        return Plan(file, None)
    for before in (config_file.read_backup(file), None):
        if _became(editor, before, file.data, command):
            return Plan(file, before, restores=before is not None, keep=False)
    after = _without_agent(editor, file.data)
    restores = after == config_file.read_backup(file)
    return Plan(file, after, restores=restores, keep=not restores)


def _became(editor: Editor, before: bytes | None, now: bytes, command: Sequence[str]) -> bool:
    """Whether `now` is what we made of `before`, which had nothing of ours."""
    base = before or b""
    try:
        chosen = [one for one in editor.settings if settings.entry_in(now, _place(editor, one))]
        made = _with_agent(editor, base, chosen, command)
        # A switch that was off is not ours, and is off again.
        clean = editor.form == "toml" or _without_agent(editor, base) == base
        return made == now != base and clean
    except InvalidInputError:
        return False


def _with_agent(
    editor: Editor, data: bytes, chosen: Sequence[Setting], command: Sequence[str]
) -> bytes:
    if editor.form == "file":
        return own_text(editor, command).encode() + b"\n"
    if editor.form == "toml":
        return toml_switch.with_switch(data, editor.table, editor.switch)
    return reduce(
        lambda text, setting: settings.with_entry(
            text, _place(editor, setting), filled(setting.entry, command)
        ),
        chosen,
        data,
    )


def _without_agent(editor: Editor, data: bytes) -> bytes:
    if editor.form == "toml":
        return toml_switch.without_switch(data, editor.table, editor.switch)
    return reduce(
        lambda text, setting: settings.without_entry(text, _place(editor, setting)),
        editor.settings,
        data,
    )


def _place(editor: Editor, setting: Setting) -> settings.Place:
    return settings.Place(setting.key, NAME, editor.step)


def _folder_of_editor(path: Path) -> Path:
    """The folder that is there once the editor is; Neovim's may well have no `plugin` yet."""
    return next(folder for folder in path.parents if folder.name not in {"plugin", "after"})


def _has(folder: Path, extension: str) -> bool:
    """Whether an extension is among those of a folder, in any version."""
    try:
        return any(path.name.lower().startswith(f"{extension}-") for path in folder.iterdir())
    except OSError:
        return False
