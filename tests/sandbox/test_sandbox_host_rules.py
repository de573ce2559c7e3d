"""Which hosts the rules of the sandbox let through."""

from __future__ import annotations

import pytest

from acp_agent.errors import ConfigError, HostRefusedError
from acp_agent.sandbox.host_rules import HostRules, normalize_host

ALLOWED = ["example.org", "*.example.net", "api.test:8443", "localhost:8080"]
ALLOWED += ["10.1.2.3", "[::1]:5432"]
NO_HOSTS = [
    "",
    ".",
    "*",
    "a b",
    "éxample.org",
    "a@example.org",
    "evil.test#.example.net",
    "x" * 254,
]
NO_HOSTS += ["x" * 254, "evil.test\0.example.org", "evil.test/.example.org"]
NO_HOSTS += ["0x7f.1", "2130706433", "127.1", "1.2.3.4.5"]
NO_PATTERNS = ["", "*", "*.", "*.*.test", "*.10.0.0.1", "http://x.test", "x.test/path", "x y"]
NO_PATTERNS += ["x.test:0", "x.test:99999", "x.test:y", "[::1", "127.1"]
DENIED = ["secret.example.net", "*.bad.example.net", "9.9.9.9"]


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("example.org", 443, True),
        ("EXAMPLE.org.", 1, True),
        ("www.example.org", 443, False),
        ("example.org.evil.test", 443, False),
        ("evilexample.org", 443, False),
        ("a.example.net", 443, True),
        ("a.b.example.net", 443, True),
        ("example.net", 443, False),
        ("secret.example.net", 443, False),
        ("x.bad.example.net", 443, False),
        ("api.test", 8443, True),
        ("api.test", 443, False),
        ("localhost", 8080, True),
        ("localhost", 8081, False),
        ("127.0.0.1", 8080, False),
        ("10.1.2.3", 22, True),
        ("::ffff:10.1.2.3", 22, True),
        ("10.1.2.4", 22, False),
        ("0:0:0:0:0:0:0:1", 5432, True),
        ("[::1]", 5432, True),
        ("8.8.8.8", 443, False),
        ("unlisted.test", 443, False),
    ],
)
def test_a_host_is_reached_only_where_a_pattern_allows_it_and_none_denies_it(
    host: str, port: int, allowed: bool
) -> None:
    rules = HostRules(ALLOWED, DENIED)
    if allowed:
        rules.check_host(normalize_host(host), port)
    else:
        with pytest.raises(HostRefusedError, match="sandbox refuses"):
            rules.check_host(normalize_host(host), port)


@pytest.mark.parametrize("host", NO_HOSTS)
def test_an_unusual_name_or_address_is_refused_before_any_rule(host: str) -> None:
    with pytest.raises(HostRefusedError):
        normalize_host(host)


@pytest.mark.parametrize(
    ("host", "address", "allowed"),
    [
        ("example.org", "93.184.215.14", True),
        ("example.org", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", True),
        ("example.org", "10.1.2.3", True),  # listed itself
        ("example.org", "10.9.9.9", False),
        ("example.org", "127.0.0.1", False),
        ("example.org", "169.254.169.254", False),
        ("example.org", "::ffff:127.0.0.1", False),
        ("example.org", "fe80::1%eth0", False),
        ("example.org", "9.9.9.9", False),  # denied
        ("localhost", "127.0.0.1", True),
        ("localhost", "::1", True),
        ("localhost", "10.9.9.9", False),
        ("example.org", "nonsense", False),
    ],
)
def test_an_allowed_name_leads_to_public_and_to_listed_addresses_alone(
    host: str, address: str, allowed: bool
) -> None:
    rules = HostRules(ALLOWED, DENIED)
    if allowed:
        rules.check_address(host, address, 443)
    else:
        with pytest.raises(HostRefusedError):
            rules.check_address(host, address, 443)


@pytest.mark.parametrize("pattern", NO_PATTERNS)
def test_an_invalid_pattern_is_a_configuration_error(pattern: str) -> None:
    with pytest.raises(ConfigError, match="is not a host"):
        HostRules([pattern])


def test_ports_of_servers_on_this_computer_are_those_listed_by_number() -> None:
    patterns = ["localhost:8080", "127.0.0.1:5432", "localhost", "example.org:443"]
    assert HostRules(patterns).local_ports == (8080, 5432)
