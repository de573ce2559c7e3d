"""Which hosts are this computer, and are reached without a proxy."""

import pytest

from acp_agent.config.loopback import is_loopback, no_proxy_mounts

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
def test_the_loopback_interface_is_known_by_all_its_names(host: str) -> None:
    assert is_loopback(host)
    assert no_proxy_mounts(f"http://{f'[{host}]' if ':' in host else host}:11434/v1")


@pytest.mark.parametrize("host", REMOTE_HOSTS)
def test_what_only_looks_like_it_is_not_this_computer(host: str) -> None:
    assert not is_loopback(host)
    assert not no_proxy_mounts(f"http://{f'[{host}]' if ':' in host else host}:11434/v1")


def test_what_is_no_address_has_no_say_about_proxies() -> None:
    assert not no_proxy_mounts("http://[127.0.0.1")
