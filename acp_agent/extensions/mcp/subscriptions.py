"""Subscriptions to changes of a server's lists and of single resources.

Source: Model Context Protocol, Resources, Subscriptions. Up to version 2025-11-25 a resource is
subscribed by a request; version 2026-07-28 has one stream for everything that is followed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import mcp_types as types
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.subscriptions import ResourceUpdated
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from acp_agent.extensions.mcp.server_messages import LOG_LEVEL, Host

MAX_RESOURCES = 20  # followed at a server
_PROBLEMS = (MCPError, RuntimeError, TimeoutError, ValueError)

_log = logging.getLogger(__name__)


class Subscriptions:
    """What is followed at a connected server.

    Args:
        client: the connection.
        host: is notified of changes.
        original: returns an address as the server wrote it.
    """

    def __init__(self, client: Client, host: Host, original: Callable[[str], str]) -> None:
        self._client = client
        self._host = host
        self._original = original
        self._uris: list[str] = []
        self._is_modern = client.protocol_version in MODERN_PROTOCOL_VERSIONS
        self._task = asyncio.create_task(self._run(()))

    def follow(self, uri: str) -> None:
        """Follow a resource, if the server reports changes. Does not wait."""
        offers = self._client.server_capabilities.resources
        if offers is None or not offers.subscribe or uri in self._uris:
            return
        if len(self._uris) < MAX_RESOURCES:
            self._uris.append(uri)
            previous = self._task
            if self._is_modern:
                previous.cancel()
            self._task = asyncio.create_task(self._run((uri,), previous))

    async def aclose(self) -> None:
        """Stop following."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self, new: tuple[str, ...], previous: asyncio.Task[None] | None = None) -> None:
        if previous is not None:
            await asyncio.wait([previous])
        try:
            if self._is_modern:
                await self._listen()
            else:
                await self._request(new)
        except _PROBLEMS as error:
            _log.info("a server's changes are not followed any more: %s", type(error).__name__)

    async def _request(self, uris: tuple[str, ...]) -> None:
        """Subscribe by requests; the first run asks for the log, which no list needs."""
        session = self._client.session
        if not uris and self._client.server_capabilities.logging is not None:
            level = types.SetLevelRequest(params=types.SetLevelRequestParams(level=LOG_LEVEL))
            await session.send_request(level, types.EmptyResult)
        for uri in uris:
            params = types.SubscribeRequestParams(uri=self._original(uri))
            await session.send_request(types.SubscribeRequest(params=params), types.EmptyResult)

    async def _listen(self) -> None:
        offers = self._client.server_capabilities
        tools = bool(offers.tools and offers.tools.list_changed)
        prompts = bool(offers.prompts and offers.prompts.list_changed)
        resources = bool(offers.resources and offers.resources.list_changed)
        if not (tools or prompts or resources or self._uris):
            return
        async with self._client.listen(
            tools_list_changed=tools,
            prompts_list_changed=prompts,
            resources_list_changed=resources,
            resource_subscriptions=[self._original(uri) for uri in self._uris],
        ) as events:
            async for event in events:
                if isinstance(event, ResourceUpdated):
                    self._host.resource_changed(event.uri)
                else:
                    self._host.list_changed()
