"""Where hooks come from: the configuration, settings of `.claude` and `.codex`, and plugins.

In a file each event has a list of objects with a `matcher` and `hooks`, each of these with a
`type`. A project's files are used once the user trusts them, by their content and by that of the
project's programs that they name.
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.hook_types import HookConfig, HookEvent
from acp_agent.errors import ConfigError
from acp_agent.extensions.definitions.locations import (
    DefinitionFolders,
    any_plugin_folder,
    find_repository,
    hook_files,
    other_hook_files,
    project_hook_files,
)
from acp_agent.hooks.tool_names import matches
from acp_agent.hooks.types import Hook
from acp_agent.permissions.policy.rules import RuleError, read_rule
from acp_agent.platform.descriptor_limit import describe_os_error
from acp_agent.trust.items import Item, file_digest, folder_name, text_item

if TYPE_CHECKING:
    from acp_agent.extensions.plugins.package import Plugin

_MOST_BYTES = 1_000_000  # of one file
_LONGEST_NAME = 1_000  # characters of a word that may be a file
_SHOWN = 800  # characters of what a file does
_MOST = 200  # hooks of one file
PROJECT_VARIABLES = ("CLAUDE_PROJECT_DIR", "ACP_AGENT_PROJECT_DIR")
_PROJECT = re.compile(rf"\$\{{?({'|'.join(PROJECT_VARIABLES)})\b\}}?")
_OTHER_CONTRACT = (
    "hooks of this program are not run here; write them as hooks of .claude/settings.json"
)
_EVENTS: frozenset[str] = frozenset(get_args(HookEvent))


class HookProblem(Struct, frozen=True):
    """What is wrong in a file."""

    path: str
    why: str


class FoundHooks(Struct, frozen=True, kw_only=True):
    """The hooks of a session, in the order in which they count.

    Attributes:
        hooks: those that may run.
        problems: what is wrong.
        untrusted: the files of the project that the user does not trust.
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
        configured: those of the user's configuration, by event.
        config_file: that file, for messages.
        home: the user's home folder.
        places: where plugins are.
        cwd: the session's folder.
        confine_own: whether the user's own run confined.
        trusts: whether the user trusts an item.
    """
    found = _Collected(trusts, confine_own=confine_own)
    for event, every in configured.items():
        for one in every:
            found.add(_configured(event, one, config_file))
    own = hook_files(home)
    for file in own:
        found.read(file, None)
    for file in project_hook_files(cwd):
        if os.path.realpath(file) not in map(os.path.realpath, own):
            found.read(file, cwd)
    for file in other_hook_files(cwd):
        found.problems.append(HookProblem(str(file), _OTHER_CONTRACT))
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


class _Collected:
    """Collects hooks, what is wrong, and what is not trusted."""

    def __init__(self, trusts: Callable[[Item], bool], *, confine_own: bool) -> None:
        self._confine_own = confine_own
        self.hooks: list[Hook] = []
        self.problems: list[HookProblem] = []
        self.untrusted: list[Item] = []
        self._trusts = trusts
        self._seen: set[tuple[object, ...]] = set()

    def add(self, found: Hook | HookProblem) -> None:
        """Add a hook that is not the same as one before, or a problem."""
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
        """Add the hooks of a plugin. They are not the user's own: they may refuse, not allow."""
        for part in plugin.hooks:
            given = part.content.get("hooks", {})
            for one in list(_hooks_in(given, str(part.file), by_user=False))[:_MOST]:
                known = isinstance(one, Hook)
                self.add(replace(one, variables=plugin.variables) if known else one)

    def read(self, file: Path, project: Path | None) -> None:
        """Read a settings file: a project's, where there is one, or the user's."""
        try:
            raw = _bytes_of(file)
            settings = {} if raw is None else _settings(raw, file)
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
            _with_line(one, raw)
            for one in _hooks_in(settings["hooks"], str(file), by_user=not project)
        ]
        if project is not None:
            hooks = [one for one in found if isinstance(one, Hook)]
            what = "; ".join(f"{one.event}: {one.name}" for one in hooks)
            top = find_repository(project) or project
            if file.suffix == ".toml":  # whose other settings may change
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
            with suppress(ValueError):  # the shell will say what is wrong with it
                words = shlex.split(hook.command, comments=True)
        for word in words:
            place = project / _PROJECT.sub(lambda _: str(project), word)
            if len(word) <= _LONGEST_NAME and place.is_file():
                named.add(place)
    if not named:
        return digest
    parts = [digest, *(f"{place}:{file_digest(place)}" for place in sorted(named))]
    return hashlib.sha256("\n".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def _bytes_of(file: Path) -> bytes | None:
    """Return a file's content; None where there is none.

    Raises:
        OSError: it cannot be read.
        ConfigError: it is no file, or too large.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - by descriptor
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            raise ConfigError(f"it is no file of at most {_MOST_BYTES:,} bytes; shorten it")
        return opened.read(_MOST_BYTES + 1)


def _settings(raw: bytes, file: Path) -> dict[str, Any]:
    if file.suffix == ".toml":
        from acp_agent.extensions.definitions.skill_files import read_toml  # noqa: PLC0415 - codex's only

        try:
            settings = read_toml(raw.decode())
        except UnicodeDecodeError:
            raise ConfigError("it is not UTF-8 text; save the file as UTF-8") from None
        hooks = settings.get("hooks")
        if isinstance(hooks, dict):  # codex keeps notes of its own beside the events
            settings["hooks"] = {name: one for name, one in hooks.items() if name[:1].isupper()}
        return settings
    try:
        settings = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        from acp_agent.config.json_lines import explain_json  # noqa: PLC0415 - rarely

        raise explain_json(raw) from None
    if not isinstance(settings, dict):
        raise ConfigError("line 1: expected an object; write { first")
    return settings


def _with_line(found: Hook | HookProblem, raw: bytes) -> Hook | HookProblem:
    """Add to a problem the line of the event that it is about."""
    if isinstance(found, Hook) or found.path.endswith(".toml"):
        return found
    from acp_agent.config.json_lines import member_line  # noqa: PLC0415 - rarely

    keys = tuple(found.why.partition(":")[0].split("."))
    return replace(found, path=f"{found.path}:{member_line(raw.decode(), keys)}")


class _Handler(
    Struct,
    rename={
        "on_failure": "onFailure",
        "condition": "if",
        "runs_async": "async",
        "rewakes": "asyncRewake",
        "continue_on_block": "continueOnBlock",
    },
):
    type: str
    command: str = ""
    args: list[str] | None = None
    url: str = ""
    prompt: str = ""
    model: str = ""
    continue_on_block: bool = False
    server: str = ""
    tool: str = ""
    input: dict[str, Any] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    condition: str = ""
    timeout: float = 60.0
    on_failure: Literal["continue", "block"] = "continue"
    once: bool = False
    runs_async: bool = False
    rewakes: bool = False


class _Group(Struct):
    hooks: list[_Handler]
    matcher: str = ""


def _hooks_in(value: object, file: str, *, by_user: bool) -> Iterator[Hook | HookProblem]:
    if not isinstance(value, dict):
        yield HookProblem(file, "hooks: expected an object with a list for each event")
        return
    for event, groups in value.items():
        if event not in _EVENTS:
            yield HookProblem(file, f"hooks.{event}: there is no such event here; it is ignored")
            continue
        try:
            parsed = msgspec.convert(groups, list[_Group])
        except msgspec.ValidationError as error:
            yield HookProblem(file, f"hooks.{event}: {error}")
            continue
        for group in parsed:
            for one in group.hooks:
                yield _handler(event, group.matcher, one, file, by_user=by_user)


def _handler(
    event: str, matcher: str, one: _Handler, file: str, *, by_user: bool
) -> Hook | HookProblem:
    if one.type not in {"command", "http", "prompt", "mcp_tool"}:
        why = f"hooks.{event}: handlers of the type {one.type!r} are not run here"
        return HookProblem(file, why)
    return _checked(
        Hook(
            event=msgspec.convert(event, HookEvent),
            matcher=matcher,
            command=one.command if one.type == "command" else "",
            args=None if one.args is None else tuple(one.args),
            url=one.url if one.type == "http" else "",
            prompt=one.prompt if one.type == "prompt" else "",
            model=one.model,
            continue_on_block=one.continue_on_block,
            server=one.server if one.type == "mcp_tool" else "",
            tool=one.tool,
            input=one.input,
            headers=one.headers,
            condition=one.condition,
            timeout=one.timeout,
            runs_async=one.runs_async or one.rewakes,
            once=one.once,
            blocks_on_failure=one.on_failure == "block",
            by_user=by_user,
            source=file,
        )
    )


def _configured(event: HookEvent, one: HookConfig, file: str) -> Hook | HookProblem:
    return _checked(
        Hook(
            event=event,
            matcher=one.matcher,
            command=one.command,
            args=None if one.args is None else tuple(one.args),
            url=one.url,
            prompt=one.prompt,
            model=one.model,
            continue_on_block=one.continue_on_block,
            server=one.server,
            tool=one.tool,
            input=one.input,
            headers=one.headers,
            condition=one.condition,
            timeout=one.timeout,
            runs_async=one.runs_async,
            once=one.once,
            blocks_on_failure=one.on_failure == "block",
            sandbox=one.sandbox,
            by_user=True,
            source=file,
        )
    )


def _checked(hook: Hook) -> Hook | HookProblem:
    """Return a hook, or what is wrong with it."""
    why = ""
    if sum(map(bool, (hook.command, hook.url, hook.prompt, hook.server))) != 1:
        why = "give either a command, a url, a prompt, or a server and its tool"
    elif bool(hook.server) != bool(hook.tool):
        why = "give a server and its tool"
    elif hook.url and not hook.url.startswith(("http://", "https://")):
        why = f"url: {hook.url!r} is no address of HTTP"
    elif not 0 < hook.timeout <= 3_600:
        why = "timeout: it is not between 0 and 3,600 seconds"
    try:
        matches(hook.matcher, "")
        if hook.condition:
            read_rule("deny", hook.condition)
    except re.error as error:
        why = f"matcher: {error}"
    except RuleError as error:
        why = f"if: {error}"
    return HookProblem(hook.source, f"hooks.{hook.event}: {why}") if why else hook
