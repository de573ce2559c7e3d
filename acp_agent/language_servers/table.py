"""The table of language servers: `servers.toml` with the changes of the user's configuration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct, field

from acp_agent.config.types import LanguageServerConfig
from acp_agent.content import JsonObject
from acp_agent.platform.data_tables import read_table

_START_SECONDS = 15.0


class ServerSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a server; see the head of `servers.toml`."""

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

    def language_for(self, path: Path) -> str | None:
        """Return the id of a file's language; None if the server does not handle it."""
        return self.file_names.get(path.name) or self.extensions.get(path.suffix.lower())

    def settings_for(self, *, trusted: bool, large: bool) -> ServerSettings:
        """Return the settings that the server gets.

        Args:
            trusted: whether it may run the project's code.
            large: whether the project has too many files to check all of them.
        """
        result = ServerSettings(
            options=self.options, settings=self.settings, environment=self.environment
        )
        if self.safe is not None and not (trusted or self.by_user):
            result = _join_settings(result, self.safe)
        if self.large is not None and large:
            result = _join_settings(result, self.large)
        return result


@cache
def built_in_servers() -> tuple[ServerSpec, ...]:
    """Return the servers of `servers.toml`, in the order of preference."""
    table = read_table(__package__, "servers.toml", dict[str, ServerSpec])
    return tuple(msgspec.structs.replace(spec, name=name) for name, spec in table.items())


def available_servers(configured: Mapping[str, LanguageServerConfig]) -> tuple[ServerSpec, ...]:
    """Return the servers to use if they are installed, the user's own first."""
    built_in = {spec.name: spec for spec in built_in_servers()}
    configured_specs = [
        _with_config(built_in.get(name, ServerSpec(name=name, checks_syntax=False)), config)
        for name, config in configured.items()
        if config.enabled
    ]
    remaining = [spec for name, spec in built_in.items() if name not in configured]
    return (*configured_specs, *remaining)


def _with_config(spec: ServerSpec, config: LanguageServerConfig) -> ServerSpec:
    user_settings = ServerSettings(options=config.options, settings=config.settings)
    changed = msgspec.structs.replace(
        spec,
        options=_merge_tables(spec.options, config.options),
        settings=_merge_tables(spec.settings, config.settings),
        # What the user says of a server holds in every project.
        safe=None if spec.safe is None else _join_settings(spec.safe, user_settings),
        large=None if spec.large is None else _join_settings(spec.large, user_settings),
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


def _join_settings(base: ServerSettings, override: ServerSettings) -> ServerSettings:
    return ServerSettings(
        options=_merge_tables(base.options, override.options),
        settings=_merge_tables(base.settings, override.settings),
        environment={**base.environment, **override.environment},
    )


def _merge_tables(base: JsonObject, override: JsonObject) -> JsonObject:
    """Return `one` with what `other` says, table by table."""
    result = dict(base)
    for key, value in override.items():
        before = result.get(key)
        are_tables = isinstance(before, dict) and isinstance(value, dict)
        result[key] = _merge_tables(before or {}, value) if are_tables else value
    return result
