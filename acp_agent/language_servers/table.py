"""The table of language servers: `servers.toml` with the changes of the user's configuration."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec
from msgspec import Struct, field

from acp_agent.config.types import LanguageServerConfig
from acp_agent.content import JsonObject

_START_SECONDS = 15.0


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a server is given; see the head of `servers.toml`."""

    options: JsonObject = field(default_factory=dict)
    settings: JsonObject = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)


class ServerSpec(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A language server; see the head of `servers.toml`.

    `by_user` where the user's configuration names its command, which may then lie in the project.
    """

    name: str = ""
    commands: tuple[tuple[str, ...], ...] = ()
    install: str = ""
    extensions: dict[str, str] = field(default_factory=dict)
    file_names: dict[str, str] = field(default_factory=dict)
    root_markers: tuple[str, ...] = ()
    required_marker: bool = False
    group: str = ""
    options: JsonObject = field(default_factory=dict)
    settings: JsonObject = field(default_factory=dict)
    environment: dict[str, str] = field(default_factory=dict)
    start_seconds: float = _START_SECONDS
    safe: ServerSettings | None = None
    large: ServerSettings | None = None
    project_code: bool = False
    checks_syntax: bool = True
    by_user: bool = False

    @property
    def languages(self) -> tuple[str, ...]:
        """The ids of its languages."""
        return tuple(dict.fromkeys([*self.extensions.values(), *self.file_names.values()]))

    def language_of(self, path: Path) -> str | None:
        """Return the id of a file's language; None if the server does not handle it."""
        return self.file_names.get(path.name) or self.extensions.get(path.suffix.lower())

    def given(self, *, trusted: bool, large: bool) -> ServerSettings:
        """Return what the server is given.

        Args:
            trusted: whether it may run the project's code.
            large: whether the project has too many files to check all of them.
        """
        result = ServerSettings(
            options=self.options, settings=self.settings, environment=self.environment
        )
        if self.safe is not None and not (trusted or self.by_user):
            result = _joined(result, self.safe)
        if self.large is not None and large:
            result = _joined(result, self.large)
        return result


@cache
def built_in_servers() -> tuple[ServerSpec, ...]:
    """Return the servers of `servers.toml`, in the order of preference."""
    table = tomllib.loads(files(__package__).joinpath("servers.toml").read_text("utf-8"))
    return tuple(
        msgspec.convert({"name": name, **entry}, ServerSpec) for name, entry in table.items()
    )


def known_servers(configured: Mapping[str, LanguageServerConfig]) -> tuple[ServerSpec, ...]:
    """Return the servers to use if they are installed, the user's own first."""
    built_in = {spec.name: spec for spec in built_in_servers()}
    own = [
        _with_config(built_in.get(name, ServerSpec(name=name, checks_syntax=False)), config)
        for name, config in configured.items()
        if config.enabled
    ]
    others = [spec for name, spec in built_in.items() if name not in configured]
    return (*own, *others)


def _with_config(spec: ServerSpec, config: LanguageServerConfig) -> ServerSpec:
    own = ServerSettings(options=config.options, settings=config.settings)
    changed = msgspec.structs.replace(
        spec,
        options=_merged(spec.options, config.options),
        settings=_merged(spec.settings, config.settings),
        # What the user says of a server holds in every project.
        safe=None if spec.safe is None else _joined(spec.safe, own),
        large=None if spec.large is None else _joined(spec.large, own),
    )
    if config.command:
        changed = msgspec.structs.replace(
            changed, commands=(tuple(config.command),), by_user=True, project_code=False
        )
    if config.extensions:
        language = spec.languages[0] if spec.languages else spec.name
        ids = {
            end: spec.extensions.get(end, config.language or language) for end in config.extensions
        }
        changed = msgspec.structs.replace(changed, extensions=ids)
    if config.root_markers:
        changed = msgspec.structs.replace(changed, root_markers=tuple(config.root_markers))
    return changed


def _joined(one: ServerSettings, other: ServerSettings) -> ServerSettings:
    return ServerSettings(
        options=_merged(one.options, other.options),
        settings=_merged(one.settings, other.settings),
        environment={**one.environment, **other.environment},
    )


def _merged(one: JsonObject, other: JsonObject) -> JsonObject:
    """Return `one` with what `other` says, table by table."""
    result = dict(one)
    for key, value in other.items():
        before = result.get(key)
        both = isinstance(before, dict) and isinstance(value, dict)
        result[key] = _merged(before or {}, value) if both else value
    return result
