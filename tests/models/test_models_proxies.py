"""What is reached through a proxy: other computers, and never this one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from acp_agent.config.network_addresses import no_proxy_mounts
from acp_agent.models.anthropic_driver import AnthropicDriver
from acp_agent.models.gemini_driver import GeminiDriver
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.provider_check import check_provider
from tests.support.model_asking import (
    anthropic_provider,
    ask,
    driver_for,
    gather,
    gemini_provider,
    openai_provider,
    responses_provider,
)
from tests.support.model_server import ModelServer, answer

DEAD = "http://127.0.0.1:9"  # the discard port: nothing answers
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")


@pytest.fixture
def proxied(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Name a proxy for everything."""

    def name(url: str) -> None:
        for variable in PROXIES:
            monkeypatch.setenv(variable, url)
        for variable in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(variable, raising=False)

    return name


@pytest.mark.parametrize(
    "api",
    ["openai", "openai_responses", "anthropic", "gemini", "azure", "bedrock", "vertex"],
)
async def test_a_server_on_this_computer_is_reached_without_the_proxy(
    proxied: Callable[[str], None], api: str
) -> None:
    proxied(DEAD)
    async with ModelServer() as server:
        server.add(answer("Hello"))
        driver = driver_for(api, server)
        assert (await gather(driver.stream(ask(provider=api)))).text == "Hello"
        await driver.aclose()


@pytest.mark.parametrize(
    ("driver", "provider"),
    [
        (OpenAIDriver, openai_provider),
        (OpenAIDriver, responses_provider),
        (AnthropicDriver, anthropic_provider),
        (GeminiDriver, gemini_provider),
    ],
)
async def test_a_server_elsewhere_is_reached_through_the_proxy(
    proxied: Callable[[str], None], driver: Callable[..., Any], provider: Callable[..., Any]
) -> None:
    async with ModelServer() as server:
        proxied(server.url)
        server.add(answer("Through it"))
        made = driver(provider(server, base_url="http://models.invalid/v1"))
        assert (await gather(made.stream(ask()))).text == "Through it"
        await made.aclose()


async def test_a_server_on_this_computer_is_checked_without_the_proxy(
    proxied: Callable[[str], None],
) -> None:
    proxied(DEAD)
    async with ModelServer() as server:
        server.models = ("big",)
        asked = await asyncio.to_thread(check_provider, openai_provider(server), None, timeout=5)
    assert (asked.verdict, asked.models) == ("ok", ("big",))


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_an_http_client_takes_the_word_on_proxies(
    proxied: Callable[[str], None], host: str
) -> None:
    proxied(DEAD)
    async with ModelServer() as server:
        url = server.openai_url.replace("127.0.0.1", host)
        async with httpx2.AsyncClient(mounts=no_proxy_mounts(url)) as client:
            assert (await client.get(f"{url}/models")).status_code == 200
