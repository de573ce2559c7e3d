"""Requests through httpx2: where a proxy is configured, and those of the clouds' packages."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import httpx2

from acp_agent.config.certificates import tls_verification
from acp_agent.config.loopback import no_proxy_mounts
from acp_agent.models.http.client import CONNECT_SECONDS, OK, StatusError

_READ_AHEAD = 1024 * 1024  # bytes held for a reader that is slower than the model


def timeouts() -> httpx2.Timeout:
    """Return the time limits of requests; the others are those of `retries`."""
    return httpx2.Timeout(None, connect=CONNECT_SECONDS, pool=CONNECT_SECONDS)


class ProxiedClient:
    """A `Client` that asks the environment for a proxy; see `make_client`."""

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
    """A response's body, read ahead by a task so that a batch is all that came at once.

    httpx2 gives every HTTP chunk by itself, however many came with one read. The task takes them
    without waiting, and its reader runs when there is nothing more to take.
    """

    def __init__(self, response: httpx2.Response) -> None:
        self.headers: Mapping[str, str] = response.headers
        self._response = response
        self._ready: list[bytes] = []
        self._size = 0
        self._arrived = asyncio.Event()
        self._wanted = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._read())

    async def read(self) -> bytes | None:
        """Return all that has come; None at the end. See `Body`."""
        while not self._ready:
            if self._task.done():
                self._task.result()
                return None
            self._arrived.clear()
            await self._arrived.wait()
        received, self._ready, self._size = b"".join(self._ready), [], 0
        self._wanted.set()
        return received

    async def _read(self) -> None:
        try:
            async for chunk in self._response.aiter_bytes():
                self._ready.append(chunk)
                self._size += len(chunk)
                self._arrived.set()
                if self._size > _READ_AHEAD:
                    self._wanted.clear()
                    await self._wanted.wait()
        finally:
            # The reader looks after this task is done, at the loop's next turn.
            asyncio.get_running_loop().call_soon(self._arrived.set)

    async def close(self) -> None:
        """Close the connection, unless the body was read to its end."""
        self._task.cancel()
        try:
            # Not the task itself: its cancellation could not be told from that of whoever waits.
            await asyncio.wait([self._task])
            if not self._task.cancelled():
                self._task.exception()  # told already, or of no interest any more
        finally:
            await self._response.aclose()
