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

from acp_agent.cli.agent_client import Asked
from acp_agent.cli.localization import translate
from acp_agent.trust.items import TRUST_OPTION
from protocol.v1 import types as acp

Allowed = Literal["all", "edits", "none", "ask"]

_ATTEMPTS = 3
_QUESTION = 2_000  # characters of a question
_EDITS = {"edit", "delete", "move"}


class Given(Struct, frozen=True, kw_only=True):
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


Answered = Callable[[Asked, Given], None]  # the request and its answer, to be shown


def flag_for(asked: Asked) -> str:
    """Return the flag of `acp-agent run` that allows the call."""
    return "--allow edits" if asked.kind in _EDITS else "--allow all"


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
        show: shows an answer that was given without asking.
        ask: shows a question before its answer is read; None if there is nobody to ask.

    Attributes:
        unasked: requests that were refused because there was nobody to ask.
    """

    def __init__(
        self,
        allowed: Allowed,
        *,
        decider: str = "",
        show: Answered,
        ask: Callable[[Asked], None] | None,
    ) -> None:
        self.unasked: list[Asked] = []
        self._allowed = allowed
        self._decider = decider
        self._show = show
        self._ask = ask

    async def __call__(self, asked: Asked) -> acp.RequestPermissionResponse:
        """Answer one request."""
        if any(option.option_id == TRUST_OPTION for option in asked.options):
            if self._ask is not None:
                return await self._from_user(asked, self._ask)
            return response(option_of_kind(asked, "reject_once"), by="nobody")
        flag = self._decider or f"--allow {self._allowed}"
        if self._allowed == "all" or (self._allowed == "edits" and asked.kind in _EDITS):
            return self._give(asked, "allow_once", flag)
        if self._allowed == "none":
            return self._give(asked, "reject_once", flag)
        if self._ask is None:
            return self._give(asked, "reject_once", self._decider)
        return await self._from_user(asked, self._ask)

    def _give(self, asked: Asked, kind: str, name: str) -> acp.RequestPermissionResponse:
        option = option_of_kind(asked, kind)
        given = Given(option=option, by="flag" if name else "nobody", name=name)
        if not name:
            self.unasked.append(asked)
        self._show(asked, given)
        return response(option, by=given.by, name=given.name)

    async def _from_user(
        self, asked: Asked, ask: Callable[[Asked], None]
    ) -> acp.RequestPermissionResponse:
        for _ in range(_ATTEMPTS):
            ask(asked)
            line = await read_line()
            if line is None:
                break
            word = line.strip()
            if word.isdecimal() and 1 <= int(word) <= len(asked.options):
                return response(asked.options[int(word) - 1])
        refusal = option_of_kind(asked, "reject_once")
        self._show(asked, Given(option=refusal, by="user"))
        return response(refusal)


def option_of_kind(asked: Asked, kind: str) -> acp.PermissionOption | None:
    """Return the option of a kind, such as `allow_once`; None if it is not offered."""
    return next((one for one in asked.options if one.kind == kind), None)


def question_text(asked: Asked) -> str:
    """Return a permission question as text, with the effect of the call."""
    lines = [translate("The agent asks for permission: {title}", title=asked.title)]
    for part in asked.request.tool_call.content or ():
        match part:
            case acp.Content(content=acp.TextContent(text=shown)):
                lines.append(shown.strip())
            case acp.Diff():
                lines.append(f"{part.path}:\n{part.new_text}")
            case _:
                pass
    text = "\n".join(lines)
    return text if len(text) <= _QUESTION else f"{text[:_QUESTION]}\n[{len(text)} characters]"


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
