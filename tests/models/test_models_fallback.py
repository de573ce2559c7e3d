"""Another model, when the chosen one cannot be had."""

from collections.abc import Sequence

import pytest

from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError, ConfigError
from acp_agent.models.base import (
    Driver,
    Failed,
    FellBack,
    ModelInfo,
    Retrying,
    StreamEvent,
    TextDelta,
)
from acp_agent.models.registry import Models
from acp_agent.models.retries import RetryPolicy, stream_with_fallback
from tests.models.configured_models import LearnsNothing
from tests.support.model_asking import Gathered, ask, driver_for, gather
from tests.support.model_server import (
    Cut,
    Drop,
    ModelServer,
    Reply,
    Status,
    Thought,
    answer,
)

OTHERS = [ModelInfo(provider="anthropic", id="second"), ModelInfo(provider="gemini", id="third")]


async def asked(
    server: ModelServer, *, fallbacks: Sequence[ModelInfo] = OTHERS, retries: int = 0
) -> Gathered:
    made: list[Driver] = [driver_for("openai", server)]

    async def load(model: ModelInfo) -> Driver:
        if model.id == "locked":
            raise AuthRequiredError("no key")
        made.append(driver_for(model.provider, server))
        return made[-1]

    async def sleep(seconds: float) -> None:
        pass

    policy = RetryPolicy(retries=retries, first_byte=5, stall=5)
    stream = stream_with_fallback(
        made[0], ask(), policy, fallbacks=fallbacks, load=load, sleep=sleep
    )
    try:
        return await gather(stream)
    finally:
        for driver in made:
            await driver.aclose()


def fallen(got: Gathered) -> list[str]:
    return [event.model.ref for event in got.events if isinstance(event, FellBack)]


@pytest.mark.parametrize(
    "reply", [Status(code=503), Status(code=529), Status(code=500), Status(code=429), Drop()]
)
async def test_an_unavailable_model_is_replaced_by_the_next(
    server: ModelServer, reply: Reply
) -> None:
    server.add(reply, answer("From the second."))
    got = await asked(server)
    assert got.text == "From the second."
    assert fallen(got) == ["anthropic/second"]
    assert [request.api for request in server.requests] == ["openai", "anthropic"]
    assert server.requests[1].json["model"] == "second"


@pytest.mark.parametrize(
    "reply",
    [Status(code=401), Status(code=400), Status(code=402), Status(code=404), Status(code=413)],
)
async def test_a_bad_key_or_a_bad_request_asks_the_user_to_fix_it(
    server: ModelServer, reply: Reply
) -> None:
    server.add(reply)
    got = await asked(server)
    assert isinstance(got.last, Failed)
    assert fallen(got) == []
    assert len(server.requests) == 1


@pytest.mark.parametrize("begun", ["begun", Thought("Let me")])
async def test_a_partly_shown_answer_is_not_continued_by_another_model(
    server: ModelServer, begun: str | Thought
) -> None:
    server.add(answer(begun, Cut()), Status(code=503))
    got = await asked(server, retries=1)
    assert isinstance(got.last, Failed)
    assert fallen(got) == []


async def test_the_chosen_model_is_tried_again_first(server: ModelServer) -> None:
    server.add(Status(code=503), Status(code=503), answer("Hello"))
    got = await asked(server, retries=1)
    kinds: list[type[StreamEvent]] = [type(event) for event in got.events]
    assert kinds.index(Retrying) < kinds.index(FellBack) < kinds.index(TextDelta)


async def test_fallback_models_are_tried_in_order_and_the_last_failure_is_reported(
    server: ModelServer,
) -> None:
    server.add(Status(code=503), Status(code=529), Status(code=500, message="the third's"))
    got = await asked(server)
    assert fallen(got) == ["anthropic/second", "gemini/third"]
    assert isinstance(got.last, Failed)
    assert "the third's" in got.last.message


async def test_a_model_that_lost_its_key_is_passed_over(server: ModelServer) -> None:
    server.add(Status(code=503), answer("From the third."))
    locked = ModelInfo(provider="anthropic", id="locked")
    got = await asked(server, fallbacks=[locked, OTHERS[1]])
    assert fallen(got) == ["gemini/third"]


class Keys(LearnsNothing):
    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        return "k" if provider in {"openai", "gemini"} else None


def test_unusable_models_and_the_chosen_model_are_no_fallbacks() -> None:
    names = ["openai/gpt-4.1", "anthropic/claude-opus-5-5", "gemini/gemini-3.8-flash"]
    models = Models(Config(fallback_models=names), Keys(), {})
    found = models.fallbacks(models.resolve("openai/gpt-4.1"))
    assert [info.ref for info in found] == ["gemini/gemini-3.8-flash"]


def test_a_fallback_of_an_unknown_provider_is_reported() -> None:
    with pytest.raises(ConfigError, match="nobody/model"):
        Models(Config(fallback_models=["nobody/model"]), Keys(), {})


async def closed_and(server: ModelServer, fallbacks: Sequence[ModelInfo]) -> tuple[Gathered, int]:
    """What came of asking a provider that refuses connections; how often it was waited for."""
    async with ModelServer() as gone:
        driver = driver_for("openai", gone)
    waits: list[float] = []

    async def load(model: ModelInfo) -> Driver:
        if model.id == "locked":
            raise AuthRequiredError("no key")
        return driver_for(model.provider, server)

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    policy = RetryPolicy(retries=4, first_byte=5, stall=5)
    stream = stream_with_fallback(
        driver, ask(), policy, fallbacks=fallbacks, load=load, sleep=sleep
    )
    try:
        return await gather(stream), len(waits)
    finally:
        await driver.aclose()


async def test_a_provider_that_refuses_connections_is_replaced_at_once(server: ModelServer) -> None:
    server.add(answer("From the second."))
    got, waits = await closed_and(server, OTHERS)
    assert got.text == "From the second."
    assert waits == 0
    (fell,) = [event for event in got.events if isinstance(event, FellBack)]
    assert "No connection to OpenAI" in fell.reason


@pytest.mark.parametrize("fallbacks", [[], [ModelInfo(provider="openai", id="locked")]])
async def test_a_provider_that_nobody_can_replace_is_tried_again(
    server: ModelServer, fallbacks: Sequence[ModelInfo]
) -> None:
    got, waits = await closed_and(server, fallbacks)
    assert isinstance(got.last, Failed)
    assert waits == 4
