"""Types shared by all model drivers: requests, messages and stream events.

A turn passes a `ModelRequest` to a driver and reads batches of `StreamEvent`s. A stream does not
raise; its last event is `Finished` or `Failed`. A batch contains all events of one read of the
socket, so that a fast stream needs one journal write per read instead of one per word. Messages
have no reference cycles and a session has thousands of them, so they use `gc=False`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from typing import Literal, Protocol

from msgspec import Struct

from acp_agent.content import ImageBlock, JsonObject
from acp_agent.events import Usage
from acp_agent.ids import CallId
from acp_agent.tools.spec import ToolSpec as ToolSpec  # noqa: PLC0414 - exports it; tools lie below

ThoughtLevel = Literal["off", "minimal", "low", "medium", "high", "xhigh", "max"]

# The parameter that controls how much a model reasons. In OpenAI's chat API and similar APIs:
# `effort` is `reasoning_effort`, `toggle` is `thinking.type`, `toggle_effort` is both, `flag` is
# `enable_thinking`, `router` is OpenRouter's `reasoning`. In Anthropic's API: `budget` is a number
# of tokens, `adaptive` an effort, and `between_tools` is `adaptive` with that word for "off".
# In Gemini's API: `thinking_level` is a level, `thinking_budget` a number of tokens.
ReasoningControl = Literal[
    "none", "effort", "toggle", "toggle_effort", "flag", "router",
    "budget", "adaptive", "between_tools", "thinking_level", "thinking_budget",
]  # fmt: skip

# How a model writes tool calls as text if its API does not support tools (`models.dialects`).
# `auto` recognises all forms. `constrained` restricts the answer to a JSON Schema.
ToolDialect = Literal[
    "action", "auto", "constrained", "deepseek", "dsml", "fenced", "gemma", "glm", "harmony",
    "hermes", "invoke", "kimi", "kimi_k3", "llama", "minimax", "mistral", "qwen_coder", "tagged",
]  # fmt: skip

MAX_ANSWER = 64_000  # tokens; enough for one step, and few enough that no service refuses
RESERVED_OUTPUT = 32_000  # tokens for the answer of a model whose limit is unknown
FailureKind = Literal[
    "connection", "timeout", "rate_limit", "overloaded", "server", "malformed",
    "auth", "overflow", "bad_request", "refused", "not_found", "quota",
]  # fmt: skip


class Price(Struct, frozen=True, kw_only=True):
    """Prices in US dollars per million tokens.

    If the input of a request, including cached tokens, is longer than `long_above`, all its input
    costs `long_input` times as much, and its whole output `long_output` times as much.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    long_above: int | None = None
    long_input: float = 1.0
    long_output: float = 1.0


def today() -> str:
    """Return the current UTC date as YYYY-MM-DD, for prices that depend on the day."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def price_on(day: str, later: Sequence[tuple[str, Price]]) -> Price | None:
    """Return the latest announced price that is valid on a day, or None."""
    started = [(start_day, index) for index, (start_day, _) in enumerate(later) if start_day <= day]
    return later[max(started)[1]][1] if started else None


class WebSearch(Struct, frozen=True, kw_only=True):
    """The web search of a provider; `price` is in US dollars per 1,000 searches."""

    price: float = 0.0
    beside_tools: bool = True  # can be combined with tools in one request


class ModelInfo(Struct, frozen=True, kw_only=True):
    """The properties of a model. `id` is the provider's name for it.

    If `limit_known` is false, `max_output` is only the number of tokens reserved for an answer.
    `tools` is true if the API supports tools. `tool_dialect` is set if the model writes calls as
    text. `temperature` is None if the provider's default is used. `later` are prices that replace
    `price` from a day on (YYYY-MM-DD).
    """

    provider: str
    id: str
    name: str = ""
    window: int = 128_000
    max_output: int = 8_192
    limit_known: bool = True
    vision: bool = False
    tools: bool = True
    thought_levels: tuple[ThoughtLevel, ...] = ()
    default_thought: ThoughtLevel | None = None
    reasoning: ReasoningControl = "none"
    price: Price | None = None
    later: tuple[tuple[str, Price], ...] = ()
    tool_dialect: ToolDialect | None = None
    temperature: float | None = None
    search: WebSearch | None = None  # by the provider

    @property
    def output_limit(self) -> int | None:
        """Return the output limit to request, in tokens, or None if the model's is unknown."""
        unknown = not self.limit_known and self.max_output >= RESERVED_OUTPUT
        return None if unknown else min(self.max_output, MAX_ANSWER)

    @property
    def ref(self) -> str:
        """Return the name by which users and sessions select the model: `provider/id`."""
        return f"{self.provider}/{self.id}"

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of a request in US dollars, or None if the price is unknown.

        Tokens read from or written to the cache cost as much as input unless they have their own
        price. Reasoning is part of the output, as all providers bill it.
        """
        price = price_on(today(), self.later) or self.price  # an agent may run for weeks
        if price is None:
            return None
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        uncached = max(0, usage.input - usage.cache_read - usage.cache_write)
        input_cost = uncached * price.input + usage.cache_read * read + usage.cache_write * write
        output_cost = usage.output * price.output
        if price.long_above is not None and usage.input > price.long_above:
            input_cost, output_cost = input_cost * price.long_input, output_cost * price.long_output
        search_cost = usage.searches * self.search.price if self.search else 0.0
        return (input_cost + output_cost) / 1_000_000 + search_cost / 1_000


class UserText(Struct, frozen=True, tag_field="kind", tag="text", gc=False):
    """Text from the user's side."""

    text: str


class UserImage(Struct, frozen=True, tag_field="kind", tag="image", gc=False):
    """A picture from the user's side."""

    image: ImageBlock


class ToolResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_result", gc=False):
    """The result of a tool call."""

    call: CallId
    text: str
    failed: bool = False
    images: tuple[ImageBlock, ...] = ()


class UserSide(Struct, frozen=True, tag_field="role", tag="user", gc=False):
    """A message to the model. Results come first, in the order of their calls."""

    parts: tuple[UserText | UserImage | ToolResult, ...]


class AnswerText(Struct, frozen=True, tag_field="kind", tag="answer_text", gc=False):
    """Text from the model."""

    text: str


class AnswerThought(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer_thought", gc=False
):
    """Reasoning from the model; a driver sends it back only to the same `provider`."""

    text: str
    provider: str = ""
    provider_data: JsonObject | None = None


class AnswerCall(Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer_call", gc=False):
    """A tool call from the model; `arguments` is JSON text and may be invalid."""

    call: CallId
    name: str
    arguments: str
    provider_data: JsonObject | None = None


class AnswerSearch(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer_search", gc=False
):
    """A search by the provider. `provider_data` is for its own driver; others send `text`."""

    text: str
    provider: str = ""
    provider_data: JsonObject | None = None


AnswerPart = AnswerText | AnswerThought | AnswerCall | AnswerSearch


class ModelSide(Struct, frozen=True, tag_field="role", tag="model", gc=False):
    """An answer from the model, with its parts in order of arrival."""

    parts: tuple[AnswerPart, ...]


Message = UserSide | ModelSide


class ModelRequest(Struct, frozen=True, kw_only=True):
    """A request to a model. Requests of one `session` share a prefix in the provider's cache."""

    model: ModelInfo
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    thought_level: ThoughtLevel | None = None
    session: str = ""
    web_search: bool = False  # by the provider, during the answer
    answer_schema: JsonObject | None = None  # restricts the answer, if the API supports that


class TextDelta(Struct, frozen=True):
    """A piece of text."""

    text: str


class ThoughtDelta(Struct, frozen=True):
    """A piece of reasoning."""

    text: str


class ThoughtDone(Struct, frozen=True):
    """The end of a block of reasoning; `provider_data` must be sent back with it."""

    provider_data: JsonObject


class CallStarted(Struct, frozen=True, kw_only=True):
    """The start of a tool call; `index` identifies the call within its answer."""

    index: int
    name: str


class CallDelta(Struct, frozen=True, kw_only=True):
    """A piece of a call's arguments, as JSON text."""

    index: int
    text: str


class CallDone(Struct, frozen=True, kw_only=True):
    """A complete call: its name and all its arguments (`{}` if the model gave none).

    Every call of an answer is completed before `Finished`, in the order in which the calls started.
    A call that `max_tokens` cut off ends with `CallCut` instead.
    """

    index: int
    name: str
    arguments: str
    provider_data: JsonObject | None = None


class CallCut(Struct, frozen=True, kw_only=True):
    """A call that `max_tokens` cut off after `size` characters of arguments; it does not run."""

    index: int
    name: str
    size: int


class Source(Struct, frozen=True):
    """A web page that a search found or an answer cites."""

    url: str
    title: str = ""


class SearchStarted(Struct, frozen=True, kw_only=True):
    """The start of a web search by the provider; `search` identifies it within its answer."""

    search: str
    query: str = ""


class SearchEnded(Struct, frozen=True, kw_only=True):
    """The end of a web search by the provider; `error` is the provider's reason for a failure.

    `provider_data` must be sent back to the provider. All searches end before `Finished`.
    """

    search: str
    query: str = ""
    sources: tuple[Source, ...] = ()
    error: str = ""
    provider_data: JsonObject


class Cited(Struct, frozen=True):
    """Pages that the answer cites."""

    sources: tuple[Source, ...]


class Retrying(Struct, frozen=True, kw_only=True):
    """A temporary failure; the request is sent again after `delay` seconds.

    `discard` is true if the failed attempt has streamed anything. That is not part of the answer.
    """

    attempt: int
    attempts: int
    delay: float
    reason: str
    discard: bool = False


class Finished(Struct, frozen=True, kw_only=True):
    """The end of a complete answer.

    The stop reason `paused` means that the provider expects the same request again, with this
    answer at its end. `why` is set if the provider refused, instead of the model in its text: it is
    the API's code for the reason and its explanation.
    """

    stop: Literal["end_turn", "tool_calls", "max_tokens", "paused", "refusal"]
    why: str = ""
    usage: Usage = Usage()


class Failed(Struct, frozen=True, kw_only=True):
    """The failure of a request. `message` is one line for the user: status, provider, what to do.

    The kind `refused` means that the provider refused the content of the request. Drivers report
    this as an answer that ends with a refusal. `unreachable` is true if no connection could be
    opened, because it was refused or the host name has no address.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | None = None
    unreachable: bool = False


class FellBack(Struct, frozen=True, kw_only=True):
    """The selected model is unavailable; the events that follow are the answer of `model`."""

    model: ModelInfo
    reason: str


# A separate `Usage` is the provider's count so far, in case the attempt does not finish. `Finished`
# has the final count.
StreamEvent = (
    Usage
    | TextDelta
    | ThoughtDelta
    | ThoughtDone
    | CallStarted
    | CallDelta
    | CallDone
    | CallCut
    | SearchStarted
    | SearchEnded
    | Cited
    | Retrying
    | FellBack
    | Finished
    | Failed
)


class Driver(Protocol):
    """A client of one provider. There is one per provider and process, shared by all sessions."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Send a request and yield batches of events. Closing the iterator closes the response.

        An empty batch means that the model is still working.
        """

    async def connect(self) -> None:
        """Open a connection before the first request, if possible. Sends no key; never raises."""

    async def aclose(self) -> None:
        """Close every connection."""
