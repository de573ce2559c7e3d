"""The handlers that only version 1 has, and its conversions for the shared ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp_agent.errors import InvalidInputError, NoTurnError
from acp_agent.ids import SessionId
from acp_agent.server.client_connection import ClientConnection
from acp_agent.server.conversion import merge_updates, token_counts
from acp_agent.server.extensions.meta import check_steering, while_running
from acp_agent.server.handlers import Handlers, Json
from acp_agent.server.v1.conversion import config_options, mode_state, prompt_block
from acp_agent.server.v1.editor import EditorV1
from acp_agent.session.session import Session
from acp_agent.session.settings import MODE_IDS, MODES
from protocol.jsonrpc.handlers import Call, Reply, Surface
from protocol.jsonrpc.methods import Method
from protocol.v1 import types as acp
from protocol.v1.methods import AGENT_METHODS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from acp_agent.extensions.mcp.config import Channel, ServerConfig

STEERING: Final[Method[acp.PromptRequest, Json]] = Method(
    "_session/steering", acp.PromptRequest, dict
)


class HandlersV1(Handlers):
    """Answers a client that speaks version 1."""

    version = 1
    prompt_modules = ("acp_agent.server.session_tree", "acp_agent.server.v1.projection")

    def __init__(self, client: ClientConnection) -> None:
        self.editor = EditorV1(client.connection, client.handshake, client.core, client.on_child)
        super().__init__(client, self.editor)

    def surface(self) -> Surface:
        """Return the version's methods with their handlers."""
        return self._surface(
            {**AGENT_METHODS, STEERING.name: STEERING},
            {
                "authenticate": self.answer_rare,
                "logout": self.answer_rare,
                "session/load": self.load,
                "session/resume": self.resume,
                "session/prompt": self.prompt,
                "session/set_mode": self.set_mode,
                STEERING.name: self.steer,
            },
            merge=merge_updates,
        )

    # -- opening sessions ------------------------------------------------------------------

    async def load(self, request: acp.LoadSessionRequest, _: Call) -> Reply:
        """Open a session and replay it (Session Setup, Loading Sessions)."""

        async def replay(session: Session) -> None:
            events = await session.core.history()
            await self.editor.replay(session.id, events)
            if session.turn is not None:
                self.editor.catch_up(session.id, events)

        return await self._open(request, replay)

    async def resume(self, request: acp.ResumeSessionRequest, _: Call) -> Reply:
        """Open a session without replaying it (Session Setup, Resuming Sessions)."""

        async def catch_up(session: Session) -> None:
            if session.turn is not None:
                self.editor.catch_up(session.id, await session.core.history())
                self.editor.announce_work(session.id)

        return await self._open(request, catch_up)

    def _mcp_server(self, field: str, server: acp.McpServer, channel: Channel) -> ServerConfig:
        from acp_agent.server.mcp_servers import server_v1  # noqa: PLC0415 - where there are any

        return server_v1(field, server, channel)

    def _text(self, block: acp.ContentBlock) -> str | None:
        return block.text if isinstance(block, acp.TextContent) else None

    def _settings(self, session: Session) -> Json:
        options = session.core.settings.options()
        return {"modes": mode_state(options), "configOptions": config_options(options)}

    def _start(self, session: Session, servers: Sequence[ServerConfig]) -> None:
        super()._start(session, servers)
        self.editor.offer_commands(session.id, session.extensions.commands)

    # -- turns -----------------------------------------------------------------------------

    async def prompt(self, request: acp.PromptRequest, call: Call) -> acp.PromptResponse:
        """Run a turn, or steer the running one (Prompt Turn)."""
        content = tuple(prompt_block(block) for block in request.prompt)
        submitted = await self.prompts.prompt(
            request.session_id,
            content,
            call,
            while_running=while_running(request.meta) if request.meta else None,
        )
        if submitted.began:
            self.editor.trace_turn(SessionId(request.session_id), request.meta)
        stop_reason = await submitted.turn.result()
        # Once a turn: a prompt that steered has no usage of its own.
        usage = submitted.turn.usage if submitted.began else None
        return acp.PromptResponse(
            stop_reason=stop_reason,
            usage=None if usage is None else acp.Usage(**token_counts(usage)),
        )

    async def steer(self, request: acp.PromptRequest, call: Call) -> dict[str, str]:
        """Steer the running turn, or do nothing (docs/extensions.md)."""
        check_steering(request.meta)
        content = tuple(prompt_block(block) for block in request.prompt)
        try:
            await self.prompts.steer(request.session_id, content, call)
        except NoTurnError:
            return {"outcome": "promptRequired", "reason": "noRunningTurn"}
        return {"outcome": "injected"}

    async def set_mode(self, request: acp.SetSessionModeRequest, _: Call) -> Json:
        """Switch the mode (Session Modes)."""

        async def switch(session: Session) -> None:
            if request.mode_id not in MODE_IDS:
                raise InvalidInputError(
                    f"modeId: there is no mode {request.mode_id!r}; the modes are "
                    + ", ".join(mode.id for mode in MODES),
                    field="modeId",
                )
            await session.set_option("mode", request.mode_id)

        await self.operations.change(request.session_id, switch)
        return {}

    def _option_value(self, request: acp.SetSessionConfigOptionRequest) -> tuple[str, str, str]:
        if isinstance(request.value, bool):
            raise InvalidInputError(
                f"value: {request.config_id} takes one of its values, not a truth value",
                field="value",
            )
        return request.session_id, request.config_id, request.value
