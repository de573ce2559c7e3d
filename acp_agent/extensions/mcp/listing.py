"""List what a server offers, within limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import mcp_types as types
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from msgspec import Struct

from acp_agent.extensions.mcp.sanitizer import LONGEST

_PAGES = 50  # pages of one list


class ServerCatalog(Struct, frozen=True, kw_only=True):
    """A server's lists.

    `unusable` are the names of malformed tools, `cut` the names of lists that were shortened.
    """

    tools: tuple[types.Tool, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    unusable: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


PageT = TypeVar("PageT", bound=_Page)
T = TypeVar("T")


async def list_catalog(client: Client) -> ServerCatalog:
    """Request each list that the server declares.

    Raises:
        MCPError: the server answered with an error, or is disconnected.
        ValueError: an answer has the wrong shape.
    """
    has = client.server_capabilities
    cut: list[str] = []
    tools: list[types.Tool] = []
    prompts: list[types.Prompt] = []
    resources: list[types.Resource] = []
    templates: list[types.ResourceTemplate] = []
    if has.tools is not None:
        tools = await _all(
            lambda cursor: client.list_tools(cursor=cursor), lambda page: page.tools, "tools", cut
        )
    if has.prompts is not None:
        prompts = await _all(
            lambda cursor: client.list_prompts(cursor=cursor),
            lambda page: page.prompts,
            "prompts",
            cut,
        )
    if has.resources is not None:
        resources = await _all(
            lambda cursor: client.list_resources(cursor=cursor),
            lambda page: page.resources,
            "resources",
            cut,
        )
        try:
            templates = await _all(
                lambda cursor: client.list_resource_templates(cursor=cursor),
                lambda page: page.resource_templates,
                "resource templates",
                cut,
            )
        except MCPError as error:
            if error.code != types.METHOD_NOT_FOUND:  # many servers have none
                raise
    return ServerCatalog(
        tools=tuple(tools),
        prompts=tuple(prompts),
        resources=tuple(resources),
        templates=tuple(templates),
        cut=tuple(cut),
    )


async def _all(
    fetch: Callable[[str | None], Awaitable[PageT]],
    entries_of: Callable[[PageT], list[T]],
    name: str,
    cut: list[str],
) -> list[T]:
    found: list[T] = []
    cursor: str | None = None
    for _ in range(_PAGES):
        page = await fetch(cursor)
        found += entries_of(page)
        cursor = page.next_cursor
        if not cursor or len(found) > LONGEST:
            break
    if cursor or len(found) > LONGEST:
        cut.append(name)
    return found[:LONGEST]
