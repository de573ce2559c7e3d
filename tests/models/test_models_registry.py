"""Which models there are, and which one a session gets."""

import asyncio
import subprocess
import sys
from typing import Any

import pytest
from msgspec import structs

from acp_agent.config.model_types import ModelConfig, PriceConfig, ProviderConfig
from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError, InvalidInputError
from acp_agent.events import Usage
from acp_agent.models.base import ModelInfo, Price
from acp_agent.models.endpoints import endpoint
from acp_agent.models.local import served_models
from acp_agent.models.providers import Provider
from acp_agent.models.registry import Models
from tests.models.configured_models import NOWHERE, Keys, models
from tests.support.model_asking import ask, gather
from tests.support.model_server import ModelServer, answer


def provider(found: Models, name: str) -> Provider:
    return next(entry for entry in found.providers() if entry.id == name)


@pytest.mark.parametrize(
    ("variable", "name", "address"),
    [
        ("OPENAI_API_KEY", "openai", "https://api.openai.com/v1"),
        ("ANTHROPIC_API_KEY", "anthropic", "https://api.anthropic.com"),
        ("KIMI_API_KEY", "kimi", "https://api.kimi.com/coding/v1"),
        ("MOONSHOT_API_KEY", "kimi", "https://api.kimi.com/coding/v1"),
        ("DASHSCOPE_API_KEY", "qwen", "https://dashscope.aliyuncs.com/compatible-mode/v1"),
        ("DEEPSEEK_API_KEY", "deepseek", "https://api.deepseek.com/v1"),
        ("ZHIPU_API_KEY", "zhipu", "https://open.bigmodel.cn/api/paas/v4"),
        ("ZHIPUAI_API_KEY", "zhipu", "https://open.bigmodel.cn/api/paas/v4"),
        ("OPENROUTER_API_KEY", "openrouter", "https://openrouter.ai/api/v1"),
        ("GEMINI_API_KEY", "gemini", "https://generativelanguage.googleapis.com/v1beta"),
        ("GOOGLE_API_KEY", "gemini", "https://generativelanguage.googleapis.com/v1beta"),
    ],
)
async def test_a_key_in_the_environment_is_enough(variable: str, name: str, address: str) -> None:
    found = models(None, **{variable: "k"})
    chosen = await found.choose(None, None)
    assert chosen.provider == name
    assert chosen.ref in {info.ref for info in found.available()}
    assert {info.provider for info in found.available()} == {name}
    assert chosen.window > 100_000
    assert provider(found, name).base_url == address


async def test_the_order_of_choice_is_flag_session_configuration_first_key() -> None:
    config = Config(model="deepseek/deepseek-flash")
    keys = {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "DEEPSEEK_API_KEY": "k"}
    found = models(config, **keys)
    by_variable = models(config, ACP_AGENT_MODEL="openai/gpt-4.1", **keys)
    stored = "anthropic/claude-opus-5-5"
    assert (await found.choose("openai/gpt-5.2", stored)).ref == "openai/gpt-5.2"
    assert (await by_variable.choose(None, stored)).ref == "openai/gpt-4.1"
    assert (await found.choose(None, stored)).ref == stored
    assert (await found.choose(None, None)).ref == "deepseek/deepseek-flash"
    assert (await models(None, **keys).choose(None, None)).provider == "openai"


async def test_without_any_model_the_error_says_how_to_configure_one() -> None:
    with pytest.raises(AuthRequiredError, match=r"acp-agent login.*API_KEY.*demo/demo"):
        await models().choose(None, None)


async def test_a_key_of_a_provider_without_named_models_is_reported_as_insufficient() -> None:
    own = ProviderConfig(api="openai", base_url=NOWHERE["LOCAL_BASE_URL"], api_key_env="MY_KEY")
    found = models(Config(providers={"mine": own}), MY_KEY="k")
    with pytest.raises(AuthRequiredError, match=r'mine has a key.* model = "mine/NAME"'):
        await found.choose(None, None)


