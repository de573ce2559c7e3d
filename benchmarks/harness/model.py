"""The scripted model of the corpus: answers each case's requests and records them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.cases import Api, Case, ModelAnswer, Step
from tests.support.model_server import (
    Call,
    Cut,
    Raw,
    Reply,
    Request,
    Status,
    Step as WireStep,
    Text,
    Thought,
    answer,
)

_CASE = re.compile(rb"\(case (\d+)\)")
_STOPS: Mapping[str, Mapping[Api, str]] = {
    "length": {
        "chat": "length",
        "responses": "max_output_tokens",
        "anthropic": "max_tokens",
        "gemini": "MAX_TOKENS",
    },
    "refusal": {
        "chat": "content_filter",
        "responses": "content_filter",
        "anthropic": "refusal",
        "gemini": "SAFETY",
    },
}


class Conversation:
    """One case as the model sees it: the answers that are left, and the requests."""

    def __init__(self, case: Case, api: Api, folder: Path, fill: Callable[[str], str]) -> None:
        self.bodies: list[Any] = []  # of the requests after the first read
        self._case = case
        self._api = api
        self._folder = folder
        self._fill = fill
        self._left = list(case.answers)
        self._reads = case.read is not None
        self.seen: list[str] = []  # what the model had read when its first answer was asked for

    def reply(self, body: Any) -> Reply:
        """Return the answer to the next request."""
        if self._reads:
            self._reads = False
            return answer(Call("read", {"path": self._case.read}))
        if not self.bodies:
            self.seen = list(texts_read(self._api, body))
        self.bodies.append(body)
        if not self._left:
            return answer("Done.")
        return self._scripted(self._left.pop(0))

    def read_since(self) -> list[str]:
        """Return what the model read in results and messages after its first answer."""
        if len(self.bodies) < 2:
            return []
        return list(texts_read(self._api, self.bodies[-1]))[len(self.seen) :]

    def _scripted(self, scripted: ModelAnswer) -> Reply:
        for name, text in scripted.meanwhile.items():
            (self._folder / name).write_text(text, encoding="utf-8", newline="")
        if scripted.status is not None or scripted.page is not None:
            page = None if scripted.page is None else scripted.page.encode()
            return Status(code=scripted.status or 200, body=page)
        steps: list[WireStep] = [self._step(step) for step in scripted.steps]
        if scripted.cut:
            steps.append(Cut())
        stop = _STOPS[scripted.stop][self._api] if scripted.stop is not None else None
        return answer(*steps, stop=stop, ended=scripted.ended)

    def _step(self, step: Step) -> WireStep:
        if step.text is not None:
            return Text(self._fill(step.text))
        if step.events is not None:
            return Raw(step.events.encode())
        if step.thought is not None:
            return Thought(step.thought)
        given = json.dumps(step.args or {}, ensure_ascii=False) if step.raw is None else step.raw
        return Call(step.tool or "", self._fill(given), step.id)


class ScriptedModel:
    """Finds the case of a request by the number in its prompt."""

    def __init__(self) -> None:
        self.conversations: dict[int, Conversation] = {}

    def __call__(self, request: Request) -> Reply:
        """Return the answer; requests without tools (titles, summaries) are not of the script."""
        found = _CASE.search(request.body)
        body = request.json
        if found is None or not body.get("tools"):
            return answer("Corpus")
        return self.conversations[int(found[1])].reply(body)


def texts_read(api: Api, body: Any) -> Iterator[str]:
    """The results and the user's messages in a request, in order."""
    key = {"chat": "messages", "responses": "input", "anthropic": "messages", "gemini": "contents"}
    for message in body[key[api]]:
        yield from _texts_of(message)


def _texts_of(message: Mapping[str, Any]) -> Iterator[str]:
    if message.get("type") == "function_call_output":
        yield _flat(message["output"])
    elif message.get("role") == "tool":
        yield _flat(message["content"])
    elif message.get("role") == "user":
        parts = message.get("content", message.get("parts"))
        for part in [parts] if isinstance(parts, str) else parts or []:
            yield _flat(part)


def _flat(value: Any) -> str:
    """All strings in a JSON value, one a line."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(_flat(item) for item in value)
    if isinstance(value, dict):
        items = (item for key, item in value.items() if key not in ("type", "id", "tool_use_id"))
        return "\n".join(_flat(item) for item in items)
    return ""
