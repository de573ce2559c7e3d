"""Endpoints that a client sets for providers, until the process ends.

They are not stored. The user's own key for a provider belongs to the configured address. It is sent
to a client's endpoint only if that has the same origin.

Source: Agent Client Protocol (unstable), providers/set; the RFD "Configurable LLM Providers".
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from acp_agent.errors import InvalidInputError
from acp_agent.models.providers import Dialect, Provider

API_TYPES: Final[tuple[Literal["anthropic", "openai"], ...]] = ("anthropic", "openai")

_MAX_URL_LENGTH = 2_048
_MAX_HEADERS_LENGTH = 32_768  # characters, all together
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, section 5.6.2
# Headers of the connection, which only the HTTP client can set (RFC 9110, section 7.6.1).
_CONNECTION_HEADERS = frozenset(
    {
        "connection", "content-length", "expect", "host", "keep-alive", "proxy-connection", "te",
        "trailer", "transfer-encoding", "upgrade",
    }
)  # fmt: skip


class Endpoint(Struct, frozen=True, kw_only=True):
    """The address of an API, and the headers to send with each request."""

    api: Literal["anthropic", "openai"]
    base_url: str
    headers: dict[str, str]

    def __repr__(self) -> str:
        """Return the API and the address, without the headers."""
        return f"Endpoint({self.api!r}, {self.base_url!r})"


def endpoint(api_type: str, base_url: str, headers: Mapping[str, str]) -> Endpoint:
    """Check a client's description of an endpoint and return the endpoint.

    Raises:
        InvalidInputError: it is not usable; the message names the field, but no header's value.
    """
    for api in API_TYPES:
        if api == api_type:
            return Endpoint(
                api=api, base_url=_validate_url(base_url), headers=_validate_headers(headers)
            )
    raise InvalidInputError(
        f"apiType: {api_type!r} is not supported; the types are {', '.join(API_TYPES)}",
        field="apiType",
    )


def at_endpoint(provider: Provider, client_endpoint: Endpoint | None) -> Provider:
    """Return a provider with a client's endpoint; None disables the provider."""
    if client_endpoint is None:
        return replace(provider, disabled=True)
    same_origin = origin(client_endpoint.base_url) == origin(provider.base_url)
    return replace(
        provider,
        api=provider.api
        if same_origin and provider.api_type == client_endpoint.api
        else client_endpoint.api,
        base_url=client_endpoint.base_url,
        headers=dict(client_endpoint.headers),
        key=provider.key if same_origin else None,
        key_command=provider.key_command if same_origin else (),
        key_required=False,
        dialect=provider.dialect if same_origin else Dialect(),
        platform=None,
        lacks=None,
        set_by_client=True,
    )


def origin(url: str) -> tuple[str, str, int | None]:
    """Return the scheme, the host and the port of an address (RFC 6454, section 4)."""
    components = urlsplit(url)
    return (
        components.scheme,
        components.hostname or "",
        components.port or {"http": 80, "https": 443}.get(components.scheme),
    )


def _validate_url(url: str) -> str:
    def invalid(why: str) -> InvalidInputError:
        return InvalidInputError(f"baseUrl: {why}", field="baseUrl")

    url = url.strip()
    if len(url) > _MAX_URL_LENGTH or not url.isascii() or not url.isprintable() or " " in url:
        raise invalid("it is too long, or has characters that an address cannot have")
    try:
        components = urlsplit(url)
        port = components.port
    except ValueError:
        raise invalid("it is no address; give one such as https://host/v1") from None
    if components.scheme not in {"http", "https"}:
        raise invalid("only http and https are supported; give an address such as https://host/v1")
    if not components.hostname or port == 0:
        raise invalid("it names no host; give an address such as https://host/v1")
    if components.username is not None or components.password is not None:
        raise invalid("it holds credentials; send them as a header instead")
    if components.query or components.fragment:
        raise invalid("it has a query or a fragment, behind which no path can be added")
    return url.rstrip("/")


def _validate_headers(headers: Mapping[str, str]) -> dict[str, str]:
    names: Sequence[str] = [name.lower() for name in headers]
    if sum(map(len, (*headers, *headers.values()))) > _MAX_HEADERS_LENGTH:
        raise InvalidInputError("headers: they are too long", field="headers")
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise InvalidInputError(
                f"headers: {name[:80]!r} is no name of a header", field="headers"
            )
        if name.lower() in _CONNECTION_HEADERS:
            raise InvalidInputError(
                f"headers: {name} cannot be set; it belongs to the connection", field="headers"
            )
        if names.count(name.lower()) > 1:
            raise InvalidInputError(f"headers: {name} is there twice", field="headers")
        if not value.isascii() or not value.replace("\t", " ").isprintable():
            raise InvalidInputError(
                f"headers: the value of {name} has characters that no header can have",
                field="headers",
            )
    return {name: value.strip() for name, value in headers.items()}
