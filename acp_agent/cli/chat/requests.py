"""What the agent asks of the user: permission, forms to fill in, pages to visit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from acp_agent.cli.chat.calls import Calls, ShownCall
from acp_agent.cli.chat.front import Front
from acp_agent.cli.localization import translate
from acp_agent.cli.permission_answers import response
from protocol.jsonrpc.call import Call
from protocol.v1 import types as acp

_COMPARED_BYTES = 2_000_000  # of a file that is compared with the diff of a permission request


class Requests:
    """Puts the agent's requests to the user at a front, and gives the answers.

    Args:
        front: where they are asked.
        calls: looks the session's tool calls up.
        instead: sends the agent what it should do instead of a call that the user rejects.
        wanted: whether a session's questions are still asked: it is open, and nobody cancelled.
        cwd: the folder that the session works in.
    """

    def __init__(
        self,
        front: Front,
        *,
        calls: Callable[[], Calls],
        instead: Callable[[str], Awaitable[None]],
        wanted: Callable[[str], bool],
        cwd: Path,
    ) -> None:
        self._front = front
        self._calls = calls
        self._instead = instead
        self._wanted = wanted
        self._cwd = cwd
        self._pages: dict[str, str] = {}  # messages of pages that are being visited, by id

    async def permission(
        self, params: acp.RequestPermissionRequest, _: Call
    ) -> acp.RequestPermissionResponse:
        """Ask the user; without an answer the request is cancelled, which ends the call."""
        if not self._wanted(params.session_id):
            return response(None)
        call = self._calls().update(params.tool_call)
        warning = await asyncio.to_thread(_changed_meanwhile, call, self._cwd)
        answer = await self._front.ask(call, params.options, warning)
        if not self._front.person:
            return response(None if answer is None else answer.option, by="nobody")
        if answer is None:
            return response(None)
        if answer.instead:
            await self._instead(answer.instead)  # first, so that the next request has it
        call.answer = answer.option.name
        return response(answer.option)

    async def elicitation(
        self, params: acp.CreateElicitationRequest, _: Call
    ) -> acp.CreateElicitationResponse:
        """Let the user fill in a form, or visit a page."""
        from acp_agent.cli.chat import forms  # noqa: PLC0415 - few conversations have one

        match params:
            case acp.ElicitationFormMode():
                return await forms.answer_form(self._front, params)
            case acp.ElicitationUrlMode():
                self._pages[params.elicitation_id] = params.message
                return await forms.visit(self._front, params)
            case _:
                return acp.ElicitationDeclineAction()

    def elicitation_completed(self, params: acp.CompleteElicitationNotification) -> None:
        """Say that what a page was visited for is done."""
        message = self._pages.pop(params.elicitation_id, None)
        if message is not None:
            self._front.say(translate("Done: {what}", what=message), "good")


def _changed_meanwhile(call: ShownCall, cwd: Path) -> str:
    """A warning where a file is not what the call's diff starts from; empty where it is."""
    for diff in call.diffs:
        path = Path(diff.path)
        if not path.is_absolute() or not path.is_relative_to(cwd) or "[secret]" in diff.new_text:
            continue
        try:
            if not path.is_file():
                now = None
            elif path.stat().st_size > _COMPARED_BYTES:
                continue
            else:
                now = path.read_text("utf-8")
        except (OSError, ValueError):
            continue
        old = diff.old_text
        if _plain(now) != _plain(old) and "[secret]" not in (old or ""):
            name = path.relative_to(cwd)
            return translate("{file} is not what this change starts from.", file=name)
    return ""


def _plain(text: str | None) -> str:
    return "" if text is None else text.replace("\r\n", "\n").removeprefix("\ufeff").rstrip("\n")
