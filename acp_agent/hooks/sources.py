"""Find the hooks of a session in the configuration, in `.claude` and `.codex`, and in plugins.

In a file, each event has a list of objects with a `matcher` and `hooks`, and each hook has a
`type`. A project's files are used once the user trusts them. Trust depends on the content of a file
and of the project's programs that it names.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.hook_types import HookConfig, HookEvent
from acp_agent.config.json_comments import read_json
from acp_agent.config.json_lines import member_line
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import (
    AGENT_TABLES,
    DefinitionFolders,
    any_plugin_folder,
    find_repository,
    foreign_hook_files,
    hook_files,
    project_hook_files,
)
from acp_agent.extensions.definitions.skill_files import is_visible
from acp_agent.hooks.settings_files import (
    HookProblem,
    configured_hook,
    hooks_in,
    parse_settings,
    read_bytes,
    with_line,
)
from acp_agent.hooks.types import Hook
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.trust.items import Item, file_digest, folder_name, text_item

if TYPE_CHECKING:
    from acp_agent.extensions.plugins.package import Plugin

_LONGEST_NAME = 1_000  # characters of a word that may be a file
_SHOWN = 800  # characters of the description of a file
_MOST = 200  # hooks of one file
PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "ACP_AGENT_PROJECT_DIR")
_PROJECT = re.compile(rf"\$\{{?({'|'.join(PROJECT_VARIABLES)})\b\}}?")
_OTHER_CONTRACT = (
    "hooks of this program are not run here; write them as hooks of .claude/settings.json"
)
_OTHER_CODE = {
    "plugin": "plugins of opencode are not run here; write hooks of .claude/settings.json",
    "tool": "tools of opencode are not run here; offer them with an MCP server",
}


class FoundHooks(Struct, frozen=True, kw_only=True):
    """The hooks of a session, in order of precedence.

    Attributes:
        hooks: the hooks that may run.
        problems: the errors in files.
        untrusted: the project's files that the user does not trust.
    """

    hooks: tuple[Hook, ...] = ()
    problems: tuple[HookProblem, ...] = ()
    untrusted: tuple[Item, ...] = ()


def find_hooks(
    configured: Mapping[HookEvent, Sequence[HookConfig]],
    *,
    config_file: str,
    home: Path,
    places: DefinitionFolders,
    cwd: Path,
    confine_own: bool = True,
    trusts: Callable[[Item], bool],
) -> FoundHooks:
    """Return the hooks of a session in a folder. Reads files: call it in a thread.

    Args:
        configured: the hooks of the user's configuration, by event.
        config_file: the configuration file, for messages.
        home: the user's home folder.
        places: the folders of plugins.
        cwd: the session's folder.
        confine_own: whether the user's own hooks run in the sandbox.
        trusts: returns whether the user trusts an item.
    """
    found = _Collected(trusts, confine_own=confine_own)
    for event, every in configured.items():
        for one in every:
            found.add(configured_hook(event, one, config_file))
    own = hook_files(home)
    for file in own:
        found.read(file, None)
    for file in project_hook_files(cwd):
        if os.path.realpath(file) not in map(os.path.realpath, own):
            found.read(file, cwd)
    found.problems += _other_contracts(cwd)
    if any_plugin_folder(places):
        from acp_agent.extensions.plugins.find import find_plugins  # noqa: PLC0415 - where there may be any

        for plugin in find_plugins(places, trusts).plugins:
            found.add_plugin(plugin)
    return FoundHooks(
        hooks=tuple(found.hooks),
        problems=tuple(found.problems),
        untrusted=tuple(found.untrusted),
    )


def project_items(cwd: Path) -> tuple[Item, ...]:
    """Return the project's files that have hooks, trusted or not. Reads files."""
    found = _Collected(lambda _: False, confine_own=True)
    for file in project_hook_files(cwd):
        found.read(file, cwd)
    return tuple(found.untrusted)


def _other_contracts(cwd: Path) -> Iterator[HookProblem]:
    """Name the hooks, plugins and tools of a project that are written for another program.

    Hooks of Gemini have other events, names of tools, answers and units of time than ours
    (https://geminicli.com/docs/hooks/reference).
    """
    for file in foreign_hook_files(cwd):
        if file.name == "settings.json":
            hooks, line = _setting(file, "hooks")
            if isinstance(hooks, dict) and any(
                isinstance(one, list) and one for one in hooks.values()
            ):
                yield HookProblem(f"{file}:{line}", _OTHER_CONTRACT)
        elif file.name in AGENT_TABLES:
            plugins, line = _setting(file, "plugin")
            if plugins:
                yield HookProblem(f"{file}:{line}", _OTHER_CODE["plugin"])
        elif file.parent.name == ".opencode":
            if any(is_visible(one.name) for one in file.glob("*")):
                yield HookProblem(str(file), _OTHER_CODE[file.name.removesuffix("s")])
        else:
            yield HookProblem(str(file), _OTHER_CONTRACT)


