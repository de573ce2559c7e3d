"""A model in the test's own process that counts what it is sent, and refuses what is too long.

It counts in its own way, not in ours: pieces of words of up to five letters, and single signs.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

from acp_agent.events import Usage
from acp_agent.models.base import (
    CallDone,
    Failed,
    Finished,
    ModelRequest,
    StreamEvent,
    TextDelta,
    ToolResult,
    UserSide,
    UserText,
)
from acp_agent.models.openai_request import body
from acp_agent.models.providers import Provider
from tests.support.open_session import Desk

PROVIDER = Provider(id="openai", name="OpenAI", api="openai", base_url="")
_TOKENS = re.compile(r"\w{1,5}|[^\w\s]")

Answering = Callable[[ModelRequest], str | CallDone | list[CallDone] | Failed]


class CountingModel:
    """A `Driver` with a window; `answering` says what it answers, `summing` how it sums up."""

    def __init__(self, window: int, answering: Answering) -> None:
        self.window = window
        self.answering = answering
        self.summing: Answering = lambda request: "## Task\nWhat the user asked for.\n## Done\nIt."
        self.bodies: list[bytes] = []  # of the requests of the conversation
        self.counts: list[int] = []
        self.summed_up: list[ModelRequest] = []
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        written = body(PROVIDER, request)
        count = len(_TOKENS.findall(written.decode()))
        aside = not request.tools
        if aside:
            self.summed_up.append(request)
        else:
            self.requests.append(request)
            self.bodies.append(written)
            self.counts.append(count)
        if count > self.window:
            yield [Failed(kind="overflow", message="The conversation is too long.", status=400)]
            return
        answer = self.summing(request) if aside else self.answering(request)
        if isinstance(answer, Failed):
            yield [answer]
            return
        if isinstance(answer, CallDone):
            yield [answer]
        elif isinstance(answer, list):
            yield answer
        else:
            yield [TextDelta(answer)]
        usage = Usage(input=count, output=30)
        yield [Finished(stop="end_turn", usage=usage)]

    async def aclose(self) -> None:
        """Nothing is open."""


def use(desk: Desk, model: CountingModel, monkeypatch: Any) -> CountingModel:
    """Let every request of a desk's sessions go to `model`."""
    monkeypatch.setattr(desk.services.models, "driver", lambda _: model)
    return model


def last_words(request: ModelRequest) -> str:
    """What the user's side said last; "" where that was a result."""
    last = request.messages[-1]
    assert isinstance(last, UserSide)
    return "\n".join(part.text for part in last.parts if isinstance(part, UserText))


def results(request: ModelRequest) -> list[ToolResult]:
    """The results that the last message holds."""
    last = request.messages[-1]
    return [part for part in last.parts if isinstance(part, ToolResult)]
