"""Find the hooks of a session in the configuration, in `.claude` and `.codex`, and in plugins.

In a file, each event has a list of objects with a `matcher` and `hooks`, and each hook has a
`type`. A project's files are used once the user trusts them. Trust depends on the content of a file
and of the project's programs that it names.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.hook_types import HookConfig, HookEvent
from acp_agent.config.json_files import member_line, read_json
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.definitions.locations import (
    AGENT_TABLES,
    DefinitionFolders,
    any_plugin_folder,
    foreign_hook_files,
    hook_files,
    project_hook_files,
    project_top,
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
from acp_agent.trust.store import (
    Item,
    digest_with_files,
    folder_name,
    named_file,
    named_files,
    text_item,
)

if TYPE_CHECKING:
    from acp_agent.extensions.plugins.package import Plugin

_MAX_DESCRIPTION = 800  # characters of the description of a file
_MAX_HOOKS = 200  # hooks of one file
_FOREIGN_HOOKS_REASON = (
    "hooks of this program are not run here; write them as hooks of .claude/settings.json"
)
_FOREIGN_CODE_REASONS = {
    "plugin": "plugins of opencode are not run here; write hooks of .claude/settings.json",
    "tool": "tools of opencode are not run here; offer them with an MCP server",
}


class FoundHooks(Struct, frozen=True, kw_only=True):
    """The hooks of a session, in order of precedence.

    Attributes:
        hooks: the hooks that may run.
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
    folders: DefinitionFolders,
    cwd: Path,
    confine_own: bool = True,
    trusts: Callable[[Item], bool],
) -> FoundHooks:
    """Return the hooks of a session in a folder. Reads files: call it in a thread.

    Args:
        config_file: the configuration file, for messages.
        confine_own: whether the user's own hooks run in the sandbox.
    """
    collector = _HookCollector(trusts, confine_own=confine_own)
    for event, configs in configured.items():
        for config in configs:
            collector.add(configured_hook(event, config, config_file))
    user_files = hook_files(home)
    for file in user_files:
        collector.read(file, None)
    for file in project_hook_files(cwd):
        if os.path.realpath(file) not in map(os.path.realpath, user_files):
            collector.read(file, cwd)
    collector.problems += _foreign_hook_problems(cwd)
    if any_plugin_folder(folders):
        from acp_agent.extensions.plugins.find import find_plugins  # noqa: PLC0415 - where there may be any

        for plugin in find_plugins(folders, trusts).plugins:
            collector.add_plugin(plugin)
    return FoundHooks(
        hooks=tuple(collector.hooks),
        problems=tuple(collector.problems),
        untrusted=tuple(collector.untrusted),
    )


def project_items(cwd: Path) -> tuple[Item, ...]:
    """Return the project's files that have hooks, trusted or not. Reads files."""
    collector = _HookCollector(lambda _: False, confine_own=True)
    for file in project_hook_files(cwd):
        collector.read(file, cwd)
    return tuple(collector.untrusted)


def _foreign_hook_problems(cwd: Path) -> Iterator[HookProblem]:
    """Name the hooks, plugins and tools of a project that are written for another program.

    Hooks of Gemini have other events, names of tools, answers and units of time than ours
    (https://geminicli.com/docs/hooks/reference).
    """
    for file in foreign_hook_files(cwd):
        if file.name == "settings.json":
            hooks, line = _setting(file, "hooks")
            if isinstance(hooks, dict) and any(
                isinstance(groups, list) and groups for groups in hooks.values()
            ):
                yield _foreign(f"{file}:{line}", _FOREIGN_HOOKS_REASON)
        elif file.name in AGENT_TABLES:
            for name in ("plugin", "plugins"):
                plugins, line = _setting(file, name)
                if plugins:
                    yield _foreign(f"{file}:{line}", _FOREIGN_CODE_REASONS["plugin"])
        elif file.parent.name == ".opencode":
            if any(is_visible(entry.name) for entry in file.glob("*")):
                yield _foreign(str(file), _FOREIGN_CODE_REASONS[file.name.removesuffix("s")])
        else:
            yield _foreign(str(file), _FOREIGN_HOOKS_REASON)


