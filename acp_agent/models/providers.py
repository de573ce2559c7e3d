"""Providers: the presets of `providers.json`, the user's own providers, and request headers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, Literal, Protocol
from urllib.parse import urlsplit

from msgspec import Struct

from acp_agent.config.model_types import ProviderConfig
from acp_agent.config.network_addresses import is_loopback
from acp_agent.config.types import Config
from acp_agent.errors import ConfigError
from acp_agent.platform.decoding import decode_json

# The API of requests and answers. `openai` is chat completions.
Api = Literal["openai", "openai_responses", "anthropic", "gemini", "demo", "plugin"]
Platform = Literal["azure", "bedrock", "vertex"]  # a cloud with its own variant of an API

# The supported version of Anthropic's API, which the `anthropic` package sends too;
# https://platform.claude.com/docs/en/api/versioning
ANTHROPIC_VERSION: Final = "2026-10-21"
LOCAL = "local"  # the id of the provider for local servers
BUNDLED_MODEL = "smollm2"  # of the extra `local`
# Spellings of the headers that the packages send. They only replace a header with the same
# spelling; with another spelling the header would be sent twice.
_SPELLED: Final = {
    name.lower(): name
    for name in (
        "Accept",
        "Authorization",
        "Content-Type",
        "OpenAI-Organization",
        "OpenAI-Project",
        "User-Agent",
        "X-Api-Key",
        "anthropic-beta",
        "anthropic-version",
    )
}
# The values of these headers are not secret, and may occur in ordinary text.
_PUBLIC: Final = frozenset(
    {"accept", "accept-encoding", "accept-language", "content-type", "user-agent"}
)


class Dialect(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The differences between a service's chat API and OpenAI's.

    `max_tokens` is the name of the field that limits the answer, or None to omit the limit.
    `thoughts_back` is the field in which reasoning is sent back: `reasoning_content` with its text,
    or the service's `reasoning_details`. `cache_key` groups the requests of a session for the
    cache. `cache_control` enables the cache for Anthropic's models.
    """

    max_tokens: Literal["max_tokens", "max_completion_tokens"] | None = "max_tokens"
    thoughts_back: Literal["reasoning_content", "reasoning_details"] | None = None
    cache_key: bool = False
    cache_control: bool = False


