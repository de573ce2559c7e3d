"""Which hosts are this computer, and are reached without a proxy."""

import pytest

from acp_agent.config.network_addresses import is_loopback, no_proxy_mounts

LOOPBACK_HOSTS = ["127.0.0.1", "127.8.9.1", "::1", "localhost", "LocalHost.", "ollama.localhost"]
REMOTE_HOSTS = [
    "localhost.example",
    "127.example",
    "notlocalhost",
    "10.0.0.1",
    "0.0.0.0",
    "::2",
    "",
]


@pytest.mark.parametrize("host", LOOPBACK_HOSTS)
def test_every_name_of_the_loopback_interface_is_recognised(host: str) -> None:
    assert is_loopback(host)
    assert no_proxy_mounts(f"http://{f'[{host}]' if ':' in host else host}:11434/v1")


@pytest.mark.parametrize("host", REMOTE_HOSTS)
def test_a_similar_address_is_not_loopback(host: str) -> None:
    assert not is_loopback(host)
    assert not no_proxy_mounts(f"http://{f'[{host}]' if ':' in host else host}:11434/v1")


def test_an_invalid_address_does_not_bypass_proxies() -> None:
    assert not no_proxy_mounts("http://[127.0.0.1")
