"""Which models do side work."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from acp_agent.config.model_types import ProviderConfig
from acp_agent.config.types import Config
from acp_agent.errors import AuthRequiredError
from acp_agent.models import catalog
from acp_agent.models.registry import Models
from acp_agent.models.roles import small_model, vision_model
from tests.models.configured_models import LearnsNothing

CATALOG = Path(catalog.__file__).with_name("catalog.json")
SMALL = json.loads(CATALOG.read_text("utf-8"))["small"]  # changes with the models there are
HAIKU = f"anthropic/{SMALL['anthropic']}"


class Keys(LearnsNothing):
    """A key for every provider but Gemini."""

    def get(self, provider: str, key_env: Sequence[str]) -> str | None:
        return None if provider == "gemini" else "sk-test"


def models(config: Config) -> Models:
    return Models(config, Keys(), {})


def small(config: Config, ref: str = "anthropic/claude-opus-5") -> str:
    found = models(config)
    return small_model(found, config, found.resolve(ref)).ref


def test_the_configured_model_does_the_side_work() -> None:
    assert small(Config(small_model="zhipu/glm-4.7-flash")) == "zhipu/glm-4.7-flash"


def test_without_a_small_model_the_catalogs_of_the_same_provider_is_used() -> None:
    assert small(Config()) == HAIKU
    assert small(Config(), "openai/gpt-5.2") == f"openai/{SMALL['openai']}"


def test_the_catalogs_small_models_are_available() -> None:
    found = models(Config())
    for provider in found.providers():
        info = found.catalog_small_model(provider.id)
        assert info is None or info in found.available() or not provider.usable


def test_without_a_small_model_or_at_another_address_the_main_model_is_used() -> None:
    moved = Config(providers={"anthropic": ProviderConfig(base_url="https://proxy.example.com")})
    assert small(moved) == "anthropic/claude-opus-5"
    assert small(Config(), "kimi/kimi-for-coding") == "kimi/kimi-for-coding"


def test_an_unusable_small_model_is_skipped() -> None:
    for ref in ("gemini/gemini-3.5-flash", "nobody/nothing"):
        assert small(Config(small_model=ref)) == HAIKU


def test_the_vision_model_is_the_configured_one_and_its_error_says_what_it_lacks() -> None:
    assert vision_model(models(Config()), Config()) is None
    config = Config(vision_model="openai/gpt-5.2")
    found = vision_model(models(config), config)
    assert found is not None
    assert found.ref == "openai/gpt-5.2"
    lacking = Config(vision_model="gemini/gemini-3.5-flash")
    with pytest.raises(AuthRequiredError, match="gemini"):
        vision_model(models(lacking), lacking)
