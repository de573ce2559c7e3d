"""Read hooks from settings files: JSON, and TOML of codex."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.hook_types import HookConfig, HookEvent
from acp_agent.content import printable_line
from acp_agent.errors import ConfigError
from acp_agent.hooks.tool_names import matches
from acp_agent.hooks.types import Hook
from acp_agent.permissions.policy.rules import RuleError, read_rule
from acp_agent.platform.decoding import convert

_MAX_BYTES = 1_000_000  # of one file
_EVENTS: frozenset[str] = frozenset(get_args(HookEvent))
# Events of the contract that never happen here: there are no teams, this program makes worktrees,
# and commands in a skill's text are calls of the model.
_UNUSED_EVENTS = frozenset(
    {"PreSkillShellCommand", "TeammateIdle", "WorktreeCreate", "WorktreeRemove"}
)
# Seconds that a handler may take by default: by its type, else by its event.
_TIMEOUTS = {"prompt": 30.0, "agent": 60.0}
_EVENT_TIMEOUTS = {"UserPromptSubmit": 30.0, "MessageDisplay": 10.0}
_TIMEOUT = 600.0


class HookProblem(Struct, frozen=True):
    """An error in a settings file.

    `is_foreign` means that the hooks are written for another program, which is no error.
    """

    path: str
    why: str
    is_foreign: bool = False


def read_bytes(file: Path) -> bytes | None:
    """Return a file's content, or None if it does not exist.

    Raises:
        OSError: the file cannot be read.
        ConfigError: it is not a regular file, or is too large.
    """
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with open(descriptor, "rb") as opened:  # noqa: PTH123 - by descriptor
        status = os.fstat(opened.fileno())
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MAX_BYTES:
            raise ConfigError(f"it is no file of at most {_MAX_BYTES:,} bytes; shorten it")
        return opened.read(_MAX_BYTES + 1).removeprefix(b"\xef\xbb\xbf")


def parse_settings(raw: bytes, file: Path) -> dict[str, Any]:
    """Return the settings in a file. Raises ConfigError if the file is invalid."""
    if file.suffix == ".toml":
        from acp_agent.extensions.definitions.skill_files import read_toml  # noqa: PLC0415 - codex's only

        try:
            settings = read_toml(raw.decode())
        except UnicodeDecodeError:
            raise ConfigError("it is not UTF-8 text; save the file as UTF-8") from None
        hooks = settings.get("hooks")
        if isinstance(hooks, dict):  # codex stores other data next to the events
            settings["hooks"] = {
                name: groups for name, groups in hooks.items() if name[:1].isupper()
            }
        return settings
    try:
        settings = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        from acp_agent.config.json_files import explain_json  # noqa: PLC0415 - rarely

        raise explain_json(raw) from None
    if not isinstance(settings, dict):
        raise ConfigError("line 1: expected an object; write { first")
    return settings


def with_line(hook_or_problem: Hook | HookProblem, raw: bytes) -> Hook | HookProblem:
    """Add the line of the event to a problem; a hook is returned unchanged."""
    if isinstance(hook_or_problem, Hook) or hook_or_problem.path.endswith(".toml"):
        return hook_or_problem
    from acp_agent.config.json_files import member_line  # noqa: PLC0415 - rarely

    keys = tuple(hook_or_problem.why.partition(":")[0].split("."))
    return replace(
        hook_or_problem, path=f"{hook_or_problem.path}:{member_line(raw.decode(), keys)}"
    )


class _Handler(
    Struct,
    rename={
        "on_failure": "onFailure",
        "condition": "if",
        "runs_async": "async",
        "rewakes": "asyncRewake",
        "continue_on_block": "continueOnBlock",
        "header_variables": "allowedEnvVars",
        "status_message": "statusMessage",
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
    header_variables: list[str] = msgspec.field(default_factory=list)
    shell: Literal["bash", "powershell"] | None = None
    condition: str = ""
    timeout: float | None = None
    on_failure: Literal["continue", "block"] = "continue"
    once: bool = False
    runs_async: bool = False
    rewakes: bool = False
    status_message: str = ""


class _Group(Struct):
    hooks: list[Any]
    matcher: str = ""


def hooks_in(value: object, file: str, *, by_user: bool) -> Iterator[Hook | HookProblem]:
    """Yield the hooks of a file, and a problem for each invalid one.

    Args:
        value: an object with a list for each event.
        by_user: whether the file belongs to the user.
    """
    if not isinstance(value, dict):
        yield HookProblem(file, "hooks: expected an object with a list for each event")
        return
    for event, groups in value.items():
        if event in _UNUSED_EVENTS:
            continue
        if event not in _EVENTS:
            why = f"hooks.{event}: there is no such event here; it is ignored"
            yield HookProblem(file, why, is_foreign=True)
            continue
        try:
            group_list = msgspec.convert(groups, list[Any])
        except msgspec.ValidationError as error:
            yield HookProblem(file, f"hooks.{event}: {error}")
            continue
        for index, group in enumerate(group_list):
            yield from _read_group(event, group, file, f"[{index}]", by_user=by_user)


def _read_group(
    event: str, value: object, file: str, position: str, *, by_user: bool
) -> Iterator[Hook | HookProblem]:
    """Yield the hooks of a group; an invalid hook does not affect the others."""
    try:
        group = convert(value, _Group)
    except msgspec.ValidationError as error:
        yield _type_problem(event, error, file, position)
        return
    for index, entry in enumerate(group.hooks):
        try:
            handler = convert(entry, _Handler)
        except msgspec.ValidationError as error:
            yield _type_problem(event, error, file, f"{position}.hooks[{index}]")
        else:
            yield _read_handler(event, group.matcher, handler, file, by_user=by_user)


def _type_problem(
    event: str, error: msgspec.ValidationError, file: str, position: str
) -> HookProblem:
    message, separator, path = str(error).partition(" - at `$")
    location = f"{position}{path.removesuffix('`')}" if separator else position
    return HookProblem(file, f"hooks.{event}: {message} - at `${location}`")


def _read_handler(
    event: str, matcher: str, handler: _Handler, file: str, *, by_user: bool
) -> Hook | HookProblem:
    if handler.type not in {"command", "http", "prompt", "agent", "mcp_tool"}:
        why = f"hooks.{event}: handlers of the type {handler.type!r} are not run here"
        return HookProblem(file, why, is_foreign=True)
    return _check_hook(
        Hook(
            event=convert(event, HookEvent),
            matcher=matcher,
            command=handler.command if handler.type == "command" else "",
            args=None if handler.args is None else tuple(handler.args),
            url=handler.url if handler.type == "http" else "",
            prompt=handler.prompt if handler.type in {"prompt", "agent"} else "",
            verifies=handler.type == "agent",
            model=handler.model,
            continue_on_block=handler.continue_on_block,
            server=handler.server if handler.type == "mcp_tool" else "",
            tool=handler.tool,
            input=handler.input,
            headers=handler.headers,
            header_variables=tuple(handler.header_variables),
            shell=handler.shell or "",
            condition=handler.condition,
            timeout=handler.timeout or _default_timeout(event, handler.type),
            runs_async=handler.runs_async or handler.rewakes,
            rewakes=handler.rewakes,
            once=handler.once,
            blocks_on_failure=handler.on_failure == "block",
            label=printable_line(handler.status_message, 80),
            by_user=by_user,
            source=file,
        )
    )


def _default_timeout(event: str, kind: str) -> float:
    """Return the seconds that a handler without `timeout` may take, as in the contract."""
    return _TIMEOUTS.get(kind) or _EVENT_TIMEOUTS.get(event, _TIMEOUT)


def configured_hook(event: HookEvent, config: HookConfig, file: str) -> Hook | HookProblem:
    """Return a hook of the user's configuration, or a problem if it is invalid."""
    return _check_hook(
        Hook(
            event=event,
            matcher=config.matcher,
            command=config.command,
            args=None if config.args is None else tuple(config.args),
            url=config.url,
            prompt=config.prompt,
            verifies=config.agent,
            model=config.model,
            continue_on_block=config.continue_on_block,
            server=config.server,
            tool=config.tool,
            input=config.input,
            headers=config.headers,
            condition=config.condition,
            timeout=config.timeout,
            runs_async=config.runs_async or config.rewakes,
            rewakes=config.rewakes,
            once=config.once,
            blocks_on_failure=config.on_failure == "block",
            sandbox=config.sandbox,
            by_user=True,
            source=file,
        )
    )


def _check_hook(hook: Hook) -> Hook | HookProblem:
    """Return the hook, or a problem if it is invalid."""
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