class Preset(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry of `providers.json`. The `…_env` fields name environment variables for a setting.

    `{region}` in `base_url` stands for the region. `base_urls` has the addresses of regions for
    which that pattern is wrong. `ambient_key` is true if the platform can find credentials itself.
    """

    id: str
    name: str
    api: Api
    base_url: str
    key_env: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    default_model: str | None = None
    key_required: bool = True
    dialect: Dialect = Dialect()
    platform: Platform | None = None
    ambient_key: bool = False
    base_urls: dict[str, str] = {}
    base_url_env: tuple[str, ...] = ()
    region_env: tuple[str, ...] = ()
    project_env: tuple[str, ...] = ()
    api_version_env: tuple[str, ...] = ()


class Provider(Struct, frozen=True, kw_only=True):
    """A provider with its settings. Its key must not appear in logs or messages.

    `moved` is true if the user has set another address; the models there may be others too.
    `set_by_client` is true if a client has set the address (`acp_agent.models.endpoints`), and
    `disabled` if a client has disabled the provider.
    """

    id: str
    name: str
    api: Api
    base_url: str
    key: str | None = None
    key_env: tuple[str, ...] = ()
    key_command: tuple[str, ...] = ()  # a command that prints the key
    key_refresh: float = 0.0  # seconds for which a printed key is used
    key_required: bool = True
    default_model: str | None = None
    headers: dict[str, str] = {}
    dialect: Dialect = Dialect()
    platform: Platform | None = None
    region: str | None = None
    project: str | None = None
    api_version: str | None = None
    moved: bool = False
    lacks: str | None = None  # advice for a required setting that is missing
    set_by_client: bool = False
    disabled: bool = False

    @property
    def usable(self) -> bool:
        """Return whether it is enabled and configured. A local server may still not be running."""
        key = self.has_key or not self.key_required
        return not self.disabled and key and self.lacks is None

    @property
    def has_key(self) -> bool:
        """Return whether there is a key, or a command that prints one."""
        return self.key is not None or bool(self.key_command)

    @property
    def api_type(self) -> str:
        """Return the protocol's name of the API (`LlmProtocol`), or our own name with a `_`."""
        names = {"openai_responses": "openai", "gemini": "_gemini"}
        return self.platform or names.get(self.api, self.api)

    @property
    def chosen(self) -> bool:
        """Return whether it is usable because the user gave a key, or because a client set it."""
        return self.usable and (self.has_key or self.set_by_client)

    @property
    def address(self) -> str:
        """Return the address of the API for display, without parts that may hold credentials."""
        components = urlsplit(self.base_url)
        host = components.netloc.rpartition("@")[2]
        return components._replace(netloc=host, query="", fragment="").geturl()

    def __repr__(self) -> str:
        """Return the id and the address, without the key."""
        return f"Provider({self.id!r}, {self.address!r})"


class Secrets(Protocol):
    """The stores of keys: the environment, the user's secrets file, the system's keyring."""

    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        """Return the key of `provider`, or None. The variables `key_env` take precedence."""

    def learn(self, values: Iterable[str]) -> None:
        """Treat values as secrets until the process ends."""


@cache
def presets() -> tuple[Preset, ...]:
    """Return the presets, in the order in which they are tried."""
    data = (Path(__file__).parent / "providers.json").read_bytes()
    return decode_json(data, tuple[Preset, ...])


def serves_bundled(provider: Provider, model: str) -> bool:
    """Return whether a model is the bundled one, which this program serves itself.

    It is not if the user or a client has set the address of the local server.
    """
    if provider.id != LOCAL or model != BUNDLED_MODEL or provider.set_by_client:
        return False
    return any(preset.id == LOCAL and preset.base_url == provider.base_url for preset in presets())


def canonical(name: str) -> str:
    """Return the id of the provider with this alias; other names are returned unchanged."""
    return next((preset.id for preset in presets() if name in preset.aliases), name)


def load_providers(
    config: Config, secrets: Secrets, environ: Mapping[str, str]
) -> dict[str, Provider]:
    """Return every provider by its id. Providers that only the configuration names come last.

    An environment variable overrides the configuration file: `<NAME>_BASE_URL` sets the address.

    Raises:
        ConfigError: the configuration names a provider twice, or a new one without an API or an
            address.
    """
    changes: dict[str, ProviderConfig] = {}
    names: dict[str, str] = {}
    for name, settings in config.providers.items():
        first_name = names.setdefault(canonical(name), name)
        if first_name != name:
            raise ConfigError(
                f"providers.{name}: it is the same provider as providers.{first_name}; "
                "merge the two tables",
                key=("providers", name),
            )
        changes[canonical(name)] = settings
    loaded = {
        preset.id: _provider(preset, changes.pop(preset.id, None), secrets, environ)
        for preset in presets()
    }
    for name, settings in changes.items():
        loaded[name] = _provider(_custom_preset(name, settings), settings, secrets, environ)
    return loaded


def _custom_preset(name: str, settings: ProviderConfig) -> Preset:
    if settings.api is None or (settings.base_url is None and settings.api != "plugin"):
        raise ConfigError(
            f"providers.{name}: no preset is named so; give it an api (openai, openai_responses, "
            "anthropic or gemini) and a base_url",
            key=("providers", name),
        )
    return Preset(
        id=name,
        name=name,
        api=settings.api,
        base_url=settings.base_url or "",
        key_env=() if settings.api_key_env else (f"{_variable(name)}_API_KEY",),
        key_required=settings.api_key_env is not None,
    )


def _provider(
    preset: Preset,
    settings: ProviderConfig | None,
    secrets: Secrets,
    environ: Mapping[str, str],
) -> Provider:
    settings = settings or ProviderConfig()
    key_env = ((settings.api_key_env,) if settings.api_key_env else ()) + preset.key_env
    key_command = tuple(settings.key_command or ())
    names = (*(f"{_variable(name)}_BASE_URL" for name in (preset.id, *preset.aliases)),)
    region = settings.region or _first(environ, preset.region_env)
    project = settings.project or _first(environ, preset.project_env)
    default_url = preset.base_urls.get(region or "", preset.base_url).rstrip("/")
    default_url = default_url.replace("{region}", region) if region else default_url
    variable = next((name for name in names + preset.base_url_env if environ.get(name)), None)
    base_url = environ[variable] if variable is not None else settings.base_url or default_url
    base_url = base_url.rstrip("/")
    # OpenAI's dialect may be wrong for another service that the user configured as OpenAI.
    moved = base_url != default_url
    host = _host(base_url) if base_url else ""
    problem = None
    if host is None:
        setting_name = variable or f"base_url in [providers.{preset.id}]"
        problem = f"{setting_name} is no address; write one like https://host/v1"
        base_url = ""
    key = None if key_command else secrets.get(preset.id, key_env) or None
    ambient = preset.ambient_key and settings != ProviderConfig()
    return Provider(
        id=preset.id,
        name=preset.name,
        api=settings.api or _api_at(preset, base_url, moved=moved),
        base_url="" if "{" in base_url else base_url,
        key=key,
        key_env=key_env,
        key_command=key_command,
        key_refresh=settings.key_refresh,
        key_required=preset.key_required
        and not ambient
        and not (moved and is_loopback(host or "")),
        default_model=preset.default_model,
        headers=dict(settings.headers),
        dialect=Dialect() if moved and preset.id == "openai" else preset.dialect,
        platform=preset.platform,
        region=region,
        project=project,
        api_version=settings.api_version or _first(environ, preset.api_version_env),
        moved=moved and preset.platform is None,
        lacks=problem
        or _wrong_key(preset.id, key, key_env, environ)
        or _lacking(preset, base_url, region, project),
    )


def _host(base_url: str) -> str | None:
    """Return the host of an HTTP address, or None if the address is invalid."""
    try:
        components = urlsplit(base_url)
        valid = components.scheme in {"http", "https"} and (
            components.port is None or components.port > 0
        )
    except ValueError:  # an unbalanced bracket or an invalid port
        return None
    return components.hostname if valid and base_url.isprintable() else None


def _wrong_key(
    provider: str, key: str | None, key_env: Sequence[str], environ: Mapping[str, str]
) -> str | None:
    """Return advice for a key that no header can carry (RFC 9110, section 5.5), without the key."""
    if key is None or (key.isascii() and key.isprintable()):
        return None
    reason = "has line breaks or unusual characters, which no key has"
    variable = next((name for name in key_env if environ.get(name, "").strip()), None)
    if variable is not None:
        return f"{variable} {reason}; set it again"
    return f"the key that is kept for it {reason}; run `acp-agent login {provider}`"


def _first(environ: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((value for name in names if (value := environ.get(name))), None)


def _api_at(preset: Preset, base_url: str, *, moved: bool) -> Api:
    """Return the API of a preset. At other addresses, most services have only chat completions."""
    if preset.platform is not None or not moved:
        return preset.api
    if preset.api == "openai_responses" or base_url.endswith("/openai"):
        return "openai"
    return preset.api


def _lacking(preset: Preset, base_url: str, region: str | None, project: str | None) -> str | None:
    """Return advice for a missing setting of a cloud, or None."""
    if preset.platform is None:
        return None
    if preset.region_env and not region:
        return f"set region in [providers.{preset.id}], or {preset.region_env[0]}"
    if preset.project_env and not project:
        return f"set project in [providers.{preset.id}], or {preset.project_env[0]}"
    if not base_url:
        return f"set base_url in [providers.{preset.id}], or {preset.base_url_env[0]}"
    return None


def _variable(name: str) -> str:
    return "".join(c if c.isalnum() else "_" for c in name).upper()


def check_fallbacks(config: Config, providers: Mapping[str, Provider]) -> None:
    """Check that there is a provider for each fallback model.

    Raises:
        ConfigError: a fallback model has no provider.
    """
    for index, ref in enumerate(config.fallback_models):
        if canonical(ref.partition("/")[0]) not in providers:
            raise ConfigError(
                f"fallback_models[{index}]: there is no provider for {ref!r}; name a model of one "
                f"of {', '.join(providers)}, or add a table [providers.{ref.partition('/')[0]}]",
                key=("fallback_models", index),
            )


def missing_setting_message(provider: Provider) -> str:
    """Return the message for a provider that lacks a required setting."""
    return f"{provider.name} cannot be used yet: {provider.lacks}."


def missing_key_message(provider: Provider) -> str:
    """Return the message for a provider that has no key."""
    if provider.disabled:
        return f"{provider.name} was disabled by the editor: enable it there, or use another model."
    variable = f" or set {provider.key_env[0]}" if provider.key_env else ""
    return f"{provider.name} needs a key: run `acp-agent login {provider.id}`{variable}."


def credentials_in(headers: Mapping[str, str]) -> list[str]:
    """Return the secrets in headers: the values, and the parts after a scheme ("Bearer …")."""
    values = [value for name, value in headers.items() if name.lower() not in _PUBLIC and value]
    return values + [value.partition(" ")[2].strip() for value in values if " " in value]


def spelled(headers: Mapping[str, str]) -> dict[str, str]:
    """Return the headers with their names in the spelling of the packages."""
    return {_SPELLED.get(name.lower(), name): value for name, value in headers.items()}
