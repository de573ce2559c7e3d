"""How the Gemini API writes a scripted answer: one response an event, with the parts that are new.

A call's arguments come whole, however many pieces the script gives them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from acp_agent.events import Usage
from tests.support.model_script import (
    Answer,
    Call,
    CallPiece,
    CallStart,
    Cite,
    Redacted,
    Search,
    Step,
    Text,
    Thought,
    pieces_of,
)


class GeminiWriter:
    """One answer. `Thought.signature` signs the next call, or the text that ends the answer."""

    def __init__(self, answered: Answer, request: Mapping[str, Any]) -> None:
        self._functions = any("functionDeclarations" in one for one in request.get("tools", ()))
        self._grounding: dict[str, Any] = {}
        self._answer = answered
        self._signature = ""
        self._calls: dict[int, tuple[CallStart, list[str]]] = {}
        self._called = False

    def _event(self, parts: list[dict[str, Any]], **more: Any) -> bytes:
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0, **more}
        return self._response({"candidates": [candidate]})

    def _response(self, body: dict[str, Any]) -> bytes:
        given = self._answer.usage or Usage()
        usage = {
            "promptTokenCount": given.input,
            "candidatesTokenCount": given.output - given.reasoning,
            "thoughtsTokenCount": given.reasoning,
            "cachedContentTokenCount": given.cache_read,
            "totalTokenCount": given.input + given.output,
        }
        body = {**body, "usageMetadata": usage, "modelVersion": "m", "responseId": "r1"}
        return b"data: " + json.dumps(body, ensure_ascii=False).encode() + b"\r\n\r\n"

    def begin(self) -> Iterator[bytes]:
        yield from ()

    def _signed(self, part: dict[str, Any]) -> dict[str, Any]:
        signature, self._signature = self._signature, ""
        return {**part, "thoughtSignature": signature} if signature else part

    def step(self, step: Step) -> Iterator[bytes]:
        match step:
            case Text(text):
                yield self._event([{"text": text}])
            case Thought(text, signature):
                self._signature = signature or self._signature
                if text:
                    yield self._event([{"text": text, "thought": True}])
            case Redacted(data):
                self._signature = data
            case Call():
                yield self._call(step.name, step.id, "".join(pieces_of(step)))
            case CallStart():
                self._calls[step.index] = (step, [])
            case CallPiece(number, text):
                self._calls[number][1].append(text)
            case Search(query):
                name = {"toolType": "GOOGLE_SEARCH_WEB", "id": f"search_{query}"}
                if self._functions:  # else the grounding at the end is all there is of it
                    call = {"toolCall": {**name, "args": {"queries": [query]}}}
                    yield self._event([{**call, "thoughtSignature": f"signed {query}"}])
                    found = {"toolResponse": {**name, "response": {"search_suggestions": "<b>"}}}
                    yield self._event([{**found, "thoughtSignature": f"answered {query}"}])
                self._grounding.setdefault("webSearchQueries", []).append(query)
                for title, url in step.pages:
                    yield from self.step(Cite(title, url))
            case Cite(title, url):
                chunk = {"web": {"uri": url, "title": title}}
                self._grounding.setdefault("groundingChunks", []).append(chunk)
            case _:
                pass

    def _call(self, name: str, id_: str | None, arguments: str) -> bytes:
        self._called = True
        function: dict[str, Any] = {"name": name, "args": json.loads(arguments or "{}")}
        if id_ is not None:
            function["id"] = id_
        return self._event([self._signed({"functionCall": function})])

    def end(self) -> Iterator[bytes]:
        for started, pieces in self._calls.values():
            yield self._call(started.name, started.id, "".join(pieces))
        last = [self._signed({"text": ""})] if self._signature else []
        more = {"groundingMetadata": self._grounding} if self._grounding else {}
        yield self._event(last, finishReason=self._answer.stop or "STOP", **more)
