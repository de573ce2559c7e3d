"""What a scripted model answers: steps of a stream, errors, and the ways in which it breaks."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct, field

from acp_agent.events import Usage


class Text(Struct, frozen=True):
    """A piece of the answer's text."""

    text: str


class Thought(Struct, frozen=True):
    """A piece of reasoning. `signature` ends Anthropic's block."""

    text: str
    signature: str = ""


class Redacted(Struct, frozen=True):
    """A block of reasoning that Anthropic shows nobody. OpenAI's stream leaves it out."""

    data: str


class Refusal(Struct, frozen=True):
    """A piece of a refusal, in the words that the Responses API has for it. Others leave it out."""

    text: str


class Call(Struct, frozen=True):
    """A whole tool call, its arguments (an object, or JSON text as it is) sent in `pieces`."""

    name: str
    arguments: Mapping[str, Any] | str = ""
    id: str | None = None
    pieces: int = 1


class CallStart(Struct, frozen=True):
    """The start of call `index`, for calls that come in pieces or interleaved."""

    index: int
    name: str
    id: str | None = None


class CallPiece(Struct, frozen=True):
    """A piece of the arguments of call `index`."""

    index: int
    text: str


class Search(Struct, frozen=True):
    """A search of the web that the provider runs; `pages` are titles and addresses.

    Without `ended` its result is missing; without `began` it is the result alone, as after a pause.
    """

    query: str
    pages: Sequence[tuple[str, str]] = ()
    began: bool = True
    ended: bool = True


class Cite(Struct, frozen=True):
    """The text before it cites a page. Chat completions and Anthropic say so with a delta."""

    title: str
    url: str


class Raw(Struct, frozen=True):
    """Bytes of the event stream as they are: malformed events, comments, anything."""

    data: bytes


class Pause(Struct, frozen=True):
    """Nothing for some seconds."""

    seconds: float


class Cut(Struct, frozen=True):
    """The connection breaks here. `within` bytes of the next event are sent before."""

    within: bytes = b""


class Stall:
    """Nothing until `release()`, which any thread may call. `reached` is set when it begins."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self._released = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._early = False

    def release(self) -> None:
        """Let the stream go on."""
        self._early = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._released.set)

    async def wait(self) -> None:
        """Wait for the release; the server calls it."""
        self._loop = asyncio.get_running_loop()
        self.reached.set()
        if not self._early:
            await self._released.wait()


Step = (
    Text
    | Thought
    | Redacted
    | Refusal
    | Call
    | CallStart
    | CallPiece
    | Search
    | Cite
    | Raw
    | Pause
    | Cut
    | Stall
)


class Answer(Struct, frozen=True, kw_only=True):
    """A streamed answer.

    `stop` is the provider's own word, None: the usual one. `write_size` splits the stream into
    writes of so many bytes, wherever that cuts. `reasoning_field` is where an OpenAI-compatible
    service puts its reasoning. `late_end` holds back the end of the HTTP body, which comes after
    the answer's, for so many seconds. `ended` False leaves out everything that ends an answer.
    `phase` is what the Responses API says of its messages.
    """

    steps: Sequence[Step]
    usage: Usage | None = field(default_factory=lambda: Usage(input=10, output=5))
    stop: str | None = None
    write_size: int | None = None
    reasoning_field: str = "reasoning_content"
    phase: str | None = None
    ended: bool = True
    late_end: float = 0.0


class Status(Struct, frozen=True, kw_only=True):
    """An HTTP error. `body` None: the error object of the API that was called.

    Nothing at all is answered before `hold` is released.
    """

    code: int
    message: str = "scripted failure"
    kind: str = "scripted_error"
    headers: Mapping[str, str] = {}
    body: bytes | None = None
    hold: Stall | None = None


class Drop(Struct, frozen=True):
    """The connection closes before a byte is answered."""


Reply = Answer | Status | Drop


def pieces_of(call: Call) -> list[str]:
    """The arguments of a call as JSON text, in as many pieces as it asks for."""
    given = call.arguments
    text = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    size = max(1, -(-len(text) // call.pieces))
    return [text[at : at + size] for at in range(0, len(text), size)]


def answer(*steps: Step | str, **options: Any) -> Answer:
    """An `Answer` of `steps`; a plain string is a piece of text. `options` are Answer's fields."""
    return Answer(steps=[Text(s) if isinstance(s, str) else s for s in steps], **options)
