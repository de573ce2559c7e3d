"""Answers to permission requests: from a flag, or from the user at the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Literal

from msgspec import Struct

from acp_agent.cli.agent_client import PermissionRequest
from acp_agent.cli.localization import translate
from acp_agent.trust.store import TRUST_OPTION
from protocol.v1 import types as acp

Allowed = Literal["all", "edits", "none", "ask"]

_MAX_ATTEMPTS = 3
_MAX_QUESTION_LENGTH = 2_000  # characters of a question
_EDITS = {"edit", "delete", "move"}


class AutomaticAnswer(Struct, frozen=True, kw_only=True):
    """An answer that was given without asking the user, or without the user's answer.

    `by` is `flag` for a flag, or something else that decides for the user, called `name`;
    `nobody` if there was nobody to ask; and `user` if the user was asked but did not answer.
    """

    option: acp.PermissionOption | None
    by: Literal["flag", "nobody", "user"]
    name: str = ""

    @property
    def allowed(self) -> bool:
        """Return whether the call may run."""
        return self.option is not None and self.option.kind.startswith("allow")

    @property
    def text(self) -> str:
        """Return the answer and who gave it, as text."""
        match self.by:
            case "nobody":
                return translate("Refused: nobody to ask")
            case "user":
                return translate("Refused: no answer")
            case "flag" if self.allowed:
                return translate("Allowed by {who}", who=self.name)
            case "flag":
                return translate("Refused by {who}", who=self.name)


# The request and its answer, to be shown.
ShowAnswer = Callable[[PermissionRequest, AutomaticAnswer], None]


def request_fields(request: PermissionRequest) -> dict[str, object]:
    """Return the fields that identify a request in JSON output."""
    return {"toolCallId": request.request.tool_call.tool_call_id, "title": request.title}


def flag_for(request: PermissionRequest) -> str:
    """Return the flag of `acp-agent run` that allows the call."""
    return "--allow edits" if request.kind in _EDITS else "--allow all"


def response(option: acp.PermissionOption | None, **decided: str) -> acp.RequestPermissionResponse:
    """Return the response to a permission request.

    Args:
        option: the chosen option; None cancels the request.
        decided: who chose it, if not the user (docs/extensions.md).
    """
    outcome: acp.RequestPermissionOutcome = acp.CancelledPermissionOutcome()
    if option is not None:
        outcome = acp.SelectedPermissionOutcome(option_id=option.option_id)
    meta: dict[str, Any] | None = {"acp-agent": {"decidedBy": decided}} if decided else None
    return acp.RequestPermissionResponse(outcome=outcome, meta=meta)


class Answers:
    """Answers permission requests.

    Args:
        allowed: `all` and `edits` allow these calls once each, `none` refuses every call. Other
            calls are asked about, or refused if there is nobody to ask.
        decider: what decides for the user; "" for the flag.
        ask: shows a question before its answer is read; None if there is nobody to ask.

    Attributes:
        unanswered: requests that were refused because there was nobody to ask.
    """

    def __init__(
        self,
        allowed: Allowed,
        *,
        decider: str = "",
        show: ShowAnswer,
        ask: Callable[[PermissionRequest], None] | None,
    ) -> None:
        self.unanswered: list[PermissionRequest] = []
        self._allowed = allowed
        self._decider = decider
        self._show = show
        self._ask = ask

    async def __call__(self, request: PermissionRequest) -> acp.RequestPermissionResponse:
        """Answer one request."""
        if any(option.option_id == TRUST_OPTION for option in request.options):
            if self._ask is not None:
                return await self._ask_user(request, self._ask)
            return response(find_option(request, "reject_once"), by="nobody")
        flag = self._decider or f"--allow {self._allowed}"
        if self._allowed == "all" or (self._allowed == "edits" and request.kind in _EDITS):
            return self._answer_automatically(request, "allow_once", flag)
        if self._allowed == "none":
            return self._answer_automatically(request, "reject_once", flag)
        if self._ask is None:
            return self._answer_automatically(request, "reject_once", self._decider)
        return await self._ask_user(request, self._ask)

    def _answer_automatically(
        self, request: PermissionRequest, kind: str, name: str
    ) -> acp.RequestPermissionResponse:
        option = find_option(request, kind)
        answer = AutomaticAnswer(option=option, by="flag" if name else "nobody", name=name)
        if not name:
            self.unanswered.append(request)
        self._show(request, answer)
        return response(option, by=answer.by, name=answer.name)

    async def _ask_user(
        self, request: PermissionRequest, ask: Callable[[PermissionRequest], None]
    ) -> acp.RequestPermissionResponse:
        for _ in range(_MAX_ATTEMPTS):
            ask(request)
            line = await read_line()
            if line is None:
                break
            word = line.strip()
            if word.isdecimal() and 1 <= int(word) <= len(request.options):
                return response(request.options[int(word) - 1])
        refusal = find_option(request, "reject_once")
        self._show(request, AutomaticAnswer(option=refusal, by="user"))
        return response(refusal)


def find_option(request: PermissionRequest, kind: str) -> acp.PermissionOption | None:
    """Return the option of a kind, such as `allow_once`; None if it is not offered."""
    return next((option for option in request.options if option.kind == kind), None)


def question_text(request: PermissionRequest) -> str:
    """Return a permission question as text, with the effect of the call."""
    lines = [translate("The agent asks for permission: {title}", title=request.title)]
    for part in request.request.tool_call.content or ():
        match part:
            case acp.Content(content=acp.TextContent(text=block)):
                lines.append(block.strip())
            case acp.Diff():
                lines.append(f"{part.path}:\n{part.new_text}")
    text = "\n".join(lines)
    return (
        text
        if len(text) <= _MAX_QUESTION_LENGTH
        else f"{text[:_MAX_QUESTION_LENGTH]}\n[{len(text)} characters]"
    )


async def read_line() -> str | None:
    """Read a line from the user; return None at the end of input.

    The waiting thread is a daemon and does not lock `sys.stdin`, so that the program can exit
    while a question is open.
    """
    loop = asyncio.get_running_loop()
    arrived: asyncio.Future[bytes] = loop.create_future()

    def deliver(data: bytes) -> None:
        if not arrived.done():
            arrived.set_result(data)

    def wait() -> None:
        try:
            data = os.read(sys.stdin.fileno(), 4096)
        except OSError:
            data = b""
        with contextlib.suppress(RuntimeError):  # the program ended without waiting for the answer
            loop.call_soon_threadsafe(deliver, data)

    threading.Thread(target=wait, daemon=True, name="terminal input").start()
    data = await arrived
    return data.decode("utf-8", "replace") if data else None
