"""Azure, Amazon Bedrock and Google Vertex AI: addresses, credentials, and what they lack."""

import importlib.util
import json
from collections.abc import Sequence
from typing import Any

import pytest

from acp_agent.config.model_types import ProviderConfig
from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError
from acp_agent.models.anthropic_driver import AnthropicCloudDriver
from acp_agent.models.base import Driver, Failed
from acp_agent.models.clouds import AwsEventStreamDecoder, Bedrock, Vertex
from acp_agent.models.openai_driver import OpenAIDriver
from acp_agent.models.registry import Models
from acp_agent.models.stream_events import BadStreamError
from tests.models.configured_models import LearnsNothing
from tests.support import aws_event_stream
from tests.support.model_asking import (
    KEY,
    ask,
    azure_provider,
    bedrock_provider,
    driver_for,
    gather,
    vertex_provider,
)
from tests.support.model_server import Call, ModelServer, Raw, Request, Thought, answer


async def asked(server: ModelServer, driver: Driver, model: str = "scripted-model") -> Request:
    server.add(answer("Hello"))
    got = await gather(driver.stream(ask(model_id=model)))
    await driver.aclose()
    assert got.text == "Hello"
    return server.requests[-1]


async def test_azure_is_asked_at_its_current_address_with_a_key(server: ModelServer) -> None:
    request = await asked(server, driver_for("azure", server), "my-deployment")
    assert request.path == "/openai/v1/responses"
    assert request.headers["api-key"] == KEY
    assert "authorization" not in request.headers
    assert request.json["model"] == "my-deployment"


async def test_azure_takes_a_token_of_entra_id_and_chat_completions(server: ModelServer) -> None:
    token = "eyJhbGciOiJub25lIn0.e30."
    provider = azure_provider(server, key=token, api="openai", base_url=f"{server.url}/openai/v1")
    request = await asked(server, OpenAIDriver(provider))
    assert request.path == "/openai/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {token}"


async def test_a_version_of_azures_api_can_be_chosen(server: ModelServer) -> None:
    provider = azure_provider(server, api_version="2025-04-01-preview")
    request = await asked(server, OpenAIDriver(provider))
    assert request.path == "/openai/responses"
    assert request.target.endswith("?api-version=2025-04-01-preview")


async def test_bedrock_is_asked_for_a_stream_with_a_bearer_token(server: ModelServer) -> None:
    model = "global.anthropic.claude-sonnet-5-5-v1:0"
    request = await asked(server, driver_for("bedrock", server), model)
    assert request.path == f"/model/{model}/invoke-with-response-stream"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & request.json.keys()


async def test_requests_to_bedrock_without_a_token_are_signed(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "not-a-secret")
    monkeypatch.delenv("AWS_BEARER_TOKEN_BEDROCK", raising=False)
    provider = bedrock_provider(server, key=None)
    request = await asked(server, AnthropicCloudDriver(provider, Bedrock()))
    signed = request.headers["authorization"]
    assert signed.startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")
    assert "/us-east-1/bedrock/aws4_request" in signed


async def test_vertex_is_asked_at_the_projects_address_with_a_token(server: ModelServer) -> None:
    request = await asked(server, driver_for("vertex", server), "claude-opus-4@20250514")
    assert request.path == (
        "/v1/projects/my-project/locations/global/publishers/anthropic/models/"
        "claude-opus-4@20250514:streamRawPredict"
    )
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json["anthropic_version"] == "vertex-2023-10-16"
    assert request.json["stream"] is True
    assert "model" not in request.json


# The event stream of Bedrock

SCRIPT = answer(Thought("Hm", "s1"), "Größe", Call("read", {"path": "ü"}), "Done.")


def messages_of(count: int) -> list[bytes]:
    return [json.dumps({"type": "ping", "n": n, "x": "ä" * n}).encode() for n in range(count)]


@pytest.mark.parametrize("size", [1, 7, 100, 100_000])
def test_events_come_whole_however_their_bytes_are_cut(size: int) -> None:
    sent = messages_of(20)
    stream = b"".join(map(aws_event_stream.chunk, sent))
    decoder = AwsEventStreamDecoder()
    read = [
        event
        for at in range(0, len(stream), size)
        for event in decoder.feed(stream[at : at + size])
    ]
    assert read == sent
    assert decoder.end() == []


def test_amazons_own_decoder_reads_the_same() -> None:
    from anthropic.lib.bedrock._stream_decoder import AWSEventStreamDecoder

    stream = b"".join(map(aws_event_stream.chunk, messages_of(20)))
    stream += aws_event_stream.exception("throttlingException", "Too many requests")
    theirs = [event.data for event in AWSEventStreamDecoder().iter_bytes(iter([stream]))]
    ours = [event.decode() for event in AwsEventStreamDecoder().feed(stream)]
    assert [json.loads(one) for one in ours] == [json.loads(one) for one in theirs]


