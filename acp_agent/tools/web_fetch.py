"""Read a page of the web."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal
from urllib.parse import urlsplit

from pydantic import Field

from acp_agent.content import JsonObject, text_part
from acp_agent.errors import ToolError
from acp_agent.events import ToolKind
from acp_agent.permissions.access import FetchAccess
from acp_agent.tools.base import NOTHING, Outcome, Prepared, Progress, Tool, ToolParams, Touches
from acp_agent.tools.quoting import code_block, first_line, shorten

if TYPE_CHECKING:
    from acp_agent.workspace.page_reader import Page  # imports an HTTP client

TEXT_LIMIT = 48_000  # characters of a page that the model is sent
MAX_SHOWN_LENGTH = 2_000  # characters of it that the call shows
TIMEOUT = 30.0  # seconds for a page
_MAX_TITLE = 120


class WebFetchParams(ToolParams):
    """The web_fetch tool's parameters."""

    url: Annotated[str, Field(min_length=1)]


class WebFetchTool(Tool[WebFetchParams]):
    """Reads a page of the public web."""

    name: ClassVar[str] = "web_fetch"
    kind: ClassVar[ToolKind] = "fetch"
    effect: ClassVar[Literal["reads", "writes"]] = "reads"
    params: ClassVar[type[WebFetchParams]] = WebFetchParams
    # Touches no files of the user.
    touched: ClassVar[Touches | None] = NOTHING

    def title(self, arguments: JsonObject) -> str:
        """Return the host and path received so far."""
        url = arguments.get("url")
        return _title(url) if isinstance(url, str) else self.name

    async def prepare(self, params: WebFetchParams) -> Prepared:
        """Show the whole address: its query is part of what would be sent."""
        url = params.url.strip()
        try:
            url_parts = urlsplit(url)
            is_usable = url_parts.scheme in {"http", "https"} and url_parts.hostname
        except ValueError:
            is_usable = False
        if not is_usable:
            raise ToolError(
                "this is not an http or https address", advice="give it with http:// or https://"
            )
        await self.workspace.network.check(url)  # before the user is asked
        return Prepared(
            title=_title(url),
            run=functools.partial(self._run, url),
            access=FetchAccess(url, user_named=await self.workspace.network.is_named(url)),
            content=(text_part(_quote(url)),),
        )

    async def _run(self, url: str, _progress: Progress) -> Outcome:
        page = await self.workspace.network.fetch(url, limit=TEXT_LIMIT, timeout=TIMEOUT)
        if 300 <= page.status < 400:
            redirect_text = f"HTTP {page.status}: this address leads to another host"
            return Outcome(
                text=f"{redirect_text}; fetch {page.url}",
                content=(text_part(f"{redirect_text}\n{_quote(page.url)}"),),
                raw_output=_raw_output(page),
            )
        failed = page.status >= 400
        header = f"{page.url} (HTTP {page.status}{', cut off' if page.truncated else ''})"
        body = page.text if page.text.strip() else "[the page has no text]"
        user_text = code_block(shorten(body, MAX_SHOWN_LENGTH), "")
        return Outcome(
            text=f"{header}\n\n{body}",
            failed=failed,
            content=(text_part(f"HTTP {page.status}\n{user_text}"),),
            raw_output=_raw_output(page),
        )


def _title(url: str) -> str:
    """Return the host and path; the content of the call shows the whole URL."""
    try:
        url_parts = urlsplit(url.strip())
        location = f"{url_parts.hostname or ''}{url_parts.path}".rstrip("/")
    except ValueError:
        location = url
    return f"Fetch {first_line(location or url, _MAX_TITLE)}".rstrip()


def _quote(url: str) -> str:
    return code_block(first_line(url, MAX_SHOWN_LENGTH), "")


def _raw_output(page: Page) -> JsonObject:
    return {
        "url": page.url,
        "status": page.status,
        "media_type": page.media_type,
        "truncated": page.truncated,
    }