@pytest.mark.parametrize("where", ["variable", "table"])
async def test_a_keyless_provider_without_named_models_is_reported_as_insufficient(
    where: str,
) -> None:
    address = NOWHERE["LOCAL_BASE_URL"]
    if where == "variable":
        found = models(OPENAI_BASE_URL=address)
    else:
        own = ProviderConfig(api="openai", base_url=address)
        found = models(Config(providers={"company": own}))
    name = "openai" if where == "variable" else "company"
    with pytest.raises(AuthRequiredError, match=rf'needs no key.* model = "{name}/NAME"'):
        await found.choose(None, None)


@pytest.mark.parametrize("key", [{}, {"OPENAI_API_KEY": "k"}], ids=["keyless", "key"])
@pytest.mark.parametrize("where", ["variable", "table"])
async def test_of_a_provider_that_is_elsewhere_the_model_described_first_is_the_default(
    where: str, key: dict[str, str]
) -> None:
    described = {"openai/big": ModelConfig(), "openai/small": ModelConfig()}
    address = NOWHERE["LOCAL_BASE_URL"]
    if where == "variable":
        found = models(Config(models=described), OPENAI_BASE_URL=address, **key)
    else:
        moved = {"openai": ProviderConfig(base_url=address)}
        found = models(Config(models=described, providers=moved), **key)
    assert (await found.choose(None, None)).ref == "openai/big"


@pytest.mark.parametrize("host", ["localhost", "127.0.0.2", "models.localhost", "[::1]"])
async def test_a_provider_on_this_computer_needs_no_key(host: str) -> None:
    environ = {"OPENAI_BASE_URL": f"http://{host}:9/v1"}
    found = models(Config(models={"openai/big": ModelConfig()}), **environ)
    assert (await found.choose(None, None)).ref == "openai/big"


async def test_a_described_model_does_not_become_the_default_of_its_own_provider() -> None:
    found = models(Config(models={"openai/gpt-4.1": ModelConfig()}), OPENAI_API_KEY="k")
    assert (await found.choose(None, None)).ref == "openai/gpt-6.2-sol"


async def test_a_model_without_its_key_is_not_replaced_by_another_vendors() -> None:
    found = models(OPENAI_API_KEY="k")
    with pytest.raises(AuthRequiredError, match="ANTHROPIC_API_KEY"):
        await found.choose(None, "anthropic/claude-opus-5-5")


@pytest.mark.parametrize("ref", ["nobody/model", "no-such-model"])
async def test_a_name_that_means_nothing_is_named_in_the_error(ref: str) -> None:
    with pytest.raises(InvalidInputError, match=ref) as raised:
        await models(OPENAI_API_KEY="k").choose(ref, None)
    assert raised.value.field == "model"


def test_a_model_can_be_named_by_its_name_alone_by_an_alias_and_with_slashes() -> None:
    found = models(OPENROUTER_API_KEY="k")
    assert found.resolve("gpt-5.2").ref == "openai/gpt-5.2"
    assert found.resolve("ollama/qwen3:8b").ref == "local/qwen3:8b"
    assert found.resolve("openrouter/vendor/model").id == "vendor/model"
    assert found.resolve("anthropic").ref == "anthropic/claude-sonnet-5-5"


def test_an_unknown_model_gets_safe_assumptions() -> None:
    info = models().resolve("deepseek/something-new")
    assert (info.name, info.output_limit) == ("something-new", None)
    assert (info.vision, info.price, info.thought_levels) == (False, None, ())


async def test_the_demo_model_can_be_chosen_and_is_never_offered() -> None:
    found = models()
    info = await found.choose("demo/demo", None)
    assert info.ref == "demo/demo"
    assert found.available() == []
    assert type(found.driver(info)).__name__ == "DemoDriver"


def test_an_existing_driver_is_returned_at_once() -> None:
    found = models(OPENAI_API_KEY="k")
    info = found.resolve("openai/gpt-5")
    assert found.cached_driver(info) is None
    assert found.cached_driver(structs.replace(info, tool_dialect="hermes")) is None
    driver = found.driver(info)
    assert found.cached_driver(info) is driver
    assert found.cached_driver(structs.replace(info, tool_dialect="hermes")) is None  # wraps it


