"""Requests through httpx2, for proxies and for the packages of clouds."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx2

from acp_agent.config.certificates import tls_verification
from acp_agent.config.network_addresses import no_proxy_mounts
from acp_agent.models.http.client import CONNECT_SECONDS, OK, StatusError

_READ_AHEAD = 1024 * 1024  # the most bytes buffered for a slow reader


def timeouts() -> httpx2.Timeout:
    """Return the time limits for connecting; the other limits are in `retries`."""
    return httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)


class ProxiedClient:
    """A `Client` that uses a proxy from the environment; see `make_client`."""

    def __init__(self, base_url: str, headers: Mapping[str, str]) -> None:
        address, _, self._query = base_url.partition("?")
        self._address = address.rstrip("/")
        self._client = httpx2.AsyncClient(
            headers=headers,
            timeout=timeouts(),
            follow_redirects=False,
            mounts=no_proxy_mounts(base_url),
            verify=tls_verification(base_url),
        )

    async def post(self, path: str, body: bytes) -> HttpxBody:
        """Send a request; see `Client`."""
        path, _, query = path.partition("?")
        query = "&".join(filter(None, (self._query, query)))
        url = f"{self._address}{path}{f'?{query}' if query else ''}"
        request = self._client.build_request("POST", url, content=body)
        response = await self._client.send(request, stream=True)
        if response.status_code != OK:
            try:
                await response.aread()
            finally:
                await response.aclose()
            raise StatusError(response.status_code, response.headers, response.content)
        return HttpxBody(response)

    async def connect(self) -> None:
        """Do nothing: httpx2 connects with the first request."""

    async def aclose(self) -> None:
        """Close every connection."""
        await self._client.aclose()


class HttpxBody:
    """A response's body. A task reads ahead, so that one read returns all data that has arrived.

    httpx2 yields each HTTP chunk separately, even if one read of the socket gave several. The task
    collects the chunks without waiting, and the reader runs when no more are available.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._ready: list[bytes] = []
        self._size = 0
        self._arrived = asyncio.Event()
        self._resume = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def read(self) -> bytes | None:
        """Wait for data and return all of it, or None at the end; see `Body`."""
        while not self._ready:
            if self._task.done():
                self._task.result()
                return None
            self._arrived.clear()
            await self._arrived.wait()
        received, self._ready, self._size = b"".join(self._ready), [], 0
        self._resume.set()
        return received

    async def _read(self) -> None:
        try:
            async for chunk in self._response.aiter_bytes():
                self._ready.append(chunk)
                self._size += len(chunk)
                self._arrived.set()
                if self._size > _READ_AHEAD:
                    self._resume.clear()
                    await self._resume.wait()
        finally:
            # Wake the reader in the next iteration of the loop, when this task is done.
            asyncio.get_running_loop().call_soon(self._arrived.set)

    async def close(self) -> None:
        """Close the connection, unless the whole body was read."""
        self._task.cancel()
        try:
            # Awaiting the task itself would not distinguish its cancellation from the caller's.
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # marks the exception as retrieved
        finally:
            await self._response.aclose()
