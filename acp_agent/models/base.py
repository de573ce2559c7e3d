"""The contract between the turn and a model, the same for every provider.

A turn hands a driver a `ModelRequest` and reads batches of `StreamEvent`s. A stream never raises
into the turn: its last event is `Finished` or `Failed`, and nothing follows it. A batch holds all
that one read of the socket gave, so that a fast stream costs one journal write a read, not one a
word. Messages are trees, and a session has thousands: the collector need not look at them (`gc`).
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

# How a model is told how much to reason. OpenAI's chat API and its relatives: `effort` is
# `reasoning_effort`, `toggle` is `thinking.type`, `toggle_effort` both, `flag` is
# `enable_thinking`, `router` is OpenRouter's `reasoning`. Anthropic's: `budget` gives a number of
# tokens, `adaptive` an effort, and `between_tools` is `adaptive` with that word for "off".
# Gemini's: `thinking_level` gives a level, `thinking_budget` a number of tokens.
ReasoningControl = Literal[
    "none", "effort", "toggle", "toggle_effort", "flag", "router",
    "budget", "adaptive", "between_tools", "thinking_level", "thinking_budget",
]  # fmt: skip

# How a model writes its tool calls where its API does not take them: `acp_agent.models.dialects`.
# `auto` looks for all forms; `constrained` has the answer held to a JSON Schema.
ToolDialect = Literal[
    "auto", "constrained", "deepseek", "dsml", "fenced", "glm", "harmony", "hermes", "invoke",
    "kimi", "kimi_k3", "llama", "minimax", "mistral", "qwen_coder",
]  # fmt: skip

MAX_ANSWER = 64_000  # tokens; more than an agent's step needs, less than services refuse
RESERVED_OUTPUT = 32_000  # tokens for the answer of a model whose limit is unknown


class Price(Struct, frozen=True, kw_only=True):
    """US dollars for a million tokens.

    Where a request sends more than `long_above` tokens, those from a cache among them, everything
    it sends costs `long_input` times as much, and its whole answer `long_output` times as much.
    """

    input: float
    output: float
    cache_read: float | None = None
    cache_write: float | None = None
    long_above: int | None = None
    long_input: float = 1.0
    long_output: float = 1.0


def today() -> str:
    """Return the date by which prices change, YYYY-MM-DD."""
    return time.strftime("%Y-%m-%d", time.gmtime())


def price_on(day: str, later: Sequence[tuple[str, Price]]) -> Price | None:
    """Return the last of the announced prices that holds on a day."""
    begun = [(begin, index) for index, (begin, _) in enumerate(later) if begin <= day]
    return later[max(begun)[1]][1] if begun else None


class WebSearch(Struct, frozen=True, kw_only=True):
    """A provider's own search of the web; `price` is in US dollars for 1,000 searches."""

    price: float = 0.0
    beside_tools: bool = True  # in one request


class ModelInfo(Struct, frozen=True, kw_only=True):
    """What the catalog knows of a model. `id` is what the provider calls it.

    Where `limit_known` is false, `max_output` is only what is reserved for an answer. `tools` says
    whether its API takes tools, `tool_dialect` that it writes calls as text, and
    `temperature` what it is told, None where that is left to its provider. `later` are the prices
    that hold from a day on (YYYY-MM-DD), in the place of `price`.
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
        """Return the limit to ask for in tokens; None where the model's is unknown."""
        unknown = not self.limit_known and self.max_output >= RESERVED_OUTPUT
        return None if unknown else min(self.max_output, MAX_ANSWER)

    @property
    def ref(self) -> str:
        """The name by which users and sessions choose the model: `provider/id`."""
        return f"{self.provider}/{self.id}"

    def cost(self, usage: Usage) -> float | None:
        """Return the cost of a request in US dollars, None if the price is unknown.

        Tokens read from or written to the cache cost as much as input unless the price says
        otherwise. Reasoning is part of the output: every provider bills it so.
        """
        price = price_on(today(), self.later) or self.price  # an agent may run for weeks
        if price is None:
            return None
        read = price.input if price.cache_read is None else price.cache_read
        write = price.input if price.cache_write is None else price.cache_write
        plain = max(0, usage.input - usage.cache_read - usage.cache_write)
        sent = plain * price.input + usage.cache_read * read + usage.cache_write * write
        answered = usage.output * price.output
        if price.long_above is not None and usage.input > price.long_above:
            sent, answered = sent * price.long_input, answered * price.long_output
        searched = usage.searches * self.search.price if self.search else 0.0
        return (sent + answered) / 1_000_000 + searched / 1_000


class UserText(Struct, frozen=True, tag_field="kind", tag="text", gc=False):
    """Text that the user's side says."""

    text: str


class UserImage(Struct, frozen=True, tag_field="kind", tag="image", gc=False):
    """A picture that the user's side shows."""

    image: ImageBlock


class ToolResult(Struct, frozen=True, kw_only=True, tag_field="kind", tag="tool_result", gc=False):
    """What a call gave."""

    call: CallId
    text: str
    failed: bool = False
    images: tuple[ImageBlock, ...] = ()


