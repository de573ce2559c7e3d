"""The types of providers and models in the configuration file."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from acp_agent.config.policy_types import Table

ThoughtLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]
ToolDialect = Literal[
    "action", "auto", "constrained", "deepseek", "dsml", "fenced", "gemma", "glm", "harmony",
    "hermes", "invoke", "kimi", "kimi_k3", "llama", "minimax", "mistral", "qwen_coder", "tagged",
]  # fmt: skip
HttpAddress = Annotated[str, Meta(pattern=r"^https?://[^\s/]", examples=["https://host/v1"])]
# One line of a menu: visible, and without line breaks.
MenuName = Annotated[
    str, Meta(pattern=r"^[^\x00-\x1f\x7f]*\S[^\x00-\x1f\x7f]*$(?!\n)", examples=["Coder Large"])
]
ModelRef = Annotated[str, Meta(pattern=r"^[^/\s]+/\S", examples=["openai/gpt-5"])]
ProviderName = Annotated[str, Meta(pattern=r"^[^/\s]+$(?!\n)", examples=["company"])]
VariableName = Annotated[
    str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$(?!\n)", examples=["COMPANY_MODELS_KEY"])
]
Dollars = Annotated[float, Meta(ge=0, le=1_000_000)]


class ProviderConfig(Table, frozen=True, kw_only=True):
    """A model provider: one of the presets changed, or one of your own."""

    api: Annotated[
        Literal["anthropic", "gemini", "openai", "openai_responses", "plugin"] | None,
        Meta(
            description="The API it speaks. Required for a provider that is not a preset. "
            "`plugin`: a plugin that is a Python package answers."
        ),
    ] = None
    base_url: Annotated[HttpAddress | None, Meta(description="Where its API answers.")] = None
    api_key_env: Annotated[
        VariableName | None, Meta(description="The environment variable that holds the key.")
    ] = None
    key_command: Annotated[
        Annotated[list[str], Meta(min_length=1, examples=[["company-login", "token"]])] | None,
        Meta(
            description="A program and its arguments, which prints a key or a token. It runs "
            "before the first request, after `key_refresh` seconds, and when a key is refused."
        ),
    ] = None
    key_refresh: Annotated[
        int, Meta(ge=1, le=86_400, description="Seconds for which a key that it printed is used.")
    ] = 300
    headers: Annotated[
        dict[str, str], Meta(description="Further HTTP headers, sent with every request.")
    ] = {}
    region: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z0-9-]+$", examples=["eu-central-1"])] | None,
        Meta(description="The cloud's region (bedrock, vertex)."),
    ] = None
    project: Annotated[
        Annotated[str, Meta(pattern=r"^[a-z0-9.:-]+$", examples=["my-project"])] | None,
        Meta(description="The cloud's project (vertex)."),
    ] = None
    api_version: Annotated[
        Annotated[str, Meta(pattern=r"^[A-Za-z0-9.-]+$", examples=["2025-04-01-preview"])] | None,
        Meta(description="The version of the cloud's API (azure); without it the current one."),
    ] = None


class PriceConfig(Table, frozen=True, kw_only=True):
    """US dollars for a million tokens."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None


class ModelConfig(Table, frozen=True, kw_only=True):
    """What to change in, or add to, the catalog's entry of a model."""

    name: MenuName | None = None
    context_window: Annotated[
        Annotated[int, Meta(ge=1_000, le=100_000_000)] | None,
        Meta(description="Context window in tokens."),
    ] = None
    max_output_tokens: Annotated[
        Annotated[int, Meta(ge=1, le=100_000_000)] | None,
        Meta(description="Longest answer in tokens."),
    ] = None
    vision: Annotated[bool | None, Meta(description="Whether it sees pictures.")] = None
    thought_levels: Annotated[
        list[ThoughtLevel] | None,
        Meta(description="The thought levels that it supports; empty: none."),
    ] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None,
        Meta(description="How much chance there is in its answers. Not every model takes it."),
    ] = None
    tools: Annotated[
        bool | None,
        Meta(description="Whether its API takes tools. If not, they are described in the prompt."),
    ] = None
    tool_dialect: Annotated[
        ToolDialect | None,
        Meta(description="How it writes calls of tools where its API does not take them out."),
    ] = None
    price: PriceConfig | None = None
