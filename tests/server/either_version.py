"""A client of whichever version of the protocol, for what is the same in both."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.server.server_session import OPENAI
from tests.support.agent_process import AgentProcess, StartAgent
from tests.support.framing import Json
from tests.support.model_server import ModelServer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2
from tests.support.wire_client import AnswerError


class EitherClient:
    """A client that has begun a connection."""

    def __init__(self, wire: AgentProcess, version: int) -> None:
        self.wire = wire
        self.version = version
        self._v2 = V2Client(wire)
        self.advertised: Json = {}

    @classmethod
    async def start(
        cls,
        agent: StartAgent,
        version: int,
        *arguments: str,
        environ: Mapping[str, str] | None = None,
    ) -> EitherClient:
        """Start an agent and begin a connection to it."""
        editor = EditorV2() if version == 2 else None
        client = cls(await agent(*arguments, editor=editor, environ=environ), version)
        starter = client.wire if version == 1 else client._v2
        result = await starter.initialize()
        client.advertised = result["agentCapabilities" if version == 1 else "capabilities"]
        return client

    @classmethod
    async def before(cls, agent: StartAgent, version: int, server: ModelServer) -> EitherClient:
        """The same, with an agent that asks a scripted model."""
        return await cls.start(agent, version, *OPENAI, environ=server.environ())

    @property
    def session_capabilities(self) -> Json:
        """What is advertised about sessions."""
        capabilities: Json = self.advertised[
            "sessionCapabilities" if self.version == 1 else "session"
        ]
        return capabilities

    async def request(self, method: str, /, **params: Any) -> Any:
        """A request that has the schema's shape; its result."""
        return await self.wire.request(method, params, checked=True)

    async def refused(self, method: str, /, **params: Any) -> Json:
        """The error of a request, whatever shape it has."""
        answer = await self.wire.answer(self.wire.post(method, params))
        assert "error" in answer, answer
        error: Json = answer["error"]
        return error

    async def new(self, cwd: Path, **params: Any) -> str:
        """`session/new`; the session's id."""
        starter = self.wire if self.version == 1 else self._v2
        return await starter.new_session(cwd, **params)

    async def fork(self, session: str, cwd: Path, **params: Any) -> str:
        """`session/fork`; the new session's id."""
        result = await self.request("session/fork", sessionId=session, cwd=str(cwd), **params)
        name = result["sessionId"]
        assert isinstance(name, str)
        return name

    async def reopen(self, session: str, cwd: Path, **params: Any) -> None:
        """`session/resume`, without a replay."""
        await self.request("session/resume", sessionId=session, cwd=str(cwd), **params)

    async def close(self, session: str) -> None:
        """`session/close`."""
        await self.request("session/close", sessionId=session)

    async def say(self, session: str, text: str) -> str:
        """Say something and wait for the end of the turn; its stop reason.

        Raises:
            AnswerError: the turn failed, or never began.
        """
        if self.version == 1:
            return str((await self.wire.prompt(session, text))["stopReason"])
        ended = await self._v2.prompt(session, text)
        if ended["stopReason"] == "error":
            raise AnswerError(ended["error"])
        return str(ended["stopReason"])

    def post_prompt(self, session: str, text: str) -> int:
        """Say something without waiting; the request's id."""
        starter = self.wire if self.version == 1 else self._v2
        return starter.post_prompt(session, text)

    def kinds(self, session: str) -> list[str]:
        """The kinds of the session's updates that came so far."""
        return [update["sessionUpdate"] for update in self.wire.updates(session)]

    async def listed(self, **params: Any) -> dict[str, Json]:
        """All pages of a list, by session."""
        result: dict[str, Json] = {}
        while True:
            page = await self.request("session/list", **params)
            result.update((entry["sessionId"], entry) for entry in page["sessions"])
            if page.get("nextCursor") is None:
                return result
            params["cursor"] = page["nextCursor"]
