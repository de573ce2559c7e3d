"""What requests cost, by each provider's own rules of counting.

Each row is an answer's usage as the provider's API reports it, and what its price list makes of it,
worked out by hand from the rule that is named.
"""

from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from acp_agent.config.model_types import ModelConfig, PriceConfig
from acp_agent.events import Usage
from acp_agent.models import (
    anthropic_events,
    catalog,
    gemini_events,
    openai_events,
    openai_responses_events as responses_events,
)
from acp_agent.models.base import ModelInfo, Price
from acp_agent.models.catalog import Catalog

MILLION = 1_000_000


def anthropic(given: dict[str, Any]) -> Usage:
    decoder = anthropic_events.AnthropicDecoder.__new__(anthropic_events.AnthropicDecoder)
    decoder._usage = anthropic_events._Usage()
    decoder._count(msgspec.convert(given, anthropic_events._Usage))
    return decoder._total()


def chat(given: dict[str, Any]) -> Usage:
    return openai_events._usage(msgspec.convert(given, openai_events._Usage))


def responses(given: dict[str, Any]) -> Usage:
    return responses_events._usage(msgspec.convert(given, responses_events._Usage))


def gemini(given: dict[str, Any]) -> Usage:
    return gemini_events._usage(msgspec.convert(given, gemini_events._Usage))


PRICE = Price(input=2, output=10, cache_read=0.2, cache_write=2.5)
TIERED = Price(
    input=2, output=12, cache_read=0.2, long_above=200_000, long_input=2, long_output=1.5
)

RULES: dict[str, tuple[Usage, Price, float]] = {
    # platform.claude.com/docs/en/build-with-claude/prompt-caching, "Tracking cache performance":
    # total input = cache_read + cache_creation + input_tokens; each has its own price.
    "anthropic counts cached input beside the rest": (
        anthropic(
            {
                "input_tokens": 50, "cache_read_input_tokens": 100_000,
                "cache_creation_input_tokens": 248, "output_tokens": 503,
            }
        ),
        PRICE,
        (50 * 2 + 100_000 * 0.2 + 248 * 2.5 + 503 * 10) / MILLION,
    ),
    # …/extended-thinking, "Pricing": thinking tokens are billed as output tokens.
    "anthropic counts thinking within the output": (
        anthropic(
            {
                "input_tokens": 100, "output_tokens": 900,
                "output_tokens_details": {"thinking_tokens": 700},
            }
        ),
        PRICE,
        (100 * 2 + 900 * 10) / MILLION,
    ),
    # developers.openai.com/api/docs/guides/prompt-caching: cached_tokens, and from GPT-5.6 on
    # cache_write_tokens, are a part of input_tokens.
    "openai counts cached and written input within the input": (
        responses(
            {
                "input_tokens": 10_000,
                "input_tokens_details": {"cached_tokens": 6_000, "cache_write_tokens": 3_000},
                "output_tokens": 200,
            }
        ),
        PRICE,
        (1_000 * 2 + 6_000 * 0.2 + 3_000 * 2.5 + 200 * 10) / MILLION,
    ),
    # developers.openai.com/api/docs/guides/reasoning: reasoning tokens are billed as output.
    "openai counts reasoning within the output": (
        responses(
            {
                "input_tokens": 75, "output_tokens": 1_186,
                "output_tokens_details": {"reasoning_tokens": 1_024},
            }
        ),
        PRICE,
        (75 * 2 + 1_186 * 10) / MILLION,
    ),
    "chat completions count as the Responses API does": (
        chat(
            {
                "prompt_tokens": 10_000, "completion_tokens": 300,
                "prompt_tokens_details": {"cached_tokens": 9_000},
                "completion_tokens_details": {"reasoning_tokens": 200},
            }
        ),
        PRICE,
        (1_000 * 2 + 9_000 * 0.2 + 300 * 10) / MILLION,
    ),
    # docs.x.ai/docs/key-information/consumption-and-rate-limits: reasoning tokens are counted apart
    # from completion_tokens, and in total_tokens.
    "xai counts reasoning beside the output": (
        chat(
            {
                "prompt_tokens": 10_120, "completion_tokens": 1_499, "total_tokens": 14_428,
                "prompt_tokens_details": {"cached_tokens": 128},
                "completion_tokens_details": {"reasoning_tokens": 2_809},
            }
        ),
        PRICE,
        (9_992 * 2 + 128 * 0.2 + (1_499 + 2_809) * 10) / MILLION,
    ),
    "more reasoning than output is beside it, whether there is a total or not": (
        chat(
            {
                "prompt_tokens": 21, "completion_tokens": 0,
                "completion_tokens_details": {"reasoning_tokens": 60},
            }
        ),
        PRICE,
        (21 * 2 + 60 * 10) / MILLION,
    ),
    "a total that has no room for it leaves reasoning in the output": (
        chat(
            {
                "prompt_tokens": 75, "completion_tokens": 1_186, "total_tokens": 1_261,
                "completion_tokens_details": {"reasoning_tokens": 1_024},
            }
        ),
        PRICE,
        (75 * 2 + 1_186 * 10) / MILLION,
    ),
    "a service that counts cached input beside the rest is understood": (
        chat(
            {
                "prompt_tokens": 100, "completion_tokens": 10,
                "prompt_tokens_details": {"cached_tokens": 9_000},
            }
        ),
        PRICE,
        (100 * 2 + 9_000 * 0.2 + 10 * 10) / MILLION,
    ),
    # api-docs.deepseek.com/guides/kv_cache: prompt_tokens = hit + miss.
    "deepseek counts hits within the prompt": (
        chat(
            {
                "prompt_tokens": 1_000, "completion_tokens": 10,
                "prompt_cache_hit_tokens": 900, "prompt_cache_miss_tokens": 100,
            }
        ),
        PRICE,
        (100 * 2 + 900 * 0.2 + 10 * 10) / MILLION,
    ),
    # platform.moonshot.ai/docs/api/chat: usage.cached_tokens, a part of prompt_tokens.
    "kimi counts cached tokens within the prompt": (
        chat({"prompt_tokens": 1_000, "completion_tokens": 10, "cached_tokens": 400}),
        PRICE,
        (600 * 2 + 400 * 0.2 + 10 * 10) / MILLION,
    ),
    # ai.google.dev/gemini-api/docs/thinking: thoughts are paid for as output, beside the answer;
    # ai.google.dev/api/generate-content (UsageMetadata): the prompt's count holds what was cached.
    "gemini counts thoughts beside the answer and cached tokens within the prompt": (
        gemini(
            {
                "promptTokenCount": 10_000, "cachedContentTokenCount": 8_000,
                "candidatesTokenCount": 100, "thoughtsTokenCount": 400,
            }
        ),
        PRICE,
        (2_000 * 2 + 8_000 * 0.2 + 500 * 10) / MILLION,
    ),
    # ai.google.dev/gemini-api/docs/pricing: another price for prompts above 200k tokens, for the
    # answer, too; developers.openai.com/api/docs/models/gpt-6.2-sol: for the full request.
    "a long prompt has its own price, for all of the request": (
        gemini(
            {
                "promptTokenCount": 300_000, "cachedContentTokenCount": 100_000,
                "candidatesTokenCount": 1_000,
            }
        ),
        TIERED,
        (200_000 * 4 + 100_000 * 0.4 + 1_000 * 18) / MILLION,
    ),
    "a prompt as long as the limit has the usual price": (
        gemini({"promptTokenCount": 200_000, "candidatesTokenCount": 1_000}),
        TIERED,
        (200_000 * 2 + 1_000 * 12) / MILLION,
    ),
    # platform.claude.com/docs/en/models/haiku-5-5/overview: two prices, by the prompt's length,
    # to which what was read from the cache or written to it counts.
    "cached tokens count towards the limit": (
        anthropic(
            {
                "input_tokens": 10, "cache_read_input_tokens": 199_990,
                "cache_creation_input_tokens": 1, "output_tokens": 0,
            }
        ),
        TIERED,
        (10 * 4 + 199_990 * 0.4 + 1 * 4) / MILLION,
    ),
}  # fmt: skip


