"""Reads a streamed answer of the Gemini API: responses, each with the parts that are new.

https://ai.google.dev/api/generate-content#v1beta.GenerateContentResponse
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import Struct

from acp_agent.content import JsonObject
from acp_agent.events import Usage
from acp_agent.models import failures
from acp_agent.models.base import (
    CallDelta,
    CallDone,
    CallStarted,
    Finished,
    StreamEvent,
    TextDelta,
    ThoughtDelta,
    ThoughtDone,
)
from acp_agent.models.providers import Provider
from acp_agent.models.stream_events import counted, event_decoder


class _FunctionCall(Struct):
    id: str | None = None
    name: str | None = None
    args: msgspec.Raw = msgspec.Raw(b"{}")


class _Part(Struct, rename="camel"):
    text: str | None = None
    thought: bool | None = None
    thought_signature: str | None = None
    function_call: _FunctionCall | None = None


class _Content(Struct):
    parts: list[_Part] | None = None


class _Candidate(Struct, rename="camel"):
    content: _Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class _Usage(Struct, rename="camel"):
    prompt_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None


class _Feedback(Struct, rename="camel"):
    block_reason: str | None = None
    block_reason_message: str | None = None


class _Response(Struct, rename="camel"):
    candidates: list[_Candidate] | None = None
    usage_metadata: _Usage | None = None
    prompt_feedback: _Feedback | None = None
    error: JsonObject | None = None


_decode_response = event_decoder(_Response)

_LENGTH = {"MAX_TOKENS", "CONTINUATION"}
# The model's side broke; the same request may well succeed.
_BROKEN = {
    "MALFORMED_FUNCTION_CALL", "MALFORMED_RESPONSE", "UNEXPECTED_TOOL_CALL",
    "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "OTHER",
}  # fmt: skip
_USUAL = {"STOP", "FINISH_REASON_UNSPECIFIED"}


class GeminiDecoder:
    """One answer."""

    def __init__(self, provider: Provider, model: str) -> None:
        self.ended = False
        self._provider = provider
        self._model = model
        self._calls: list[CallDone] = []
        self._finish: str | None = None
        self._detail = ""
        self._blocked: str | None = None
        self._usage = Usage()
        self._failed: StreamEvent | None = None

    @property
    def answered(self) -> bool:
        """Whether the API has said how the answer ended."""
        return self._finish is not None

    @property
    def usage(self) -> Usage:
        """What the API has counted so far."""
        return self._usage

    def feed(self, data: bytes, events: list[StreamEvent]) -> None:
        """Append what one response says.

        Raises:
            msgspec.DecodeError: it cannot be read.
        """
        response = _decode_response(data)
        if response.error is not None:
            self._failed = failures.from_event(self._provider, response.error, model=self._model)
            self.ended = True
            return
        if response.usage_metadata is not None:
            self._usage = _usage(response.usage_metadata)
        if response.prompt_feedback is not None and response.prompt_feedback.block_reason:
            self._blocked = response.prompt_feedback.block_reason
            self._detail = response.prompt_feedback.block_reason_message or ""
        for candidate in (response.candidates or ())[:1]:
            for part in (candidate.content or _Content()).parts or ():
                self._part(part, events)
            if candidate.finish_reason:
                self._finish = candidate.finish_reason
                self._detail = candidate.finish_message or self._detail

    def end(self) -> list[StreamEvent]:
        """The last events of the answer."""
        if self._failed is not None:
            return [self._failed]
        if self._finish is None and self._blocked is None:
            return [failures.cut(self._provider.name)]
        if self._finish in _BROKEN:
            what = f"the answer ended with {self._finish}"
            return [failures.malformed(self._provider, what)]
        stop = self._stop()
        why = f"{self._finish or self._blocked or 'refusal'}. {self._detail}"
        finished = Finished(
            stop=stop, why=why.strip() if stop == "refusal" else "", usage=self._usage
        )
        return [*self._calls, finished]

    def _stop(self) -> Literal["end_turn", "tool_calls", "max_tokens", "refusal"]:
        if self._finish in _LENGTH:
            return "max_tokens"
        if self._finish is None or self._finish not in _USUAL:
            return "refusal"  # SAFETY, RECITATION, PROHIBITED_CONTENT and the like
        return "tool_calls" if self._calls else "end_turn"

    def _part(self, part: _Part, events: list[StreamEvent]) -> None:
        signature = part.thought_signature
        if part.function_call is not None:
            self._call(part.function_call, signature, events)
            return
        text = part.text or ""
        if text and part.thought:
            events.append(ThoughtDelta(text))
        elif text:
            events.append(TextDelta(text))
        if signature:  # also with no text at all
            # The model is kept beside it: a signature is taken back by the same model only.
            kind = "thought" if part.thought else "text"
            provider_data = {
                "part": kind,
                "length": len(text),
                "thoughtSignature": signature,
                "gemini": self._model,
            }
            events.append(ThoughtDone(provider_data))

    def _call(self, call: _FunctionCall, signature: str | None, events: list[StreamEvent]) -> None:
        """A call comes whole. It is told complete at the end, as the contract wants it."""
        index = len(self._calls)
        arguments = bytes(call.args).decode()
        if arguments == "null":
            arguments = "{}"
        provider_data: JsonObject = {"gemini": self._model}
        if signature is not None:
            provider_data["thoughtSignature"] = signature
        if call.id is not None:
            provider_data["id"] = call.id
        name = call.name or ""
        events.append(CallStarted(index=index, name=name))
        events.append(CallDelta(index=index, text=arguments))
        self._calls.append(
            CallDone(index=index, name=name, arguments=arguments, provider_data=provider_data)
        )


def _usage(given: _Usage) -> Usage:
    """Gemini counts thoughts beside the answer, and cached tokens within the prompt."""
    thoughts = given.thoughts_token_count or 0
    return counted(
        (given.prompt_token_count or 0) + (given.tool_use_prompt_token_count or 0),
        (given.candidates_token_count or 0) + thoughts,
        cache_read=given.cached_content_token_count,
        reasoning=thoughts,
    )
