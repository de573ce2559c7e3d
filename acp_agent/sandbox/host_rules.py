"""Rules for the hosts that confined commands may reach (`[sandbox.network]` in the settings)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address

from msgspec import Struct

from acp_agent.config.network_addresses import is_loopback, is_public, literal_address
from acp_agent.errors import ConfigError, HostRefusedError, WorkspaceError

_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")
_MAX_NAME = 253  # characters of a name (RFC 1035)
_PATTERN = re.compile(r"(\*\.)?(\[[^\]]+\]|[^:\[\]]+)(?::([0-9]{1,5}))?")


class HostRules:
    """Lists of allowed and denied hosts; the denied ones take precedence.

    A pattern is a name, `*.name` for all names below it, or an IP address, each with an optional
    port: `example.org`, `*.example.org`, `localhost:8080`, `[::1]:5432`. Without a port all ports
    match. An IP address only matches itself.
    """

    def __init__(self, allowed: Iterable[str], denied: Iterable[str] = ()) -> None:
        """Parse the patterns. Raises ConfigError if a pattern is invalid."""
        self._allowed = tuple(_parse_pattern(pattern) for pattern in allowed)
        self._denied = tuple(_parse_pattern(pattern) for pattern in denied)

    @property
    def local_ports(self) -> tuple[int, ...]:
        """The ports of this computer that are allowed explicitly."""
        ports = {
            pattern.port: None
            for pattern in self._allowed
            if pattern.port is not None and is_loopback(pattern.host)
        }
        return tuple(ports)

    def check_host(self, host: str, port: int) -> None:
        """Check a host by its name only; `host` is a result of `normalize_host`.

        Raises:
            HostRefusedError: the host is denied, or not allowed.
        """
        if _matches(self._denied, host, port):
            raise HostRefusedError(
                f"the sandbox refuses {_netloc(host, port)}: it is in denied_domains"
                " of [sandbox.network]",
                advice="do not try to reach it another way",
            )
        if not _matches(self._allowed, host, port):
            raise HostRefusedError(
                f"the sandbox refuses {_netloc(host, port)}: it is not in allowed_domains"
                " of [sandbox.network]",
                advice=f"if the task needs it, ask the user to add {_quote_host(host)} there",
            )

    def check_address(self, host: str, address: str, port: int) -> None:
        """Check an address of an allowed host.

        Private addresses must be listed themselves, because the owner of a name decides which
        addresses it has.

        Raises:
            HostRefusedError: the address is denied, or not public and not listed.
        """
        ip = _parse_address(address)
        if ip is not None:
            if _matches(self._denied, str(ip), port):
                raise HostRefusedError(
                    f"the sandbox refuses {_netloc(host, port)}: its address {ip} is in"
                    " denied_domains of [sandbox.network]"
                )
            local = ip.is_loopback and is_loopback(host)
            if local or is_public(ip) or _matches(self._allowed, str(ip), port):
                return
        raise HostRefusedError(
            f"the sandbox refuses {_netloc(host, port)}: it leads to {address}, which is a private"
            " or reserved address",
            advice=f"if the task needs it, ask the user to add {_quote_host(address)} to"
            " allowed_domains of [sandbox.network]",
        )


def normalize_host(text: str) -> str:
    """Return a host in lower case without a trailing dot, or an IP address in its standard form.

    Raises:
        HostRefusedError: it is neither a name nor an address.
    """
    host = text.lower().removesuffix(".")
    address = _parse_address(host[1:-1] if host.startswith("[") and host.endswith("]") else host)
    if address is not None:
        return str(address)
    host_text = ascii(text[:_MAX_NAME])
    if not host or len(host) > _MAX_NAME or not _NAME_CHARACTERS.issuperset(host):
        raise HostRefusedError(f"the sandbox refuses {host_text}: it is not the name of a host")
    try:
        literal_address(host)
    except WorkspaceError as error:
        raise HostRefusedError(f"the sandbox refuses {host_text}: {error}") from None
    return host


class _Pattern(Struct, frozen=True):
    host: str
    subdomains: bool  # matches names below the host, but not the host itself
    port: int | None

    def matches(self, host: str, port: int) -> bool:
        if self.port is not None and self.port != port:
            return False
        return host.endswith(f".{self.host}") if self.subdomains else host == self.host


def _matches(patterns: tuple[_Pattern, ...], host: str, port: int) -> bool:
    return any(pattern.matches(host, port) for pattern in patterns)


def _parse_pattern(text: str) -> _Pattern:
    match = _PATTERN.fullmatch(text)
    subdomains, host, digits = (
        match.groups() if match and _parse_address(text) is None else ("", text, None)
    )
    port = int(digits) if digits else None
    with suppress(HostRefusedError):
        name = normalize_host(host)
        is_usable = (port is None or 0 < port < 65_536) and not (
            subdomains and _parse_address(name)
        )
        if is_usable:
            return _Pattern(name, bool(subdomains), port)
    raise ConfigError(f"{text!r} is not a host: write example.org, *.example.org or localhost:8080")


def _parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """Return the address in a text, or None; an IPv4-mapped IPv6 address becomes IPv4."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    if isinstance(address, IPv6Address):
        return address.ipv4_mapped or address
    return address


def _netloc(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _quote_host(host: str) -> str:
    return f'"[{host}]"' if ":" in host else f'"{host}"'
