"""Send HTTP requests with any method to the public network, with the checks of `page_reader`.

A redirect is followed only for GET and HEAD, and only to the same host and port, for which the
request and its headers were permitted. Every other redirect is returned.
"""

from __future__ import annotations

from collections.abc import Mapping

import httpx2
from msgspec import Struct

from acp_agent.errors import WorkspaceError
from acp_agent.workspace.page_reader import (
    BODY_LIMIT,
    MAX_REDIRECTS,
    PageReader,
    body_text,
    check_url,
    is_text,
    parse_media_type,
    read_body,
    redirect_target,
    request_limits,
)

SAFE_METHODS = frozenset({"GET", "HEAD"})
_ACCEPT = "application/json, text/*;q=0.9, */*;q=0.5"


class HttpRequest(Struct, frozen=True, kw_only=True):
    """A request; its method is in upper case."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None


class HttpResponse(Struct, frozen=True, kw_only=True):
    """A response. `text` is None if the body is not text; `size` is its size after decompression.

    `redirect_url` is the target of a redirect that was not followed. `truncated` is true if the
    body or its text was cut off at a limit.
    """

    url: str
    status: int
    headers: tuple[tuple[str, str], ...]
    media_type: str
    text: str | None
    size: int
    truncated: bool = False
    redirect_url: str = ""


async def exchange(
    reader: PageReader, request: HttpRequest, *, limit: int, timeout: float
) -> HttpResponse:
    """Send a request and return the response; see `GuardedNetwork.request`."""
    async with request_limits(request.url, timeout), reader.client() as client:
        client.headers["Accept"] = _ACCEPT
        address = check_url(request.url)
        for _ in range(MAX_REDIRECTS + 1):
            response = await reader.send(
                client, address, method=request.method, headers=request.headers, body=request.body
            )
            try:
                location = response.headers.get("location")
                if not response.is_redirect or location is None:
                    return await _read(reader, response, address, limit)
                target = redirect_target(address, location)
                if request.method not in SAFE_METHODS or not _is_same_host(address, target):
                    return await _read(reader, response, address, limit, redirect_url=str(target))
            finally:
                await response.aclose()
            address = target
    raise WorkspaceError(f"{address.host} redirects more than {MAX_REDIRECTS} times")


def _is_same_host(address: httpx2.URL, target: httpx2.URL) -> bool:
    """Return whether a redirect stays on the host and port; http may change to https."""
    if address.host != target.host:
        return False
    if (address.scheme, address.port) == (target.scheme, target.port):
        return True
    return (address.scheme, target.scheme) == ("http", "https") and not (
        address.port or target.port
    )


async def _read(
    reader: PageReader,
    response: httpx2.Response,
    url: httpx2.URL,
    limit: int,
    redirect_url: str = "",
) -> HttpResponse:
    body = await read_body(response)
    media_type = parse_media_type(response)
    text: str | None = None
    if not body:
        text = ""
    elif is_text(media_type) and (media_type or b"\0" not in body[:1024]):
        text = await body_text(body[:BODY_LIMIT], response, url, limit + 1, reader.confine)
    return HttpResponse(
        url=str(url),
        status=response.status_code,
        headers=tuple(response.headers.multi_items()),
        media_type=media_type,
        text=None if text is None else text[:limit],
        size=len(body),
        truncated=len(body) > BODY_LIMIT or (text is not None and len(text) > limit),
        redirect_url=redirect_url,
    )
