"""The public network of one session. Requests are made by `page_reader`, which loads late."""

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
    from acp_agent.config.public_addresses import Resolve
    from acp_agent.workspace.http_requests import HttpRequest, HttpResponse
    from acp_agent.workspace.page_reader import Page, PageReader


class IsNamed(Protocol):
    """Tells whether an address was named."""

    async def __call__(self, url: str, *, by_user: bool = False) -> bool:
        """Return what `GuardedNetwork.is_named` does."""
        ...


async def system_resolve(host: str, port: int) -> Sequence[str]:
    """All addresses of a host, from the system's resolver.

    Raises:
        OSError: the name is not known, or no name server answers.
    """
    # As bytes, so that Python's own, older IDNA encoding stays out of it.
    found = await in_daemon_thread(
        functools.partial(socket.getaddrinfo, host.encode("ascii"), port, type=socket.SOCK_STREAM)
    )
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class GuardedNetwork:
    """Get pages over HTTP from public addresses alone; see `page_reader` for the guard."""

    def __init__(
        self,
        *,
        resolve: Resolve = system_resolve,
        allow: Collection[tuple[str, int]] = (),
        tls: ssl.SSLContext | None = None,
        is_named: IsNamed | None = None,
        confine: Confine = unconfined,
    ) -> None:
        """Opens nothing yet.

        Args:
            resolve: gives a host's addresses.
            allow: addresses with their port that may be reached although they are not public.
            tls: how servers are verified; None takes the system's certificates.
            is_named: see the method; None: nothing is.
            confine: says how the program is started that makes text of pages.
        """
        self._is_named = is_named
        self._confine = confine
        self._resolve = resolve
        self._allow = frozenset(allow)
        self._tls = tls
        self._reader: PageReader | None = None
        self._problem: str | None = None  # with the certificates, which only https needs

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Page:
        """Get a page; `limit` is in characters of its text, `timeout` in seconds for all of it.

        A redirect to another host gives a page without text: its status is the redirect's and its
        `url` the address that it leads to.

        Raises:
            WorkspaceError: not http(s), a private or reserved address at any step, a kind of page
                that is not text, or a failure.
        """
        reader = await self._reader_for(url)
        return await reader.fetch(url, limit=limit, timeout=timeout)

    async def request(self, request: HttpRequest, *, limit: int, timeout: float) -> HttpResponse:
        """Send a request of any method; the arguments are those of `fetch`.

        A redirect to another place is not followed, and none of a request that may change
        something: the response says where it leads.

        Raises:
            WorkspaceError: not http(s), a private or reserved address at any step, or a failure.
        """
        from acp_agent.workspace.http_requests import exchange  # noqa: PLC0415 - as in `_load`

        reader = await self._reader_for(request.url)
        return await exchange(reader, request, limit=limit, timeout=timeout)

    async def is_named(self, url: str, *, by_user: bool = False) -> bool:
        """Return whether the user named the host of an address, or a search found the address.

        With `by_user`, what a search found does not count.
        """
        return self._is_named is not None and await self._is_named(url, by_user=by_user)

    async def check(self, url: str) -> None:
        """Refuse an address that `fetch` would refuse without looking its name up.

        Nothing leaves this computer: the name server may belong to the author of the address.

        Raises:
            WorkspaceError: not http(s), or a private or reserved address.
        """
        (await self._loaded()).check(url)

    async def _reader_for(self, url: str) -> PageReader:
        reader = await self._loaded()
        if self._problem is not None and url.lower().startswith("https:"):
            raise WorkspaceError(self._problem)
        return reader

    async def _loaded(self) -> PageReader:
        if self._reader is None:
            # An HTTP client takes a tenth of a second to import, and most sessions fetch nothing.
            self._reader = await in_daemon_thread(self._load)
        return self._reader

    def _load(self) -> PageReader:
        import httpx2  # noqa: PLC0415 - loaded late, as said in `_loaded`

        from acp_agent.workspace.page_reader import PageReader  # noqa: PLC0415 - likewise

        tls = self._tls
        if tls is None:
            self._problem = certificate_problem()
            tls = httpx2.create_ssl_context() if self._problem is None else empty_tls_context()
        return PageReader(resolve=self._resolve, allow=self._allow, tls=tls, confine=self._confine)