@pytest.mark.parametrize("at", [0, 9, 20, -1])
def test_a_wrong_byte_is_an_error_after_the_earlier_events(at: int) -> None:
    good, bad = aws_event_stream.chunk(b'{"n":1}'), bytearray(aws_event_stream.chunk(b'{"n":2}'))
    bad[at] ^= 0xFF
    decoder = AwsEventStreamDecoder()
    assert decoder.feed(good + bad) == [b'{"n":1}']
    with pytest.raises(ValueError, match=r"checksum|larger") as raised:
        decoder.feed(b"")
    assert isinstance(raised.value, BadStreamError)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("throttlingException", "rate_limit"),
        ("serviceUnavailableException", "overloaded"),
        ("modelTimeoutException", "timeout"),
        ("internalServerException", "server"),
        ("validationException", "bad_request"),
    ],
)
async def test_an_exception_in_bedrocks_stream_has_its_kind(
    server: ModelServer, name: str, kind: str
) -> None:
    event = aws_event_stream.exception(name, "That went wrong")
    server.add(answer("begun", Raw(event)))
    driver = driver_for("bedrock", server)
    got = await gather(driver.stream(ask()))
    await driver.aclose()
    assert got.text == "begun"
    assert isinstance(got.last, Failed)
    assert got.last.kind == kind
    assert "That went wrong" in got.last.message


# Configuration


class Keys(LearnsNothing):
    def __init__(self, **keys: str) -> None:
        self.keys = keys

    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        return self.keys.get(provider)


def models(environ: dict[str, str] | None = None, **providers: ProviderConfig) -> Models:
    return Models(Config(providers=providers), Keys(bedrock="k", azure="k"), environ or {})


@pytest.mark.parametrize(
    ("ref", "advice"),
    [
        ("bedrock/m", r"region in \[providers.bedrock\], or AWS_REGION"),
        ("vertex/m", r"region in \[providers.vertex\], or CLOUD_ML_REGION"),
        ("azure/m", r"base_url in \[providers.azure\], or AZURE_OPENAI_ENDPOINT"),
    ],
)
def test_an_error_says_what_a_cloud_still_needs(ref: str, advice: str) -> None:
    found = models()
    with pytest.raises(ConfigError, match=advice):
        found.driver(found.resolve(ref))
    assert found.available() == []


def test_a_project_is_needed_too() -> None:
    found = models({"CLOUD_ML_REGION": "global"})
    with pytest.raises(ConfigError, match="project"):
        found.driver(found.resolve("vertex/m"))


@pytest.mark.parametrize(
    ("region", "address"),
    [
        ("europe-west1", "https://europe-west1-aiplatform.googleapis.com/v1"),
        ("global", "https://aiplatform.googleapis.com/v1"),
        ("eu", "https://aiplatform.eu.rep.googleapis.com/v1"),
    ],
)
def test_a_region_decides_about_the_address(region: str, address: str) -> None:
    found = models(vertex=ProviderConfig(region=region, project="p"))
    vertex = next(one for one in found.providers() if one.id == "vertex")
    assert (vertex.base_url, vertex.usable) == (address, True)


def test_an_unconfigured_cloud_is_not_offered() -> None:
    environ = {"CLOUD_ML_REGION": "global", "GOOGLE_CLOUD_PROJECT": "p"}
    found = models(environ)
    with pytest.raises(AuthRequiredError, match="VERTEX_ACCESS_TOKEN"):
        found.driver(found.resolve("vertex/claude-sonnet-5-5"))


def test_an_api_that_a_cloud_does_not_carry_is_refused_by_name() -> None:
    found = models(bedrock=ProviderConfig(region="us-east-1", api="gemini"))
    with pytest.raises(ConfigError, match=r"providers\.bedrock\.api.*anthropic"):
        found.driver(found.resolve("bedrock/m"))


@pytest.mark.parametrize(
    ("cloud", "provider", "package"),
    [(Bedrock(), bedrock_provider, "boto3"), (Vertex(), vertex_provider, "google.auth")],
)
def test_a_missing_extra_is_named(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch, cloud: Any, provider: Any, package: str
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == package else find(name)
    )
    given = provider(server, key=None)
    with pytest.raises(ConfigError, match=rf"acp-agent-server\[{given.id}\]"):
        AnthropicCloudDriver(given, cloud)


@pytest.mark.parametrize(
    ("ref", "like"),
    [
        ("bedrock/us.anthropic.claude-sonnet-5-5-v1:0", "anthropic/claude-sonnet-5-5"),
        ("vertex/claude-opus-5@20260724", "anthropic/claude-opus-5"),
        ("azure/gpt-6.1-terra", "openai/gpt-6.1-terra"),
    ],
)
def test_a_clouds_model_is_known_as_its_vendors_but_for_the_price(ref: str, like: str) -> None:
    found = models()
    ours, theirs = found.resolve(ref), found.resolve(like)
    assert ours.ref == ref
    assert (ours.window, ours.reasoning, ours.thought_levels) == (
        theirs.window, theirs.reasoning, theirs.thought_levels,
    )  # fmt: skip
    assert ours.price is None
