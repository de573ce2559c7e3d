"""The tools of `acp-agent mcp serve`: prompt the agent in a folder, and read its sessions."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError, NoBackChannelError
from pydantic import BaseModel, Field

from acp_agent.cli.agent_client import AgentClient, PermissionRequest
from acp_agent.cli.localization import translate
from acp_agent.cli.permission_answers import find_option, question_text, response
from acp_agent.cli.run import Tally
from acp_agent.cli.session_lookup import full_id, open_store
from acp_agent.cli.sessions import user_secrets
from acp_agent.errors import AcpAgentError
from acp_agent.ids import SessionId
from acp_agent.session.history.transcript import transcript
from acp_agent.session.store.event_codec import readable_events
from acp_agent.session.store.read_queries import MAX_PAGE
from acp_agent.session.store.records import SessionRecord
from acp_agent.trust.items import TRUST_OPTION
from acp_agent.workspace.scrub import scrub
from protocol.jsonrpc.errors import RpcError
from protocol.v1 import types as acp

_MAX_PROMPTS = 4  # prompts that run concurrently
_MAX_TEXT_LENGTH = 50_000  # characters of a session that one call returns
_ANSWER_SECONDS = 600.0  # for the answer to a question

Mode = Literal["ask", "accept-edits", "draft", "plan"]
ServedContext = Context[Any, Any]


class PromptAnswer(BaseModel):
    """How a prompt ended."""

    session_id: str
    stop_reason: str
    text: str
    refused: list[str]


class ListedSession(BaseModel):
    """A saved session."""

    session_id: str
    title: str
    folder: str
    turns: int


class SessionList(BaseModel):
    """Saved sessions, the most recently used first."""

    sessions: list[ListedSession]


class SessionText(BaseModel):
    """A part of a conversation; `next_start` is where the rest begins, if there is any."""

    text: str
    next_start: int | None


class AgentTools:
    """The tools, for sessions in and below some folders.

    Args:
        folders: absolute paths without symlinks.
        model: the model of new sessions; None for the configured one.
    """

    def __init__(self, folders: Sequence[Path], model: str | None) -> None:
        self._folders = tuple(folders)
        self._flags = [] if model is None else ["--model", model]
        self._running = asyncio.Semaphore(_MAX_PROMPTS)

    async def run_prompt(
        self,
        context: ServedContext,
        prompt: Annotated[str, Field(min_length=1, description="What the agent is to do.")],
        folder: Annotated[str, Field(description="Its folder. Empty: the first served one.")] = "",
        session_id: Annotated[str, Field(description="A session to continue.")] = "",
        mode: Annotated[
            Mode | None, Field(description="plan only reads; accept-edits edits files unasked.")
        ] = None,
    ) -> PromptAnswer:
        """Let the coding agent work on a prompt until it is done."""
        cwd = await asyncio.to_thread(self._folder, folder)
        if session_id:
            record = await self._record(session_id)
            session_id, cwd = record.id, Path(record.cwd)
        refused: list[str] = []

        async def ask_permission(request: PermissionRequest) -> acp.RequestPermissionResponse:
            allowed = await _ask_user(context, request)
            if not allowed:
                refused.append(request.title)
            kind = "allow_once" if allowed else "reject_once"
            return response(find_option(request, kind))

        tally = Tally(lambda _: None)
        client: AgentClient | None = None
        async with self._running:
            try:
                client = await AgentClient.start(
                    self._flags, cwd=cwd, on_update=tally.update, on_permission=ask_permission
                )
                await client.open(cwd, resume=session_id or None)
                if mode is not None:
                    await client.set_option("mode", mode)
                answer = await client.prompt(prompt)
            except RpcError as error:
                raise ToolError(error.message) from None
            except (OSError, TimeoutError):
                raise ToolError("the agent ended unexpectedly; run acp-agent doctor") from None
            finally:
                if client is not None:
                    await client.aclose()
        return PromptAnswer(
            session_id=client.id,
            stop_reason=answer.stop_reason,
            text=tally.text,
            refused=refused,
        )

    async def list_sessions(
        self, limit: Annotated[int, Field(ge=1, le=MAX_PAGE)] = 20
    ) -> SessionList:
        """List the saved sessions of the served folders, the most recently used first."""
        records: list[SessionRecord] = []
        async with open_store() as store:
            if store is not None:
                records = (await store.list(limit=MAX_PAGE)).sessions
        secrets = await asyncio.to_thread(user_secrets)
        visible_records = [record for record in records if self._serves(Path(record.cwd))][:limit]
        return SessionList(
            sessions=[
                ListedSession(
                    session_id=record.id,
                    title=scrub(record.title or "", secrets),
                    folder=record.cwd,
                    turns=record.turns,
                )
                for record in visible_records
            ]
        )

    async def read_session(
        self, session_id: str, start: Annotated[int, Field(ge=0)] = 0
    ) -> SessionText:
        """Read the conversation of a saved session, from a character on."""
        record = await self._record(session_id)
        async with open_store() as store:
            assert store is not None
            stored = await store.read_all(record.id)
        secrets = await asyncio.to_thread(user_secrets)

        def text() -> str:
            passages = transcript(readable_events(stored), thoughts=False)
            return scrub(
                "\n\n".join(f"[{passage.kind}]\n{passage.text}" for passage in passages), secrets
            )

        conversation = await asyncio.to_thread(text)
        end = start + _MAX_TEXT_LENGTH
        return SessionText(
            text=conversation[start:end], next_start=end if end < len(conversation) else None
        )

    async def _record(self, name: str) -> SessionRecord:
        """Return a session of the served folders.

        Raises:
            ToolError: there is none.
        """
        with suppress(AcpAgentError):
            session_id = await full_id(name)
            async with open_store() as store:
                record = None if store is None else await store.get(SessionId(session_id))
            if record is not None and self._serves(Path(record.cwd)):
                return record
        raise ToolError(f"there is no session {name!r}; list_sessions has those there are")

    def _folder(self, name: str) -> Path:
        """Return a served folder, without symlinks.

        Raises:
            ToolError: it is not a folder, or is not served.
        """
        folder = Path(os.path.realpath(self._folders[0] / name))
        if not self._serves(folder):
            roots = ", ".join(map(str, self._folders))
            raise ToolError(f"{folder} is not served; served are {roots}")
        if not folder.is_dir():
            raise ToolError(f"{folder} is not a directory")
        return folder

    def _serves(self, folder: Path) -> bool:
        real = Path(os.path.realpath(folder))
        return any(real.is_relative_to(root) for root in self._folders)


async def _ask_user(context: ServedContext, request: PermissionRequest) -> bool:
    """Return whether the client's user allows a call once; False if there is nobody to ask.

    Trust in a folder's files and lasting permissions are given in an editor or with
    `acp-agent trust`, because a client may be a program that accepts everything.
    """
    capabilities = context.client_capabilities
    elicitation = None if capabilities is None else capabilities.elicitation
    if elicitation is None or (elicitation.form is None and elicitation.url is not None):
        return False
    if any(option.option_id == TRUST_OPTION for option in request.options):
        return False
    with suppress(MCPError, NoBackChannelError, TimeoutError):
        async with asyncio.timeout(_ANSWER_SECONDS):
            result = await context.session.elicit_form(
                question_text(request), _form(), related_request_id=context.request_id
            )
        return result.action == "accept" and (result.content or {}).get("allow") is True
    return False


def _form() -> dict[str, Any]:
    allow = {"type": "boolean", "title": translate("Allow this once"), "default": False}
    return {"type": "object", "properties": {"allow": allow}, "required": ["allow"]}