@pytest.mark.parametrize("rule", RULES)
def test_each_kind_of_token_has_its_own_price(rule: str) -> None:
    usage, price, dollars = RULES[rule]
    info = ModelInfo(provider="x", id="m", price=price)
    assert info.cost(usage) == pytest.approx(dollars)


@pytest.fixture
def today(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    yield monkeypatch
    catalog._listed_models.cache_clear()


@pytest.mark.parametrize(
    ("day", "dollars"), [("2026-11-30", 2), ("2026-12-01", 4), ("2027-06-01", 4)]
)
def test_an_announced_price_holds_from_its_day_on(
    today: pytest.MonkeyPatch, day: str, dollars: float
) -> None:
    today.setattr("acp_agent.models.base.time.strftime", lambda *_: day)
    catalog._listed_models.cache_clear()
    price = Catalog({}).get("gemini", "gemini-4-argon").price
    assert price is not None
    assert price.input == dollars


def test_a_price_begins_with_its_day_also_for_an_agent_that_runs_since_before(
    today: pytest.MonkeyPatch,
) -> None:
    days = ["2026-11-30"]
    today.setattr("acp_agent.models.base.time.strftime", lambda *_: days[-1])
    catalog._listed_models.cache_clear()
    info = Catalog({}).get("gemini", "gemini-4-argon")
    usage = Usage(input=MILLION)
    assert info.cost(usage) == 2
    days.append("2026-12-01")
    assert info.cost(usage) == 4
    own = Catalog({info.ref: ModelConfig(price=PriceConfig(input=1, output=1))})
    assert own.cost_now(info.ref, usage) == 1


def test_a_model_of_the_users_server_is_free_unless_it_has_a_price() -> None:
    usage = Usage(input=MILLION, output=MILLION)
    assert Catalog({}).cost_now("local/qwen3:8b", usage) == 0
    assert Catalog({}).cost_now("mine/qwen3:8b", usage) is None
    priced = ModelConfig(price=PriceConfig(input=1, output=2))
    assert Catalog({"local/big": priced}).cost_now("local/big", usage) == 3
    assert (
        Catalog({"local/big": ModelConfig(context_window=9_000)}).cost_now("local/big", usage) == 0
    )


def test_every_listed_price_is_plausible() -> None:
    for provider in ("openai", "anthropic", "gemini", "qwen", "zhipu", "openrouter"):
        for info in Catalog({}).for_provider(provider):
            price = info.price
            if price is None:
                continue
            assert price.output >= price.input >= (price.cache_read or 0)
            if price.cache_write is not None and provider in {"openai", "anthropic"}:
                assert price.cache_write == pytest.approx(1.25 * price.input)
            assert (info.default_thought in info.thought_levels) == bool(info.thought_levels)


@pytest.mark.parametrize("count", [-5, 1e30, 2**63, None])
@pytest.mark.parametrize("reads", [chat, anthropic, responses])
def test_an_impossible_number_of_tokens_is_ignored(
    reads: Callable[[dict[str, Any]], Usage], count: float | None
) -> None:
    sent, answered = (
        ("prompt_tokens", "completion_tokens")
        if reads is chat
        else ("input_tokens", "output_tokens")
    )
    assert reads({sent: count and int(count), answered: 7}) == Usage(output=7)
    assert reads({sent: 7, answered: count and int(count)}) == Usage(input=7)