def _setting(file: Path, name: str) -> tuple[object, int]:
    """Return a value in another program's settings, None if it has none, and its line."""
    try:
        raw = read_bytes(file) or b""
        settings = read_json(raw)
    except (OSError, ConfigError, InvalidInputError):
        return None, 0  # reported with its MCP servers
    value = settings.get(name) if isinstance(settings, dict) else None
    return value, member_line(raw.decode("utf-8", "replace"), (name,))


class _Collected:
    """Collects hooks, errors, and files that are not trusted."""

    def __init__(self, trusts: Callable[[Item], bool], *, confine_own: bool) -> None:
        self._confine_own = confine_own
        self.hooks: list[Hook] = []
        self.problems: list[HookProblem] = []
        self.untrusted: list[Item] = []
        self._trusts = trusts
        self._seen: set[tuple[object, ...]] = set()

    def add(self, found: Hook | HookProblem) -> None:
        """Add a hook, unless there is an equal one, or add an error."""
        if isinstance(found, HookProblem):
            self.problems.append(found)
            return
        same = (
            *(found.event, found.matcher, found.condition, found.command, found.args, found.url),
            *(found.prompt, found.model, found.server, found.tool, str(found.input)),
        )
        if same not in self._seen:
            self._seen.add(same)
            outside = found.by_user and not self._confine_own
            self.hooks.append(replace(found, sandbox=False) if outside else found)

    def add_plugin(self, plugin: Plugin) -> None:
        """Add the hooks of a plugin, which may refuse calls but not allow them."""
        for part in plugin.hooks:
            given = part.content.get("hooks", {})
            for one in list(hooks_in(given, str(part.file), by_user=False))[:_MOST]:
                known = isinstance(one, Hook)
                self.add(replace(one, variables=plugin.variables) if known else one)

    def read(self, file: Path, project: Path | None) -> None:
        """Read a settings file of a project, or of the user if `project` is None."""
        try:
            raw = read_bytes(file)
            settings = {} if raw is None else parse_settings(raw, file)
        except IsADirectoryError:
            self.problems.append(HookProblem(str(file), "it is a folder; put a file there"))
            return
        except OSError as error:
            why = f"cannot be read ({describe_os_error(error)}); check who may read it"
            self.problems.append(HookProblem(str(file), why))
            return
        except ConfigError as error:
            self.problems.append(HookProblem(str(file), str(error)))
            return
        if raw is None or not settings.get("hooks") or settings.get("disableAllHooks") is True:
            return
        found = [
            with_line(one, raw)
            for one in hooks_in(settings["hooks"], str(file), by_user=not project)
        ]
        if project is not None:
            hooks = [one for one in found if isinstance(one, Hook)]
            what = "; ".join(f"{one.event}: {one.name}" for one in hooks)
            top = find_repository(project) or project
            if file.suffix == ".toml":  # its other settings may change without a new decision
                raw = msgspec.json.encode(settings["hooks"], enc_hook=str)
            item = text_item("hooks", folder_name(top), file, raw, what[:_SHOWN])
            item = replace(item, digest=_digest(item.digest, hooks, project))
            if not self._trusts(item):
                self.untrusted.append(item)
                return
        for one in found[:_MOST]:
            self.add(one)


def _digest(digest: str, hooks: Sequence[Hook], project: Path) -> str:
    """Return the digest of a file of hooks together with the project's files that they run."""
    named: set[Path] = set()
    for hook in hooks:
        words = [hook.command, *(hook.args or ())]
        if hook.args is None:
            with suppress(ValueError):  # the shell will report the error
                words = shlex.split(hook.command, comments=True)
        for word in words:
            place = project / _PROJECT.sub(lambda _: str(project), word)
            if len(word) <= _LONGEST_NAME and place.is_file():
                named.add(place)
    if not named:
        return digest
    parts = [digest, *(f"{place}:{file_digest(place)}" for place in sorted(named))]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()