class UserSide(Struct, frozen=True, tag_field="role", tag="user", gc=False):
    """A message to the model. Results come first, in the order of the calls they answer."""

    parts: tuple[UserText | UserImage | ToolResult, ...]


class AnswerText(Struct, frozen=True, tag_field="kind", tag="answer_text", gc=False):
    """Text that the model said."""

    text: str


class AnswerThought(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer_thought", gc=False
):
    """Reasoning of the model's; a driver sends it back only where `provider` is its own."""

    text: str
    provider: str = ""
    provider_data: JsonObject | None = None


class AnswerCall(Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer_call", gc=False):
    """A call that the model made; `arguments` is JSON text, not always valid."""

    call: CallId
    name: str
    arguments: str
    provider_data: JsonObject | None = None


class AnswerSearch(
    Struct, frozen=True, kw_only=True, tag_field="kind", tag="answer_search", gc=False
):
    """A search by the provider; other drivers than its own send `text` and no `provider_data`."""

    text: str
    provider: str = ""
    provider_data: JsonObject | None = None


AnswerPart = AnswerText | AnswerThought | AnswerCall | AnswerSearch


class ModelSide(Struct, frozen=True, tag_field="role", tag="model", gc=False):
    """An answer of the model's, in the order in which it came."""

    parts: tuple[AnswerPart, ...]


Message = UserSide | ModelSide


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One request. `session` groups the requests that share a prefix, for the provider's cache."""

    model: ModelInfo
    system: str
    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    thought_level: ThoughtLevel | None = None
    session: str = ""
    web_search: bool = False  # by the provider, while it answers
    answer_schema: JsonObject | None = None  # what the answer is held to, where the API can do that


class TextDelta(Struct, frozen=True):
    """A piece of text."""

    text: str


class ThoughtDelta(Struct, frozen=True):
    """A piece of reasoning."""

    text: str


class ThoughtDone(Struct, frozen=True):
    """A block of reasoning ended; the provider wants `provider_data` back with it."""

    provider_data: JsonObject


class CallStarted(Struct, frozen=True, kw_only=True):
    """A tool call began; `index` tells the calls of one answer apart."""

    index: int
    name: str


class CallDelta(Struct, frozen=True, kw_only=True):
    """A piece of a call's arguments, as JSON text."""

    index: int
    text: str


class CallDone(Struct, frozen=True, kw_only=True):
    """A call is complete: its name and its whole arguments (`{}` where the model gave none).

    All of an answer's calls are told complete before `Finished`, in the order in which they began.
    One that `max_tokens` cut off is a `CallCut` instead.
    """

    index: int
    name: str
    arguments: str
    provider_data: JsonObject | None = None


class CallCut(Struct, frozen=True, kw_only=True):
    """A call that `max_tokens` cut off after `size` characters of its arguments; never run."""

    index: int
    name: str
    size: int


class Source(Struct, frozen=True):
    """A web page that a search found or an answer cites."""

    url: str
    title: str = ""


class SearchStarted(Struct, frozen=True, kw_only=True):
    """The provider searches the web; `search` tells the searches of one answer apart."""

    search: str
    query: str = ""


class SearchEnded(Struct, frozen=True, kw_only=True):
    """A search of the provider's ended; `error` is its word for why it failed.

    The provider wants `provider_data` back. All searches end before `Finished`.
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
    """The attempt failed in passing and is made again after `delay` seconds.

    `discard` says that something of the failed attempt had been streamed already; it is not part
    of the answer that follows.
    """

    attempt: int
    attempts: int
    delay: float
    reason: str
    discard: bool = False


class Finished(Struct, frozen=True, kw_only=True):
    """The answer is complete.

    `paused`: the provider wants the same request again, with this answer at its end.
    `why`: where the provider refused, and not the model in words of its own, what the API says to
    that: its own word for it, and its explanation.
    """

    stop: Literal["end_turn", "tool_calls", "max_tokens", "paused", "refusal"]
    why: str = ""
    usage: Usage = Usage()


FailureKind = Literal[
    "connection", "timeout", "rate_limit", "overloaded", "server", "malformed",
    "auth", "overflow", "bad_request", "refused", "not_found", "quota",
]  # fmt: skip


class Failed(Struct, frozen=True, kw_only=True):
    """The request failed. `message` is one line for the user: status, provider, what to do.

    `refused`: for what it says. Drivers tell that as an answer that ends with a refusal.
    `unreachable`: no connection was made: it was refused, or the name has no address.
    """

    kind: FailureKind
    message: str
    status: int | None = None
    retry_after: float | None = None
    unreachable: bool = False


class FellBack(Struct, frozen=True, kw_only=True):
    """The model cannot be had at the moment; what follows is the answer of `model` instead."""

    model: ModelInfo
    reason: str


# A `Usage` by itself is what the provider has counted so far of an attempt that may not come to its
# end. `Finished` has the last count.
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
    """A way to reach one provider. Made once per provider and process, shared by its sessions."""

    def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once.

        An empty batch says that the model is still at work.
        """
        ...

    async def connect(self) -> None:
        """Open a connection before the first request, if possible. Sends no key; never raises."""
        ...

    async def aclose(self) -> None:
        """Close every connection."""
        ...
