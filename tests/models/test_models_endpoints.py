"""Providers whose endpoint a client gives, for the life of the process."""

from __future__ import annotations

import asyncio
import threading

import pytest

from acp_agent.config.model_types import ProviderConfig
from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, InvalidInputError
from acp_agent.models import endpoints
from acp_agent.models.base import ModelInfo
from acp_agent.models.endpoints import Endpoint, endpoint
from acp_agent.models.providers import Provider, credentials_in
from acp_agent.models.registry import Models
from tests.models.configured_models import models
from tests.support.model_asking import ask, gather
from tests.support.model_server import ModelServer, Request, Status, answer

TOKEN = "gateway-token-0123456789"
OWN = "sk-the-users-own-0123456789"


def of(found: Models, name: str) -> Provider:
    return next(one for one in found.configurable() if one.id == name)


async def asked(found: Models, server: ModelServer, info: ModelInfo | None = None) -> Request:
    """The request that asking the model makes."""
    server.add(answer("Hello"))
    info = info or await found.choose(None, None)
    driver = await asyncio.to_thread(found.driver, info)
    got = await gather(driver.stream(ask(model_id=info.id)))
    assert got.text == "Hello"
    return server.requests[-1]


@pytest.mark.parametrize(
    ("name", "api", "headers"),
    [
        ("openai", "openai", {"authorization": f"Bearer {TOKEN}", "X-Team": "seven"}),
        ("openai", "anthropic", {"X-API-KEY": TOKEN, "User-agent": "gate/1"}),
        ("anthropic", "anthropic", {"AUTHORIZATION": f"Bearer {TOKEN}"}),
        ("anthropic", "openai", {"Authorization": f"Bearer {TOKEN}"}),
        ("kimi", "openai", {}),
        ("kimi", "anthropic", {}),
    ],
)
async def test_requests_go_to_the_endpoint_with_its_headers_and_nothing_of_the_users(
    monkeypatch: pytest.MonkeyPatch, name: str, api: str, headers: dict[str, str]
) -> None:
    for variable in ("OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.setenv(variable, OWN)
    monkeypatch.setenv("ANTHROPIC_CUSTOM_HEADERS", f"X-Own: {OWN}")
    async with ModelServer() as server:
        found = models(OPENAI_API_KEY=OWN, ANTHROPIC_API_KEY=OWN, KIMI_API_KEY=OWN)
        found.set_endpoint(name, endpoint(api, f"{server.openai_url}/", headers))
        request = await asked(found, server)
        await found.aclose()
    assert request.api == api
    assert OWN not in str(request.headers)
    assert "no-key" not in str(request.headers)
    for header, value in headers.items():
        assert request.headers[header.lower()] == value
    sent = {"authorization", "x-api-key"} & request.headers.keys()
    assert sent == {"authorization", "x-api-key"} & {header.lower() for header in headers}


async def test_the_users_key_goes_to_the_host_that_it_was_configured_with_only() -> None:
    async with ModelServer() as home, ModelServer() as away:
        found = models(OPENAI_BASE_URL=home.openai_url, OPENAI_API_KEY=OWN)
        found.set_endpoint("openai", endpoint("openai", f"{home.url}/gate/v1", {"X-Team": "7"}))
        request = await asked(found, home)
        assert request.path.startswith("/gate/v1/")
        assert request.headers["authorization"] == f"Bearer {OWN}"
        found.set_endpoint("openai", endpoint("openai", away.openai_url, {}))
        assert OWN not in str((await asked(found, away)).headers)
        await found.aclose()


async def test_a_changed_endpoint_holds_for_a_model_that_is_in_use() -> None:
    async with ModelServer() as server:
        found = models()
        found.set_endpoint("openai", endpoint("openai", server.openai_url, {"X-Team": "one"}))
        info = await found.choose(None, None)
        assert (await asked(found, server, info)).headers["x-team"] == "one"
        found.set_endpoint("openai", endpoint("openai", server.openai_url, {"X-Team": "two"}))
        assert (await asked(found, server, info)).headers["x-team"] == "two"
        found.set_endpoint("openai", endpoint("anthropic", server.url, {}))
        assert (await asked(found, server, info)).api == "anthropic"
        found.refresh()
        assert (await asked(found, server, info)).api == "anthropic"  # whatever is configured
        await found.aclose()


async def test_a_provider_of_the_clients_comes_before_the_users_keys() -> None:
    found = models(OPENAI_API_KEY=OWN)
    assert (await found.choose(None, None)).provider == "openai"
    found.set_endpoint("deepseek", endpoint("openai", "https://gate.example/v1", {}))
    assert (await found.choose(None, None)).provider == "deepseek"
    assert (await found.choose("openai/gpt-5", None)).provider == "openai"
    assert {info.provider for info in found.available()} == {"openai", "deepseek"}


async def test_a_local_server_at_another_address_is_queried_with_its_headers() -> None:
    async with ModelServer(models=("own-model",)) as server:
        found = models(OPENAI_API_KEY=OWN)
        found.set_endpoint("local", endpoint("openai", server.openai_url, {"X-Team": "seven"}))
        assert (await found.choose(None, None)).ref == "local/own-model"
        assert server.lookups == 1


async def test_a_disabled_provider_is_neither_offered_nor_used_until_it_is_set_again() -> None:
    found = models(OPENAI_API_KEY=OWN, DEEPSEEK_API_KEY=OWN)
    info = await found.choose(None, None)
    assert info.provider == "openai"
    found.set_endpoint("openai", None)
    assert (await found.choose(None, None)).provider == "deepseek"
    assert {one.provider for one in found.available()} == {"deepseek"}
    for refused in (found.driver, found.require):
        with pytest.raises(AuthRequiredError, match="OpenAI was disabled by the editor"):
            refused(info)
    with pytest.raises(AuthRequiredError, match="disabled"):
        await found.choose("openai/gpt-5", None)
    found.set_endpoint("openai", endpoint("openai", "https://gate.example/v1", {}))
    assert found.require(info).base_url == "https://gate.example/v1"


@pytest.mark.parametrize(
    ("api", "url", "headers", "field"),
    [
        ("bedrock", "https://h/v1", {}, "apiType"),
        ("", "https://h/v1", {}, "apiType"),
        ("OpenAI", "https://h/v1", {}, "apiType"),
        ("openai", "", {}, "baseUrl"),
        ("openai", "h/v1", {}, "baseUrl"),
        ("openai", "https://", {}, "baseUrl"),
        ("openai", "https:///v1", {}, "baseUrl"),
        ("openai", "file:///etc/passwd", {}, "baseUrl"),
        ("openai", "ftp://h/v1", {}, "baseUrl"),
        ("openai", "unix:///var/run/x", {}, "baseUrl"),
        ("openai", "javascript:alert(1)", {}, "baseUrl"),
        ("openai", "https://h:port/v1", {}, "baseUrl"),
        ("openai", "https://h:70000/v1", {}, "baseUrl"),
        ("openai", "https://h:0/v1", {}, "baseUrl"),
        ("openai", "https://[::1/v1", {}, "baseUrl"),
        ("openai", "https://h/v1?key=1", {}, "baseUrl"),
        ("openai", "https://h/v1#here", {}, "baseUrl"),
        ("openai", f"https://user:{TOKEN}@h/v1", {}, "baseUrl"),
        ("openai", "https://h/v 1", {}, "baseUrl"),
        ("openai", "https://h/v\r\n1", {}, "baseUrl"),
        ("openai", "https://h/" + "v" * 3_000, {}, "baseUrl"),
        ("openai", "https://h/v1", {"": TOKEN}, "headers"),
        ("openai", "https://h/v1", {"X Team": TOKEN}, "headers"),
        ("openai", "https://h/v1", {"X-Team:": TOKEN}, "headers"),
        ("openai", "https://h/v1", {"X-Team": f"{TOKEN}\r\nX-Other: 1"}, "headers"),
        ("openai", "https://h/v1", {"X-Team": f"{TOKEN}\x00"}, "headers"),
        ("openai", "https://h/v1", {"X-Team": f"{TOKEN}é"}, "headers"),
        ("openai", "https://h/v1", {"Content-Length": TOKEN}, "headers"),
        ("openai", "https://h/v1", {"transfer-encoding": TOKEN}, "headers"),
        ("openai", "https://h/v1", {"HOST": TOKEN}, "headers"),
        ("openai", "https://h/v1", {"x-team": TOKEN, "X-Team": TOKEN}, "headers"),
        ("openai", "https://h/v1", {"x-team": "a" * 40_000}, "headers"),
    ],
)
def test_an_invalid_endpoint_is_refused_by_field_without_repeating_values(
    api: str, url: str, headers: dict[str, str], field: str
) -> None:
    with pytest.raises(InvalidInputError) as caught:
        endpoint(api, url, headers)
    assert caught.value.field == field
    assert str(caught.value).startswith(f"{field}:")
    assert TOKEN not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


def test_only_providers_that_are_reached_somewhere_can_be_set() -> None:
    found = models(Config(providers={"mine": ProviderConfig(api="openai", base_url="http://h")}))
    given = endpoint("openai", "https://gate.example/v1", {})
    for name in ("demo", "nobody", ""):
        with pytest.raises(InvalidInputError, match="providerId: there is no provider"):
            found.set_endpoint(name, given)
    found.set_endpoint("mine", given)
    assert of(found, "mine").base_url == "https://gate.example/v1"


def test_credentials_show_nowhere() -> None:
    given = endpoint(
        "openai",
        "https://gate.example/v1",
        {"Authorization": f"Bearer {TOKEN}", "X-Key": "k-0123456789", "Accept": "application/json"},
    )
    assert set(credentials_in(given.headers)) == {f"Bearer {TOKEN}", TOKEN, "k-0123456789"}
    found = models(OPENAI_BASE_URL=f"https://user:{TOKEN}@h.example:8443/v1?key={TOKEN}")
    assert of(found, "openai").address == "https://h.example:8443/v1"
    assert TOKEN not in repr(of(found, "openai"))
    found.set_endpoint("openai", given)
    assert TOKEN not in f"{of(found, 'openai')!r} {given!r} {given}"


async def test_a_refusal_does_not_repeat_the_values_of_the_endpoint() -> None:
    async with ModelServer() as server:
        found = models()
        given = endpoint("openai", server.openai_url, {"Authorization": f"Bearer {TOKEN}"})
        assert isinstance(given, Endpoint)
        found.set_endpoint("openai", given)
        info = await found.choose(None, None)
        driver = await asyncio.to_thread(found.driver, info)
        for status in (400, 401, 500):
            server.add(Status(code=status, message=f"bad token {TOKEN} or Bearer {TOKEN}"))
            got = await gather(driver.stream(ask(model_id=info.id)))
            assert TOKEN not in str(got.events)
        await found.aclose()


async def test_where_a_client_says_holds_though_the_configuration_was_just_being_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = models()
    found.set_endpoint("openai", endpoint("openai", "http://127.0.0.1:9/old", {}))
    begun, go, at = threading.Event(), threading.Event(), endpoints.at_endpoint

    def slowly(provider: Provider, given: Endpoint | None) -> Provider:
        made = at(provider, given)
        if not begun.is_set():
            begun.set()
            go.wait(10)
        return made

    monkeypatch.setattr(endpoints, "at_endpoint", slowly)
    reading = asyncio.create_task(asyncio.to_thread(found.refresh))
    await asyncio.to_thread(begun.wait, 10)
    new = endpoint("openai", "http://127.0.0.1:9/new", {})
    saying = asyncio.create_task(asyncio.to_thread(found.set_endpoint, "openai", new))
    await asyncio.wait([saying], timeout=0.1)  # it is not to be done before the other one is
    go.set()
    await asyncio.gather(reading, saying)
    assert of(found, "openai").base_url.endswith("/new")
