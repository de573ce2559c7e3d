"""A real agent with a session of version 2 in front of a scripted model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

from tests.server.server_session import ANTHROPIC, OPENAI
from tests.support.agent_process import StartAgent
from tests.support.editor import Offer, PermissionPolicy
from tests.support.framing import Json
from tests.support.model_server import Api, ModelServer
from tests.support.v2_client import V2Client
from tests.support.v2_editor import EditorV2


class OpenV2(Protocol):
    """The fixture `opened_v2`: a client and the id of its session."""

    async def __call__(
        self,
        *arguments: str,
        offers: frozenset[Offer] = frozenset(),
        permission: PermissionPolicy = "allow_once",
        api: Api = "openai",
        environ: Mapping[str, str] | None = None,
    ) -> tuple[V2Client, str]: ...


async def connect(
    agent: StartAgent,
    server: ModelServer,
    *arguments: str,
    offers: frozenset[Offer] = frozenset(),
    permission: PermissionPolicy = "allow_once",
    api: Api = "openai",
    environ: Mapping[str, str] | None = None,
) -> V2Client:
    """One more agent of the same home, initialized."""
    running = await agent(
        *(OPENAI if api == "openai" else ANTHROPIC),
        *arguments,
        editor=EditorV2(offers=offers, permission=permission),
        environ=server.environ(api) | dict(environ or {}),
    )
    client = V2Client(running)
    await client.initialize()
    return client


def opener(agent: StartAgent, server: ModelServer, repository: Path) -> OpenV2:
    """What the fixture `opened_v2` is."""

    async def start(
        *arguments: str,
        offers: frozenset[Offer] = frozenset(),
        permission: PermissionPolicy = "allow_once",
        api: Api = "openai",
        environ: Mapping[str, str] | None = None,
    ) -> tuple[V2Client, str]:
        client = await connect(
            agent,
            server,
            *arguments,
            offers=offers,
            permission=permission,
            api=api,
            environ=environ,
        )
        return client, await client.new_session(repository)

    return start


def prompt_params(session: str, text: str) -> Json:
    """The parameters of `session/prompt`."""
    return {"sessionId": session, "prompt": [{"type": "text", "text": text}]}


def states(client: V2Client, session: str) -> list[str]:
    """What the session was said to be doing, in order; an idle state with its reason."""
    return [
        state["state"] if "stopReason" not in state else f"idle: {state['stopReason']}"
        for state in client.view(session).states
    ]


def user_texts(client: V2Client, session: str) -> list[str]:
    """The ids of the user's messages that were shown, in order, as often as each was."""
    return [update["messageId"] for update in client.wire.updates(session, "user_message")]
