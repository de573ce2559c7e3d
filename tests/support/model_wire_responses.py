"""How OpenAI's Responses API writes a scripted answer as server-sent events.

Every event that the API sends around an item is there, so that the SDK's typed stream reads it.
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
    Refusal,
    Search,
    Step,
    Text,
    Thought,
    pieces_of,
)


class ResponsesWriter:
    """One answer. `Thought.signature` is the reasoning item's encrypted content."""

    def __init__(self, answered: Answer, request: Mapping[str, Any]) -> None:
        self._answer = answered
        self._model = str(request.get("model", "scripted"))
        self._number = 0
        self._output: list[dict[str, Any]] = []
        self._open: dict[str, Any] | None = None  # a message or reasoning that goes on
        self._text = ""
        self._calls: dict[int, int] = {}  # a call's number -> its place in the output
        self._open_calls: list[int] = []

    def _event(self, kind: str, **body: Any) -> bytes:
        body = {"type": kind, **body, "sequence_number": self._number}
        self._number += 1
        data = json.dumps(body, ensure_ascii=False).encode()
        return b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"

    def _response(self, status: str, **more: Any) -> dict[str, Any]:
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "model": self._model,
            "status": status, "output": self._output if status != "in_progress" else [],
            "error": None, "incomplete_details": None, "instructions": None, "metadata": {},
            "parallel_tool_calls": True, "temperature": 1.0, "tool_choice": "auto", "tools": [],
            "top_p": 1.0, "usage": None, **more,
        }  # fmt: skip

    def begin(self) -> Iterator[bytes]:
        yield self._event("response.created", response=self._response("in_progress"))
        yield self._event("response.in_progress", response=self._response("in_progress"))

    def _add(self, item: dict[str, Any]) -> bytes:
        self._output.append(item)
        place = len(self._output) - 1
        return self._event("response.output_item.added", output_index=place, item=dict(item))

    def _done(self, place: int) -> bytes:
        item = self._output[place]
        return self._event("response.output_item.done", output_index=place, item=item)

    def _at(self) -> dict[str, Any]:
        assert self._open is not None
        return {"item_id": self._open["id"], "output_index": len(self._output) - 1}

    def _begin(self, kind: str) -> Iterator[bytes]:
        """Let a message, a refusal or reasoning go on, or begin one."""
        if self._open is not None and self._open["kind"] == kind:
            return
        yield from self._close()
        name = f"{'rs' if kind == 'reasoning' else 'msg'}_{len(self._output)}"
        self._open = {"kind": kind, "id": name}
        self._text = ""
        if kind == "reasoning":
            yield self._add({"type": "reasoning", "id": name, "summary": []})
            part = {"type": "summary_text", "text": ""}
            yield self._event(
                "response.reasoning_summary_part.added", **self._at(), summary_index=0, part=part
            )
            return
        item = {"type": "message", "id": name, "role": "assistant", "status": "in_progress"}
        yield self._add({**item, "content": []})
        yield self._event(
            "response.content_part.added", **self._at(), content_index=0, part=self._part(kind)
        )

    def _part(self, kind: str) -> dict[str, Any]:
        if kind == "refusal":
            return {"type": "refusal", "refusal": self._text}
        return {"type": "output_text", "text": self._text, "annotations": [], "logprobs": []}

    def _close(self, encrypted: str | None = None) -> Iterator[bytes]:
        if self._open is None:
            return
        kind, at = self._open["kind"], self._at()
        item = self._output[-1]
        if kind == "reasoning":
            part = {"type": "summary_text", "text": self._text}
            told = {**at, "summary_index": 0}
            yield self._event("response.reasoning_summary_text.done", **told, text=self._text)
            yield self._event("response.reasoning_summary_part.done", **told, part=part)
            item["summary"] = [part] if self._text else []
            if encrypted is not None:
                item["encrypted_content"] = encrypted
        else:
            told = {**at, "content_index": 0}
            if kind == "refusal":
                yield self._event("response.refusal.done", **told, refusal=self._text)
            else:
                yield self._event("response.output_text.done", **told, text=self._text, logprobs=[])
            yield self._event("response.content_part.done", **told, part=self._part(kind))
            item.update(status="completed", content=[self._part(kind)])
            if self._answer.phase is not None:
                item["phase"] = self._answer.phase
        yield self._done(len(self._output) - 1)
        self._open = None

    def step(self, step: Step) -> Iterator[bytes]:
        match step:
            case Text(text):
                yield from self._begin("message")
                self._text += text
                yield self._event(
                    "response.output_text.delta",
                    **self._at(), content_index=0, delta=text, logprobs=[],
                )  # fmt: skip
            case Refusal(text):
                yield from self._begin("refusal")
                self._text += text
                yield self._event(
                    "response.refusal.delta", **self._at(), content_index=0, delta=text
                )
            case Thought(text, signature):
                yield from self._begin("reasoning")
                self._text += text
                if text:
                    yield self._event(
                        "response.reasoning_summary_text.delta",
                        **self._at(), summary_index=0, delta=text,
                    )  # fmt: skip
                if signature:
                    yield from self._close(signature)
            case Redacted(data):
                yield from self._begin("reasoning")
                yield from self._close(data)
            case Call():
                number = len(self._calls)
                yield from self.step(CallStart(number, step.name, step.id))
                for piece in pieces_of(step):
                    yield from self.step(CallPiece(number, piece))
                yield from self._end_call(number)
            case CallStart(number, name, id_):
                yield from self._close()
                self._calls[number] = len(self._output)
                self._open_calls.append(number)
                item = {"type": "function_call", "id": f"fc_{number}", "name": name}
                given = {"call_id": id_ or f"call_{number}", "arguments": ""}
                yield self._add({**item, **given, "status": "in_progress"})
            case CallPiece(number, text):
                item = self._output[self._calls[number]]
                item["arguments"] += text
                yield self._event(
                    "response.function_call_arguments.delta",
                    item_id=item["id"], output_index=self._calls[number], delta=text,
                )  # fmt: skip
            case Search():
                yield from self._search(step)
            case Cite(title, url):
                cited = {"type": "url_citation", "title": title, "url": url}
                yield self._event(
                    "response.output_text.annotation.added",
                    **self._at(), content_index=0, annotation_index=0,
                    annotation={**cited, "start_index": 0, "end_index": 1},
                )  # fmt: skip
            case _:
                pass

    def _search(self, search: Search) -> Iterator[bytes]:
        yield from self._close()
        place = len(self._output)
        name = f"ws_{place}"
        yield self._add({"type": "web_search_call", "id": name, "status": "in_progress"})
        for state in ("in_progress", "searching", "completed"):
            kind = f"response.web_search_call.{state}"
            yield self._event(kind, item_id=name, output_index=place)
        sources = [{"type": "url", "url": url} for _, url in search.pages]
        action = {"type": "search", "query": search.query, "sources": sources}
        self._output[place].update(status="completed" if sources else "failed", action=action)
        yield self._done(place)

    def _end_call(self, number: int) -> Iterator[bytes]:
        self._open_calls.remove(number)
        place = self._calls[number]
        item = self._output[place]
        item["status"] = "completed"
        yield self._event(
            "response.function_call_arguments.done",
            item_id=item["id"], output_index=place, name=item["name"], arguments=item["arguments"],
        )  # fmt: skip
        yield self._done(place)

    def end(self) -> Iterator[bytes]:
        yield from self._close()
        for number in list(self._open_calls):
            yield from self._end_call(number)
        given = self._answer.usage or Usage()
        usage = {
            "input_tokens": given.input,
            "input_tokens_details": {
                "cached_tokens": given.cache_read, "cache_write_tokens": given.cache_write,
            },
            "output_tokens": given.output,
            "output_tokens_details": {"reasoning_tokens": given.reasoning},
            "total_tokens": given.input + given.output,
        }  # fmt: skip
        stop = self._answer.stop or "completed"
        if stop == "completed":
            yield self._event("response.completed", response=self._response(stop, usage=usage))
            return
        details = {"reason": stop}
        response = self._response("incomplete", usage=usage, incomplete_details=details)
        yield self._event("response.incomplete", response=response)
