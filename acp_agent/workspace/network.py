"""Network access of a session. `page_reader` makes the requests; it is imported on first use."""

from __future__ import annotations

import functools
import socket
import ssl
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

from acp_agent.config.certificates import certificate_problem, empty_tls_context
from acp_agent.errors import WorkspaceError
from acp_agent.sandbox.launch import Confine, unconfined
from acp_agent.workspace.threads import in_daemon_thread

if TYPE_CHECKING:
    from acp_agent.config.network_addresses import Resolve
    from acp_agent.workspace.http_requests import HttpRequest, HttpResponse
    from acp_agent.workspace.page_reader import Page, PageReader


class IsNamed(Protocol):
    """A callable that returns whether an address was named."""

    async def __call__(self, url: str, *, by_user: bool = False) -> bool:
        """Return whether an address was named; see `GuardedNetwork.is_named`."""


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """Return all addresses of a host from the system's resolver.

    Raises:
        OSError: the name is unknown, or no name server answers.
    """
    # Bytes bypass Python's own, older IDNA encoding.
    entries = await in_daemon_thread(
        functools.partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class GuardedNetwork:
    """Fetches pages over HTTP from public addresses only; `page_reader` describes the checks."""

    def __init__(
        self,
        *,
        resolve: Resolve = system_resolve,
        allow: Collection[tuple[str, int]] = (),
        tls: ssl.SSLContext | None = None,
        is_named: IsNamed | None = None,
        confine: Confine = unconfined,
    ) -> None:
        """Create an instance; no connection is opened yet.

        Args:
            resolve: returns a host's addresses.
            allow: pairs of address and port that are allowed although they are not public.
            tls: the TLS context; None for the system's certificates.
            is_named: see the method; None means that no address is named.
            confine: wraps the command line of the program that converts pages to text.
        """
        self._is_named = is_named
        self._confine = confine
        self._resolve = resolve
        self._allow = frozenset(allow)
        self._tls = tls
        self._reader: PageReader | None = None
        self._problem: str | None = None  # with the certificates, which only https needs

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Page:
        """Return a page with at most `limit` characters; `timeout` is the total time in seconds.

        A redirect to another host returns a page without text, with the redirect's status and its
        target as `url`.

        Raises:
            WorkspaceError: the address is not http(s), an address on the way is private or
                reserved, the page is not text, or the request failed.
        """
        reader = await self._reader_for(url)
        return await reader.fetch(url, limit=limit, timeout=timeout)

    async def request(self, request: HttpRequest, *, limit: int, timeout: float) -> HttpResponse:
        """Send a request with any method; `limit` and `timeout` are as in `fetch`.

        Redirects to another host or port, and redirects of requests that may change something,
        are not followed: the response has their target.

        Raises:
            WorkspaceError: the address is not http(s), an address on the way is private or
                reserved, or the request failed.
        """
        from acp_agent.workspace.http_requests import exchange  # noqa: PLC0415 - as in `_load`

        reader = await self._reader_for(request.url)
        return await exchange(reader, request, limit=limit, timeout=timeout)

    async def is_named(self, url: str, *, by_user: bool = False) -> bool:
        """Return whether the user named the host of an address, or a search found the address.

        With `by_user`, search results do not count.
        """
        return self._is_named is not None and await self._is_named(url, by_user=by_user)

    async def check(self, url: str) -> None:
        """Check an address without resolving its host name.

        Sends nothing: the name server may belong to the author of the address.

        Raises:
            WorkspaceError: the address is not http(s), or is private or reserved.
        """
        (await self._loaded()).check(url)

    async def _reader_for(self, url: str) -> PageReader:
        reader = await self._loaded()
        if self._problem is not None and url.lower().startswith("https:"):
            raise WorkspaceError(self._problem)
        return reader

    async def _loaded(self) -> PageReader:
        if self._reader is None:
            # Importing the HTTP client takes 0.1 s, and most sessions fetch nothing.
            self._reader = await in_daemon_thread(self._load)
        return self._reader

    def _load(self) -> PageReader:
        import httpx2  # noqa: PLC0415 - loaded late, see `_loaded`

        from acp_agent.workspace.page_reader import PageReader  # noqa: PLC0415 - likewise

        tls = self._tls
        if tls is None:
            self._problem = certificate_problem()
            tls = httpx2.create_ssl_context() if self._problem is None else empty_tls_context()
        return PageReader(resolve=self._resolve, allow=self._allow, tls=tls, confine=self._confine)