def _foreign(path: str, why: str) -> HookProblem:
    return HookProblem(path, why, is_foreign=True)


def _setting(file: Path, name: str) -> tuple[object, int]:
    """Return a value in another program's settings, None if it has none, and its line."""
    try:
        raw = read_bytes(file) or b""
        settings = read_json(raw)
    except (OSError, ConfigError, InvalidInputError):
        return None, 0  # reported with its MCP servers
    value = settings.get(name) if isinstance(settings, dict) else None
    return value, member_line(raw.decode("utf-8", "replace"), (name,))


class _HookCollector:
    """Collects hooks, errors, and files that are not trusted."""

    def __init__(self, trusts: Callable[[Item], bool], *, confine_own: bool) -> None:
        self._confine_own = confine_own
        self.hooks: list[Hook] = []
        self.problems: list[HookProblem] = []
        self.untrusted: list[Item] = []
        self._trusts = trusts
        self._seen: set[tuple[object, ...]] = set()

    def add(self, hook_or_problem: Hook | HookProblem) -> None:
        """Add a hook, unless there is an equal one, or add an error."""
        if isinstance(hook_or_problem, HookProblem):
            self.problems.append(hook_or_problem)
            return
        identity = (
            *(
                hook_or_problem.event,
                hook_or_problem.matcher,
                hook_or_problem.condition,
                hook_or_problem.command,
                hook_or_problem.args,
                hook_or_problem.url,
            ),
            *(
                hook_or_problem.prompt,
                hook_or_problem.model,
                hook_or_problem.server,
                hook_or_problem.tool,
                str(hook_or_problem.input),
            ),
        )
        if identity not in self._seen:
            self._seen.add(identity)
            is_unconfined = hook_or_problem.by_user and not self._confine_own
            self.hooks.append(
                replace(hook_or_problem, sandbox=False) if is_unconfined else hook_or_problem
            )

    def add_plugin(self, plugin: Plugin) -> None:
        """Add the hooks of a plugin, which may refuse calls but not allow them."""
        for part in plugin.hooks:
            groups = part.content.get("hooks", {})
            for hook in list(hooks_in(groups, str(part.file), by_user=False))[:_MAX_HOOKS]:
                is_hook = isinstance(hook, Hook)
                self.add(replace(hook, variables=plugin.variables) if is_hook else hook)

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
        hooks_and_problems = [
            with_line(hook, raw)
            for hook in hooks_in(settings["hooks"], str(file), by_user=not project)
        ]
        if project is not None:
            hooks = [hook for hook in hooks_and_problems if isinstance(hook, Hook)]
            description = "; ".join(f"{hook.event}: {hook.name}" for hook in hooks)
            top = project_top(project)
            if file.suffix == ".toml":  # its other settings may change without a new decision
                raw = msgspec.json.encode(settings["hooks"], enc_hook=str)
            item = text_item("hooks", folder_name(top), file, raw, description[:_MAX_DESCRIPTION])
            item = replace(item, digest=_digest(item.digest, hooks, project))
            if not self._trusts(item):
                self.untrusted.append(item)
                return
        for hook in hooks_and_problems[:_MAX_HOOKS]:
            self.add(hook)


def _digest(digest: str, hooks: Sequence[Hook], project: Path) -> str:
    """Return the digest of a file of hooks together with the project's files that they run."""
    files: list[Path] = []
    for hook in hooks:
        if hook.args is None:
            files += named_files(hook.command, project)
        else:
            words = (named_file(word, project) for word in (hook.command, *hook.args))
            files += filter(None, words)
    return digest_with_files(digest, files)
