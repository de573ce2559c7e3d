"""Web search services: select the configured one and send queries to it.

Sources: https://docs.searxng.org/dev/search_api.html,
https://api-dashboard.search.brave.com/app/documentation/web-search/get-started,
https://docs.tavily.com/documentation/api-reference/endpoint/search
"""

from __future__ import annotations

import asyncio
import html
import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlencode, urlsplit

from msgspec import Struct

from acp_agent.config.certificates import tls_verification
from acp_agent.config.network_addresses import no_proxy_mounts
from acp_agent.content import JsonObject
from acp_agent.errors import WorkspaceError
from acp_agent.workspace.threads import in_daemon_thread

if TYPE_CHECKING:
    import httpx2

    from acp_agent.config.types import WebSearchConfig

MAX_RESULTS = 10
_MAX_BYTES = 2_000_000  # of a response
_MAX_TITLE = 200  # characters
_MAX_TEXT = 500
Service = Literal["searxng", "brave", "tavily"]
_ADDRESSES: Mapping[Service, str] = {
    "brave": "https://api.search.brave.com",
    "tavily": "https://api.tavily.com",
}
# Variables with these endings are removed from commands' environments and scrubbed from outputs.
_KEY_VARIABLES: Mapping[Service, tuple[str, ...]] = {
    "brave": ("BRAVE_API_KEY", "BRAVE_SEARCH_API_KEY"),
    "tavily": ("TAVILY_API_KEY",),
}


class SearchResult(Struct, frozen=True):
    """A search result."""

    title: str
    url: str
    text: str


class SearchResults(Struct, frozen=True):
    """The results of a search, best first, and a summary of them."""

    pages: Sequence[SearchResult]
    summary: str = ""


class SearchService(Struct, frozen=True):
    """A configured search service. `base_url` has no trailing slash."""

    kind: Service
    base_url: str
    key: str = ""

    def __repr__(self) -> str:
        return f"SearchService({self.kind!r}, {self.base_url!r})"  # the key stays out of logs

    def address(self, query: str) -> str:
        """Return the request URL. It lacks the query if the service takes that in the body."""
        if self.kind == "tavily":
            return f"{self.base_url}/search"
        if self.kind == "brave":
            query_fields = {"q": query, "count": MAX_RESULTS, "text_decorations": "false"}
            return f"{self.base_url}/res/v1/web/search?{urlencode(query_fields)}"
        return f"{self.base_url}/search?{urlencode({'q': query, 'format': 'json'})}"

    async def search(self, query: str, *, timeout: float) -> SearchResults:
        """Return the pages found for a query; `timeout` is in seconds, for the whole search.

        Raises:
            WorkspaceError: there is no usable response.
            ConfigError: the configured TLS certificates cannot be used.
        """
        # Importing the HTTP client takes 0.1 s, and a session may never search.
        await in_daemon_thread(_load)
        import httpx2  # noqa: PLC0415 - loaded late, see above

        host = urlsplit(self.base_url).netloc
        try:
            async with asyncio.timeout(timeout):
                body = await self._request(query, host)
        except TimeoutError:
            raise WorkspaceError(
                f"no answer from the search service {host} within {timeout:g} s"
            ) from None
        except httpx2.HTTPError as error:
            reason = " ".join(str(error).split())[:200] or type(error).__name__
            raise WorkspaceError(f"cannot reach the search service {host}: {reason}") from None
        return SearchResults(_read(body, self.kind, host))

    async def _request(self, query: str, host: str) -> bytes:
        import httpx2  # noqa: PLC0415 - loaded late, as in `search`

        headers = {"Accept": "application/json"}
        if self.kind == "brave":
            headers["X-Subscription-Token"] = self.key
        elif self.kind == "tavily":
            headers["Authorization"] = f"Bearer {self.key}"
        url = self.address(query)
        body_fields = (
            {"query": query, "max_results": MAX_RESULTS} if self.kind == "tavily" else None
        )
        async with (
            httpx2.AsyncClient(
                verify=tls_verification(url), mounts=no_proxy_mounts(url), timeout=None
            ) as client,
            client.stream(
                "POST" if body_fields else "GET", url, json=body_fields, headers=headers
            ) as response,
        ):
            if response.status_code != 200:
                raise WorkspaceError(
                    f"the search service {host} answered with HTTP {response.status_code}",
                    advice=_advice(self.kind, response),
                )
            body = bytearray()
            async for piece in response.aiter_bytes():
                body += piece
                if len(body) > _MAX_BYTES:
                    raise WorkspaceError(f"the answer of the search service {host} is too long")
        return bytes(body)