def test_a_changed_provider_gets_a_new_driver() -> None:
    found = models(OPENAI_API_KEY="k")
    info = found.resolve("openai/gpt-5")
    found.set_endpoint("openai", endpoint("openai", "http://127.0.0.1:9/v1", {}))
    driver = found.driver(info)
    assert found.cached_driver(info) is driver
    found.set_endpoint("openai", endpoint("openai", "http://127.0.0.1:10/v1", {}))
    assert found.cached_driver(info) is None
    found.set_endpoint("openai", None)
    with pytest.raises(AuthRequiredError):
        found.cached_driver(info)


def test_the_configuration_overrides_the_catalogs_entry_of_a_model() -> None:
    price = PriceConfig(input=1, output=2)
    change = ModelConfig(context_window=50_000, vision=True, price=price, temperature=0.2)
    own = ModelConfig(name="Mine", thought_levels=["low", "high"])
    config = Config(models={"openai/gpt-4.1": change, "ollama/mine": own})
    found = models(config)
    info = found.resolve("openai/gpt-4.1")
    assert (info.window, info.max_output, info.name) == (50_000, 32_768, "GPT-4.1")
    assert info.price == Price(input=1, output=2)
    assert info.temperature == 0.2
    mine = found.resolve("local/mine")
    assert (mine.name, mine.thought_levels, mine.reasoning) == ("Mine", ("low", "high"), "effort")


