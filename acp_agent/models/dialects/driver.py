"""Models that write tool calls as text: the dialects by name, and a driver around any driver."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Protocol

from msgspec import structs

from acp_agent.models.base import (
    Driver,
    Failed,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
)
from acp_agent.models.dialects.fenced_forms import Action, Fenced
from acp_agent.models.dialects.form import CallReader
from acp_agent.models.dialects.gemma import Gemma
from acp_agent.models.dialects.harmony import Harmony
from acp_agent.models.dialects.json_forms import Hermes, Llama, Mistral, Tagged
from acp_agent.models.dialects.named_tags import NamedTags
from acp_agent.models.dialects.token_calls import DeepSeek, Kimi
from acp_agent.models.dialects.xml_forms import Glm, Invoke, MiniMax, QwenCoder
from acp_agent.models.dialects.xml_token_forms import Dsml, KimiK3

FORMS: Mapping[str, CallReader] = {
    "hermes": Hermes(),
    "qwen_coder": QwenCoder(),
    "glm": Glm(),
    "invoke": Invoke(),
    "minimax": MiniMax(),
    "deepseek": DeepSeek(),
    "dsml": Dsml(),
    "kimi": Kimi(),
    "kimi_k3": KimiK3(),
    "mistral": Mistral(),
    "llama": Llama(),
    "harmony": Harmony(),
    "fenced": Fenced(),
    "action": Action(),
    "tagged": Tagged(),
    "gemma": Gemma(),
}
# What is looked for in an answer of any model: the dialects, and a form that no prompt describes.
READERS: tuple[CallReader, ...] = (*FORMS.values(), NamedTags())


def select_forms(dialect: str) -> tuple[CallReader, ...]:
    """Return the forms to look for in an answer: the dialect's own, or all for `auto`."""
    return tuple(FORMS.values()) if dialect == "auto" else (FORMS[dialect],)


# The driver around any driver.
#
# A scanner extracts calls and reasoning from the text of the model. If the model's API does not
# support tools, then tools, calls and results are written into the conversation as text.


class AnswerReader(Protocol):
    """Extracts the calls from the text of one answer."""

    calls: int

    def feed(self, text: str) -> list[StreamEvent]:
        """Add a piece of the text; return the events that are certain now."""

    def end(self, *, cut: bool = False) -> list[StreamEvent]:
        """Return the last events; `cut` is true if the answer reached its token limit."""


class DialectDriver:
    """A `Driver` for models with a dialect; answers of other models are not changed."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent]]:
        """Ask the model. Closing the iterator closes the HTTP response at once."""
        prepared_request, reader = _prepare(request)
        stream = self._driver.stream(prepared_request)
        try:
            async for batch in stream:
                # An empty batch means that the model is working on a long call.
                yield _extract_calls(batch, reader) if reader is not None else batch
        finally:
            if isinstance(stream, AsyncGenerator):
                await stream.aclose()

    async def connect(self) -> None:
        """Open a connection before the first request; see `Driver`."""
        await self._driver.connect()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._driver.aclose()


def _prepare(request: ModelRequest) -> tuple[ModelRequest, AnswerReader | None]:
    dialect = request.model.tool_dialect
    if dialect is None:
        return request, None
    from acp_agent.models.dialects.form import Tools  # noqa: PLC0415 - for such models alone

    tools = Tools(request.tools)
    if dialect == "constrained":
        from acp_agent.models.dialects import constrained  # noqa: PLC0415 - likewise

        if not request.tools:
            return request, None
        return constrained.add_answer_schema(request), constrained.Reader(tools)
    from acp_agent.models.dialects.constrained import without_tools  # noqa: PLC0415 - likewise
    from acp_agent.models.dialects.scanner import Scanner  # noqa: PLC0415 - likewise
    from acp_agent.models.dialects.writers import writer  # noqa: PLC0415 - likewise

    if not request.model.tools:
        request = without_tools(request, writer(dialect))
    return request, Scanner(select_forms(dialect), tools)


def _extract_calls(batch: Sequence[StreamEvent], reader: AnswerReader) -> list[StreamEvent]:
    """Return the batch with the calls extracted from its text."""
    events: list[StreamEvent] = []
    text_pieces: list[str] = []
    for event in batch:
        if isinstance(event, TextDelta):
            text_pieces.append(event.text)
            continue
        if text_pieces:
            events.extend(reader.feed("".join(text_pieces)))
            text_pieces.clear()
        match event:
            case Finished():
                events.extend(reader.end(cut=event.stop == "max_tokens"))
                called = reader.calls and event.stop == "end_turn"
                events.append(structs.replace(event, stop="tool_calls") if called else event)
            case Failed():
                events.extend(reader.end(cut=True))
                events.append(event)
            case _:
                events.append(event)
    if text_pieces:
        events.extend(reader.feed("".join(text_pieces)))
    return events
