"""The model of a replay: returns recorded answers and collects the requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from acp_agent.config.secrets import Secrets
from acp_agent.config.types import Config
from acp_agent.errors import InvalidInputError
from acp_agent.events import (
    AgentText,
    AgentThought,
    ThoughtEnded,
    Usage,
    UserMessage,
)
from acp_agent.ids import SessionId
from acp_agent.models.base import (
    CallCut,
    CallDone,
    Cited,
    Driver,
    Failed,
    Finished,
    Message,
    ModelInfo,
    ModelRequest,
    SearchEnded,
    SearchStarted,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
    UserText,
)
from acp_agent.models.providers import Provider
from acp_agent.models.registry import Models
from acp_agent.platform.decoding import convert
from acp_agent.replay.script import MAIN, Answer, End, Script

_NO_ANSWER = "The record has no answer to this request."
_STOPS = ("end_turn", "tool_calls", "max_tokens", "paused", "refusal")


class Observed(Struct, frozen=True, kw_only=True):
    """A request of the replay and the recorded answer; None if the record has no more answers."""

    session: SessionId  # of the record
    request: ModelRequest
    answer: Answer | None


class ReplayDriver(Driver):
    """A driver that answers from a script.

    Args:
        steer: sends a steering message like the recorded user.

    Attributes:
        observed: the requests of the replay, in order.
    """

    def __init__(
        self,
        script: Script,
        stop_turn: Callable[[], None],
        steer: Callable[[UserMessage], Awaitable[None]],
        end_background: Callable[[End], Awaitable[None]],
    ) -> None:
        self.observed: list[Observed] = []
        self.turn = 0
        self._script = script
        self._stop_turn = stop_turn
        self._steer = steer
        self._end_background = end_background
        self._sessions: dict[str, SessionId] = {}  # recorded session by session of the replay
        self._next_answer: dict[SessionId, int] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[Sequence[StreamEvent]]:
        """Yield the recorded answer."""
        if not request.session:
            for batch in self._side_answer():
                yield batch
            return
        session = self._session(request)
        answers, index = self._script.answers.get(session, []), self._next_answer.get(session, 0)
        if session == MAIN:  # a turn that differs does not affect the next
            index = max(index, sum(earlier_answer.turn < self.turn for earlier_answer in answers))
            answers = [
                earlier_answer for earlier_answer in answers if earlier_answer.turn <= self.turn
            ]
        self._next_answer[session] = index + 1
        for earlier in answers[:index]:  # includes calls that were refused
            for call in earlier.calls:
                call.used = True
        answer = answers[index] if index < len(answers) else None
        self.observed.append(Observed(session=session, request=request, answer=answer))
        if answer is None:
            yield [Failed(kind="bad_request", message=_NO_ANSWER)]
            return
        for piece in answer.pieces:
            if isinstance(piece, UserMessage):
                await self._steer(piece)
            else:
                yield [_piece_event(piece)]
            await asyncio.sleep(0)  # a real model allows the loop to run between two reads
        for batch in _batches(answer):
            yield batch
        for end in answer.ends:
            await self._end_background(end)
        if answer.stopped_turn:
            self._stop_turn()
            await asyncio.Event().wait()  # until the turn is cancelled
        yield [_end_event(answer)]

    async def connect(self) -> None:
        """Do nothing; there is no network."""

    async def aclose(self) -> None:
        """Do nothing; nothing is open."""

    def continue_in(self, session: SessionId) -> None:
        """Treat a fork as the recorded session."""
        self._sessions[session] = MAIN

    def _session(self, request: ModelRequest) -> SessionId:
        """Return the recorded session that matches the session of a request.

        A child is identified by its task, since several children may begin in any order.
        """
        session = request.session
        if session not in self._sessions:
            used_sessions = set(self._sessions.values())
            children = {
                child_session: _first_text(answers[0].request.messages)
                for child_session, answers in self._script.answers.items()
                if answers and child_session != MAIN and child_session not in used_sessions
            }
            task = _first_text(request.messages)
            same_task = [child_session for child_session, text in children.items() if text == task]
            child = next(iter([*same_task, *children]), SessionId(session))
            self._sessions[session] = child if used_sessions else MAIN
        return self._sessions[session]

    def _side_answer(self) -> list[Sequence[StreamEvent]]:
        answers = self._script.side_answers
        answer = answers.popleft() if answers else ""
        if not answer:
            return [[Failed(kind="bad_request", message=_NO_ANSWER)]]
        if isinstance(answer, Failed):
            return [[answer]]
        return [[TextDelta(answer)], [Finished(stop="end_turn")]]


def _first_text(messages: Sequence[Message]) -> str:
    """Return the first text in the first message."""
    blocks = messages[0].parts if messages else ()
    return next((block.text for block in blocks if isinstance(block, UserText)), "")


def _piece_event(
    piece: AgentText | AgentThought | ThoughtEnded | SearchStarted | SearchEnded | Cited,
) -> StreamEvent:
    match piece:
        case SearchStarted() | SearchEnded() | Cited():
            return piece
        case AgentText():
            return TextDelta(piece.text)
        case AgentThought():
            return ThoughtDelta(piece.text)
        case _:
            return ThoughtDone(piece.provider_data)


def _batches(answer: Answer) -> list[Sequence[StreamEvent]]:
    """Return the stream events that follow the text of an answer."""
    batches: list[Sequence[StreamEvent]] = []
    for index, call in enumerate(answer.calls):
        event = call.event
        batches.append(
            [
                CallDone(
                    index=index,
                    name=event.name,
                    arguments=event.arguments,
                    provider_data=event.provider_data,
                )
            ]
        )
    if answer.end is not None and answer.end.cut is not None:
        name, size = answer.end.cut
        batches.append([CallCut(index=len(answer.calls), name=name, size=size)])
    if answer.end is not None and not answer.end.complete and answer.end.usage:
        batches.append([answer.end.usage])
    return batches


def _end_event(answer: Answer) -> Finished | Failed:
    end = answer.end
    if end is not None and not end.complete:
        kind = "connection" if answer.stop == "unreachable" else answer.stop
        fields = {
            "kind": "bad_request" if kind in {*_STOPS, ""} else kind,
            "message": answer.failure or "The request failed.",
            "unreachable": answer.stop == "unreachable",
            "retry_after": 0.0,  # a replay does not wait
        }
        return convert(fields, Failed)
    usage = Usage() if end is None else end.usage
    stop = answer.stop if answer.stop in _STOPS else "end_turn"
    return convert({"stop": stop, "usage": msgspec.to_builtins(usage)}, Finished)


class ReplayModels(Models):
    """The models of a record, all with the same driver.

    Args:
        fallbacks: the names of models to use if another is unavailable.
    """

    def __init__(
        self,
        config: Config,
        secrets: Secrets,
        environ: Mapping[str, str],
        *,
        models: Sequence[ModelInfo],
        fallbacks: Sequence[str],
        driver: Driver,
    ) -> None:
        super().__init__(config, secrets, environ)
        self._models = {info.ref: info for info in models}
        self._fallbacks = [self._models[ref] for ref in fallbacks if ref in self._models]
        self._start = config.model or next(iter(self._models), "")
        self._driver = driver

    def available(self) -> list[ModelInfo]:
        """Return the models of the record."""
        return list(self._models.values())

    def resolve(self, ref: str) -> ModelInfo:
        """Return a model of the record; see `Models.resolve`."""
        info = self._models.get(ref)
        if info is None:
            raise InvalidInputError(f"the record has no model {ref!r}", field="model")
        return info

    async def choose(self, flag: str | None, stored: str | None) -> ModelInfo:
        """Return the stored model, or the record's first; see `Models.choose`."""
        return self.resolve(flag or stored or self._start)

    def require(self, info: ModelInfo) -> Provider:
        """Return a provider that needs no key and gets no requests; see `Models.require`."""
        return Provider(
            id=info.provider, name=info.provider, api="demo", base_url="", key_required=False
        )

    def provider(self, info: ModelInfo) -> Provider | None:
        """Return the provider; see `require`."""
        return self.require(info)

    def catalog_small_model(self, provider: str) -> ModelInfo | None:
        """Return None: the session's own model does side tasks."""
        del provider
        return None

    def fallbacks(self, info: ModelInfo) -> list[ModelInfo]:
        """Return the models to use if `info` is unavailable; see `Models.fallbacks`."""
        return [fallback for fallback in self._fallbacks if fallback.ref != info.ref]

    def driver(self, info: ModelInfo) -> Driver:
        """Return the driver of the replay."""
        del info
        return self._driver

    def cached_driver(self, info: ModelInfo) -> Driver | None:
        """Return the driver of the replay."""
        return self.driver(info)


def without_prices(info: ModelInfo) -> ModelInfo:
    """Return a model without its prices, which change and are not compared."""
    return replace(info, price=None, later=(), search=None, tool_dialect=None)