@pytest.mark.parametrize(
    ("config", "word"),
    [
        (Config(models={"gpt-5": ModelConfig()}), "provider/model"),
        (Config(providers={"mine": ProviderConfig(api="openai")}), "base_url"),
    ],
)
def test_a_wrong_configuration_is_refused_with_a_remedy(config: Config, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        models(config)


async def test_a_variable_that_holds_no_key_is_named_and_does_not_stand_in_the_way() -> None:
    broken = {"OPENAI_API_KEY": "two-lines-of\na-secret"}
    found = models(None, **broken, ANTHROPIC_API_KEY="k")
    assert (await found.choose(None, None)).provider == "anthropic"
    for named in (None, "openai/gpt-5.2"):
        with pytest.raises(ConfigError) as raised:
            await models(None, **broken).choose(named, None)
        assert str(raised.value) == (
            "OpenAI cannot be used yet: OPENAI_API_KEY has line breaks or unusual characters, "
            "which no key has; set it again."
        )


@pytest.mark.parametrize(
    "address", ["foo", "http://", "ftp://host/v1", "http://[::1", "http://host:99999/v1"]
)
async def test_an_invalid_address_is_reported_with_its_location(address: str) -> None:
    told = "is no address; write one like https://host/v1."
    for named in (None, "openai/gpt-5.2"):
        with pytest.raises(ConfigError) as raised:
            await models(None, OPENAI_API_KEY="k", OPENAI_BASE_URL=address).choose(named, None)
        assert str(raised.value) == f"OpenAI cannot be used yet: OPENAI_BASE_URL {told}"
    own = Config(providers={"company": ProviderConfig(api="openai", base_url=address)})
    with pytest.raises(ConfigError) as raised:
        await models(own).choose("company/coder", None)
    said = f"company cannot be used yet: base_url in [providers.company] {told}"
    assert str(raised.value) == said


async def test_an_own_provider_is_used_with_its_address_key_and_headers() -> None:
    async with ModelServer() as server:
        server.add(answer("Hello"))
        own = ProviderConfig(
            api="openai", base_url=server.openai_url, api_key_env="MY_KEY", headers={"X-Team": "7"}
        )
        found = models(Config(providers={"mine": own}, model="mine/big"), MY_KEY="k-1")
        info = await found.choose(None, None)
        driver = await asyncio.to_thread(found.driver, info)
        got = await gather(driver.stream(ask(model_id=info.id)))
        await found.aclose()
        assert got.text == "Hello"
        assert server.requests[0].headers["authorization"] == "Bearer k-1"
        assert server.requests[0].headers["x-team"] == "7"
        assert server.requests[0].json["model"] == "big"


async def test_an_own_provider_without_a_key_variable_needs_no_key() -> None:
    own = ProviderConfig(api="anthropic", base_url="http://127.0.0.1:1")
    found = models(Config(providers={"mine": own}, model="mine/big"))
    assert (await found.choose(None, None)).ref == "mine/big"
    assert [info.ref for info in found.available()] == ["mine/big"]


def test_the_address_comes_from_the_environment_before_the_configuration() -> None:
    config = Config(providers={"openai": ProviderConfig(base_url="https://config.example/v1")})
    assert provider(models(config), "openai").base_url == "https://config.example/v1"
    found = models(config, OPENAI_BASE_URL="https://env.example/v1/")
    assert provider(found, "openai").base_url == "https://env.example/v1"
    assert provider(models(OLLAMA_BASE_URL="http://h:1/v1"), "local").base_url != ""


def test_a_server_on_this_machine_behind_a_vendors_name_needs_no_key() -> None:
    found = models(OPENAI_BASE_URL="http://127.0.0.1:8000/v1")
    assert provider(found, "openai").usable
    assert not provider(models(OPENAI_BASE_URL="https://other.example/v1"), "openai").usable


def test_a_provider_does_not_print_its_key() -> None:
    found = models(OPENAI_API_KEY="sk-secret")
    assert "sk-secret" not in repr(found.providers())


async def test_a_local_server_is_found_and_its_models_offered() -> None:
    async with ModelServer(models=("qwen3:8b", "llama4")) as server:
        found = models(LOCAL_BASE_URL=server.openai_url)
        assert found.available() == []
        assert (await found.choose(None, None)).ref == "local/qwen3:8b"
        assert [info.ref for info in found.available()] == ["local/qwen3:8b", "local/llama4"]
        await found.choose(None, None)
        assert server.lookups == 1
        found.refresh()
        assert found.available() == []


async def test_all_models_of_a_local_server_are_offered_with_the_configured_one() -> None:
    async with ModelServer(models=("qwen3:8b", "llama4")) as server:
        found = models(Config(model="local/llama4"), LOCAL_BASE_URL=server.openai_url)
        assert (await found.choose(None, None)).ref == "local/llama4"
        assert [info.ref for info in found.available()] == ["local/llama4", "local/qwen3:8b"]
    gone = models(Config(model="local/llama4"))  # none answers: that is told with the first prompt
    assert (await gone.choose(None, None)).ref == "local/llama4"
    assert [info.ref for info in gone.available()] == ["local/llama4"]


def test_every_model_that_the_configuration_names_is_offered_where_it_can_be_used() -> None:
    own = ProviderConfig(api="openai", base_url="http://127.0.0.1:1/v1")
    config = Config(
        providers={"mine": own},
        model="mine/big",
        fallback_models=["mine/other", "openai/gpt-5.2"],
        vision_model="mine/eyes",
        small_model="mine/small",
    )
    offered = [info.ref for info in models(config).available()]
    assert offered == ["mine/big", "mine/other", "mine/eyes", "mine/small"]  # openai has no key


async def test_local_means_the_model_of_the_local_server() -> None:
    async with ModelServer(models=("qwen3:8b",)) as server:
        found = models(LOCAL_BASE_URL=server.openai_url, GEMINI_API_KEY="k")
        assert (await found.choose("ollama", None)).ref == "local/qwen3:8b"
    with pytest.raises(AuthRequiredError, match="No local model server"):
        await models(GEMINI_API_KEY="k").choose("local", None)


async def test_a_provider_with_a_key_comes_before_the_local_server() -> None:
    async with ModelServer() as server:
        found = models(LOCAL_BASE_URL=server.openai_url, GEMINI_API_KEY="k")
        assert (await found.choose(None, None)).provider == "gemini"
        assert server.lookups == 0


async def test_a_server_that_accepts_and_says_nothing_is_not_waited_for() -> None:
    held = asyncio.Event()

    async def silent(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await held.wait()
        writer.close()

    listening = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    assert await served_models(f"http://127.0.0.1:{port}/v1") is None
    held.set()
    listening.close()


@pytest.mark.parametrize(
    "said",
    [b"",
     b"nonsense\r\n\r\n",
     b'HTTP/1.1 404 Not Found\r\n\r\n{"data":[{"id":"x"}]}',
     b"HTTP/1.1 200 OK\r\n\r\n<html>",
     b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{}", b"HTTP/1.1 200 OK\r\n\r\n{\"data\":1}"],
)  # fmt: skip
async def test_something_else_on_the_port_is_no_model_server(said: bytes) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(said)
        writer.close()

    listening = await asyncio.start_server(other, "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    assert await served_models(f"http://127.0.0.1:{port}/v1") is None
    listening.close()


async def test_one_driver_serves_a_provider_until_its_key_changes() -> None:
    environ = {**NOWHERE, "OPENAI_API_KEY": "k1"}
    found = Models(Config(), Keys(environ), environ)
    info = found.resolve("openai/gpt-5.2")
    made = await asyncio.gather(*(asyncio.to_thread(found.driver, info) for _ in range(4)))
    assert len({id(driver) for driver in made}) == 1
    assert found.driver(found.resolve("openai/gpt-4.1")) is made[0]
    environ["OPENAI_API_KEY"] = "k2"
    found.refresh()
    assert found.driver(info) is not made[0]
    await found.aclose()


def test_a_driver_without_a_key_is_refused() -> None:
    found = models()
    with pytest.raises(AuthRequiredError, match="DeepSeek needs a key"):
        found.driver(found.resolve("deepseek/deepseek-flash"))
    with pytest.raises(InvalidInputError, match="gone"):
        found.driver(ModelInfo(provider="gone", id="x"))


def test_cached_input_costs_its_own_price() -> None:
    price = Price(input=2, output=10, cache_read=0.2, cache_write=2.5)
    info = ModelInfo(provider="x", id="y", price=price)
    usage = Usage(input=1_000_000, output=100_000, cache_read=600_000, cache_write=200_000)
    assert info.cost(usage) == pytest.approx(0.2 * 2 + 0.6 * 0.2 + 0.2 * 2.5 + 0.1 * 10)
    plain = ModelInfo(provider="x", id="y", price=Price(input=2, output=10))
    assert plain.cost(usage) == pytest.approx(3.0)
    assert ModelInfo(provider="x", id="y").cost(usage) is None


def test_every_default_model_is_in_the_catalog_and_has_thought_levels() -> None:
    found = models()
    for entry in found.providers():
        if entry.default_model:
            info = found.resolve(f"{entry.id}/{entry.default_model}")
            assert info.name != info.id
            assert info.default_thought is None or info.default_thought in info.thought_levels
            assert bool(info.thought_levels) == (info.reasoning != "none")


def test_choosing_a_model_loads_no_sdk_no_http_client_and_no_pydantic() -> None:
    code = (
        "import sys, asyncio\n"
        "from acp_agent.config.types import Config\n"
        "from acp_agent.models.registry import Models\n"
        "class Keys:\n"
        "    def get(self, provider, key_env): return 'k'\n"
        "found = Models(Config(), Keys(), {})\n"
        "found.available(); asyncio.run(found.choose(None, None))\n"
        "print(*{name.partition('.')[0] for name in sys.modules})\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=30
    )
    loaded = set(done.stdout.split())
    assert "acp_agent" in loaded
    assert not loaded & {"openai", "anthropic", "httpx2", "pydantic", "anyio", "keyring", "rich"}


@pytest.mark.parametrize(
    ("name", "address", "given", "api"),
    [
        ("openai", None, None, "openai_responses"),
        ("openai", "https://gateway.example.com/v1", None, "openai"),
        ("openai", "https://gateway.example.com/v1", "openai_responses", "openai_responses"),
        ("openai", None, "openai", "openai"),
        ("gemini", None, None, "gemini"),
        ("gemini", "https://proxy.example.com/v1beta", None, "gemini"),
        ("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", None, "openai"),
        ("deepseek", "https://proxy.example.com/v1", None, "openai"),
        ("anthropic", "https://proxy.example.com", None, "anthropic"),
    ],
)
def test_the_newer_apis_are_the_default_of_their_providers_and_an_option_of_others(
    name: str, address: str | None, given: Any, api: str
) -> None:
    config = Config(providers={name: ProviderConfig(base_url=address, api=given)})
    assert provider(models(config), name).api == api