def select_service(config: WebSearchConfig, environ: Mapping[str, str]) -> SearchService | None:
    """Return the service to use, or None if none is configured or searching is off."""
    kinds: tuple[Service, ...]
    match config.service:
        case "off" | "provider":
            return None
        case "auto":
            kinds = ("searxng",) if config.base_url else ("searxng", "brave", "tavily")
        case named:
            kinds = (named,)
    for kind in kinds:
        address = config.base_url or _ADDRESSES.get(kind) or environ.get("SEARXNG_URL", "").strip()
        key = next(
            (
                key
                for name in _KEY_VARIABLES.get(kind, ())
                if (key := environ.get(name, "").strip())
            ),
            "",
        )
        is_usable = key.isascii() and key.isprintable() and (key or kind not in _KEY_VARIABLES)
        if is_usable and address.startswith(("http://", "https://")):
            return SearchService(kind, address.rstrip("/"), key)
    return None


def _load() -> None:
    import httpx2  # noqa: F401, PLC0415 - loaded late, as in `search`


def _advice(kind: Service, response: httpx2.Response) -> str:
    if kind == "searxng" and response.status_code == 403:
        return "tell the user that its settings must list json under search.formats"
    if response.status_code in {401, 403}:
        return "tell the user that the service refuses the key"
    if response.status_code in {402, 432, 433}:  # Tavily's numbers for its plans
        return "tell the user that the plan's limit is reached; go on without a search"
    if response.status_code == 429:
        headers = response.headers
        wait: str = headers.get("retry-after") or headers.get("x-ratelimit-reset") or ""
        seconds = wait.partition(",")[0].strip()  # Brave's is for the second, then for the month
        when = f"after {seconds} s" if seconds.isdecimal() else "later"
        return f"it limits requests: search again {when}, or go on without"
    return "go on without a search, or try once more later"


def _read(body: bytes, kind: Service, host: str) -> list[SearchResult]:
    """Return the results in a response body, without those that have no web address."""
    engines: object = None
    try:
        answer = json.loads(body)
        if kind == "brave":  # Brave omits `web` if nothing was found
            answer = answer.get("web") or {"results": []}
        results, engines = answer["results"], answer.get("unresponsive_engines")
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        results = None
    if not isinstance(results, list):
        raise WorkspaceError(f"the search service {host} gave no list of results")
    if engines and not results:
        raise WorkspaceError(
            f"the engines of the search service {host} did not answer",
            advice=f"go on without a search, or try once more later: {_line(str(engines), 200)}",
        )
    pages = [_page(result) for result in results if isinstance(result, dict)]
    return [page for page in pages if page.url.startswith(("http://", "https://"))][:MAX_RESULTS]


def _page(result: JsonObject) -> SearchResult:
    text = result.get("content") or result.get("description")
    return SearchResult(
        _line(result.get("title"), _MAX_TITLE),
        _line(result.get("url"), 2_000),
        _line(text, _MAX_TEXT),
    )


def _line(value: object, limit: int) -> str:
    """Return a text on one line, with HTML entities decoded, cut off at a limit."""
    line = " ".join(html.unescape(value).split()) if isinstance(value, str) else ""
    return line if len(line) <= limit else f"{line[: limit - 1]}…"
