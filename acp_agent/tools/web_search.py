"""Searches the web with the service that the user set up."""

from __future__ import annotations

import functools
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import FetchAccess
from acp_agent.tools.base import NOTHING, Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.quoting import code_block, escape_markdown, first_line
from acp_agent.workspace.search_services import FoundPage, SearchService
from acp_agent.workspace.workspace import Workspace

TIMEOUT = 20.0  # seconds for an answer
_LONGEST = 400  # characters of a query, the least that a service takes (Brave)
_TITLE_LIMIT = 120


class WebSearchParams(ToolParams):
    """The web_search tool's parameters."""

    query: Annotated[str, Field(min_length=1)]


class WebSearchTool(Tool[WebSearchParams]):
    """Asks a search service for pages."""

    name: ClassVar[str] = "web_search"
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[WebSearchParams]] = WebSearchParams
    # None of the user's files.
    touched: ClassVar[Touches | None] = NOTHING

    def __init__(
        self, workspace: Workspace, service: SearchService, *, timeout: float = TIMEOUT
    ) -> None:
        """Args: timeout: seconds for a whole answer."""
        super().__init__(workspace)
        self._service = service
        self._timeout = timeout

    def title(self, arguments: JsonObject) -> str:
        """The query, as far as it has come."""
        query = arguments.get("query")
        line = first_line(query, _TITLE_LIMIT) if isinstance(query, str) else ""
        return f"Search the web for {line}" if line else "Search the web"

    async def prepare(self, params: WebSearchParams) -> Prepared:
        """Show the whole query and where it would be sent."""
        query = " ".join(params.query.split())
        if not query:
            raise ToolError("the query is empty", advice="give words to search for")
        if len(query) > _LONGEST:
            raise ToolError(
                f"the query is longer than {_LONGEST} characters", advice="use fewer words"
            )
        address = self._service.address(query)
        return Prepared(
            title=self.title({"query": query}),
            run=functools.partial(self._run, query),
            access=FetchAccess(address),
            content=(text_part(code_block(first_line(query, _LONGEST), "")),),
        )

    async def _run(self, query: str, progress: Progress) -> Outcome:
        del progress
        pages = await self._service.search(query, timeout=self._timeout)
        sources: JsonObject = {"sources": [{"title": one.title, "url": one.url} for one in pages]}
        if not pages:
            return Outcome(
                text="No pages were found; try other words.",
                content=(text_part("No pages were found."),),
                raw_output=sources,
            )
        listed = [f"{n}. {one.title}\n{one.url}\n{one.text}" for n, one in enumerate(pages, 1)]
        return Outcome(
            text="\n\n".join(listed),
            content=(text_part("\n".join(map(_shown, pages))),),
            raw_output=sources,
        )


def _shown(page: FoundPage) -> str:
    return f"- {escape_markdown(page.title or page.url)}: <{_plain(page.url)}>"


def _plain(url: str) -> str:
    """An address that ends no Markdown link before its own end."""
    return url.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
