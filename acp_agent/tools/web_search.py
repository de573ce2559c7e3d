"""Search the web with the service that the user configured."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Annotated, ClassVar, Literal, Protocol

from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import FetchAccess
from acp_agent.tools.base import NOTHING, Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.quoting import code_block, escape_markdown, first_line
from acp_agent.workspace.search_services import SearchResults
from acp_agent.workspace.workspace import Workspace

TIMEOUT = 20.0  # seconds for an answer
_MAX_QUERY = 400  # characters of a query, the least that a service takes (Brave)
_MAX_TITLE = 120


class Searcher(Protocol):
    """A search service, or a provider of models that can search the web."""

    def address(self, query: str) -> str:
        """Return the address that a query is sent to; permission is asked for its host."""

    async def search(self, query: str, *, timeout: float) -> SearchResults:
        """Return pages. `timeout` is the total time in seconds.

        Raises:
            AcpAgentError: the service did not answer, or the answer is invalid.
        """


class WebSearchParams(ToolParams):
    """The web_search tool's parameters."""

    query: Annotated[str, Field(min_length=1)]


class WebSearchTool(Tool[WebSearchParams]):
    """Searches the web."""

    name: ClassVar[str] = "web_search"
    kind: ClassVar[ToolKind] = "search"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[WebSearchParams]] = WebSearchParams
    # Touches no files of the user.
    touched: ClassVar[Touches | None] = NOTHING

    def __init__(
        self, workspace: Workspace, service: Searcher, *, timeout: float = TIMEOUT
    ) -> None:
        """Args: timeout: seconds for a whole answer."""
        super().__init__(workspace)
        self.service = service
        self._timeout = timeout

    def title(self, arguments: JsonObject) -> str:
        """Return the query received so far."""
        query = arguments.get("query")
        return search_title(query if isinstance(query, str) else "")

    async def prepare(self, params: WebSearchParams) -> Prepared:
        """Show the whole query and where it would be sent."""
        query = " ".join(params.query.split())
        if not query:
            raise ToolError("the query is empty", advice="give words to search for")
        if len(query) > _MAX_QUERY:
            raise ToolError(
                f"the query is longer than {_MAX_QUERY} characters", advice="use fewer words"
            )
        address = self.service.address(query)
        return Prepared(
            title=self.title({"query": query}),
            run=functools.partial(self._run, query),
            access=FetchAccess(address, search=True),
            content=(text_part(code_block(first_line(query, _MAX_QUERY), "")),),
        )

    async def _run(self, query: str, _progress: Progress) -> Outcome:
        results = await self.service.search(query, timeout=self._timeout)
        links = [(page.title, page.url) for page in results.pages]
        sources: JsonObject = {"sources": [{"title": title, "url": url} for title, url in links]}
        if not results.pages and not results.summary:
            return Outcome(
                text="No pages were found; try other words.",
                content=(text_part("No pages were found."),),
                raw_output=sources,
            )
        sections = [results.summary] if results.summary else []
        sections += [
            f"{n}. {page.title}\n{page.url}\n{page.text}".rstrip()
            for n, page in enumerate(results.pages, 1)
        ]
        return Outcome(
            text="\n\n".join(sections),
            content=(text_part(page_list(links) or "No pages were named."),),
            raw_output=sources,
        )


def search_title(query: str) -> str:
    """Return the title of a search; the query may be unknown yet."""
    line = first_line(query, _MAX_TITLE)
    return f"Search the web for {line}" if line else "Search the web"


def page_list(pages: Iterable[tuple[str, str]]) -> str:
    """Return pages, each a title, which may be empty, and an address, as a Markdown list."""
    rows = [
        (escape_markdown(first_line(title, _MAX_TITLE)), _escape_url(url)) for title, url in pages
    ]
    return "\n".join(f"- {title}: <{url}>" if title else f"- <{url}>" for title, url in rows)


def _escape_url(url: str) -> str:
    """Return a URL escaped so that it does not end a Markdown link early."""
    return url.replace("<", "%3C").replace(">", "%3E").replace(" ", "%20")
