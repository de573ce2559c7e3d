"""List what a server offers, within limits."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeVar

import mcp_types as types
from mcp import MCPError
from mcp.client.client import Client
from msgspec import Struct

from acp_agent.content import printable_line
from acp_agent.extensions.mcp.sanitizer import MAX_ENTRIES

_MAX_PAGES = 50  # pages of one list
_MAX_ERROR = 200  # characters of a server's error
T = TypeVar("T")


class ServerCatalog(Struct, frozen=True, kw_only=True):
    """A server's lists.

    `unusable` are the names of malformed tools, `cut` the names of lists that were shortened,
    `failures` the errors with which the server answered for lists other than that of its tools.
    """

    tools: tuple[types.Tool, ...] = ()
    prompts: tuple[types.Prompt, ...] = ()
    resources: tuple[types.Resource, ...] = ()
    templates: tuple[types.ResourceTemplate, ...] = ()
    unusable: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


class _Page(Protocol):
    @property
    def next_cursor(self) -> str | None: ...


PageT = TypeVar("PageT", bound=_Page)


async def list_catalog(client: Client) -> ServerCatalog:
    """Request each list that the server declares.

    Raises:
        MCPError: the server cannot list its tools, or is disconnected.
        ValueError: an answer has the wrong shape.
    """
    capabilities = client.server_capabilities
    cut: list[str] = []
    failures: list[str] = []
    tools: list[types.Tool] = []
    prompts: list[types.Prompt] = []
    resources: list[types.Resource] = []
    templates: list[types.ResourceTemplate] = []
    if capabilities.tools is not None:
        tools = await _fetch_all(
            lambda cursor: client.list_tools(cursor=cursor), lambda page: page.tools, "tools", cut
        )
    if capabilities.prompts is not None:
        prompts = await _try_fetch_all(
            lambda cursor: client.list_prompts(cursor=cursor),
            lambda page: page.prompts,
            "prompts",
            cut,
            failures,
        )
    if capabilities.resources is not None:
        resources = await _try_fetch_all(
            lambda cursor: client.list_resources(cursor=cursor),
            lambda page: page.resources,
            "resources",
            cut,
            failures,
        )
        templates = await _try_fetch_all(
            lambda cursor: client.list_resource_templates(cursor=cursor),
            lambda page: page.resource_templates,
            "resource templates",
            cut,
            failures,
        )
    return ServerCatalog(
        tools=tuple(tools),
        prompts=tuple(prompts),
        resources=tuple(resources),
        templates=tuple(templates),
        cut=tuple(cut),
        failures=tuple(failures),
    )


async def _try_fetch_all(
    fetch: Callable[[str | None], Awaitable[PageT]],
    get_entries: Callable[[PageT], list[T]],
    name: str,
    cut: list[str],
    failures: list[str],
) -> list[T]:
    """Return a list, or record the server's error for it.

    Servers that do not know the list are no error.
    """
    try:
        return await _fetch_all(fetch, get_entries, name, cut)
    except MCPError as error:
        if error.code == types.CONNECTION_CLOSED:
            raise
        if error.code != types.METHOD_NOT_FOUND:
            failures.append(f"{name}: {printable_line(str(error))[:_MAX_ERROR]}")
        return []


async def _fetch_all(
    fetch: Callable[[str | None], Awaitable[PageT]],
    get_entries: Callable[[PageT], list[T]],
    name: str,
    cut: list[str],
) -> list[T]:
    entries: list[T] = []
    cursor: str | None = None
    for _ in range(_MAX_PAGES):
        page = await fetch(cursor)
        entries += get_entries(page)
        cursor = page.next_cursor
        if not cursor or len(entries) > MAX_ENTRIES:
            break
    if cursor or len(entries) > MAX_ENTRIES:
        cut.append(name)
    return entries[:MAX_ENTRIES]
