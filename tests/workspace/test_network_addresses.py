"""Which addresses count as the public network."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given, strategies as st

from acp_agent.config.network_addresses import is_public, literal_address
from acp_agent.errors import WorkspaceError
from acp_agent.workspace.page_reader import check_public

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.1.2.3",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.255.255.254",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.251",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:808:808::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
]
PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "93.184.215.14",
    "100.63.255.255",
    "172.15.0.1",
    "172.32.0.1",
    "::ffff:8.8.8.8",
    "64:ff9b::808:808",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
]


@pytest.mark.parametrize("address", REFUSED)
def test_a_private_or_reserved_address_is_refused(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(WorkspaceError, match="private or reserved"):
        check_public("example.com", address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    check_public("example.com", address)


@given(st.ip_addresses(v=4))
def test_no_spelling_of_an_ipv4_address_in_ipv6_is_more_public_than_itself(
    address: ipaddress.IPv4Address,
) -> None:
    number = int(address)
    mapped = ipaddress.IPv6Address((0xFFFF << 32) | number)
    translated = ipaddress.IPv6Address((0x64_FF9B << 96) | number)
    compatible = ipaddress.IPv6Address(number)
    six_to_four = ipaddress.IPv6Address((0x2002 << 112) | (number << 80))
    assert is_public(mapped) == is_public(translated) == is_public(address)
    assert not is_public(compatible)
    assert not is_public(six_to_four)


@given(st.ip_addresses())
def test_nothing_that_the_registry_calls_private_is_public(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if isinstance(address, ipaddress.IPv6Address) and address in ipaddress.ip_network(
        "64:ff9b::/96"
    ):
        return
    if address.is_private or address.is_loopback or address.is_link_local or address.is_multicast:
        assert not is_public(address) or getattr(address, "ipv4_mapped", None) is not None


@pytest.mark.parametrize(
    "host",
    [
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "127.1",
        "0177.0.0.1",
        "127.0.0.01",
        "1.2.3.4.5",
        "256.1.1.1",
    ],
)
def test_an_ipv4_address_in_an_unusual_form_is_refused(host: str) -> None:
    with pytest.raises(WorkspaceError, match="unusual form"):
        literal_address(host)


@pytest.mark.parametrize(
    "host", ["example.com", "1.example.com", "x1", "0x7f.example", "1e100.net"]
)
def test_a_name_with_digits_is_a_name(host: str) -> None:
    assert literal_address(host) is None
