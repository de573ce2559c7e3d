"""The clouds with their own protocols: Amazon Bedrock, Google Vertex AI.

The clients of the SDKs handle the credentials, which differ most. The code for requests and answers
is shared with the other providers. The extra with the name of a cloud installs the packages that
the cloud needs.
"""

from __future__ import annotations

import binascii
import importlib.util
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import msgspec
from msgspec import Struct

from acp_agent.config.certificates import tls_verification
from acp_agent.config.network_addresses import no_proxy_mounts
from acp_agent.content import JsonObject
from acp_agent.errors import ConfigError
from acp_agent.models.providers import Provider, spelled
from acp_agent.models.stream_events import (
    EVENT_LIMIT,
    BadStreamError,
    EventTooLargeError,
    SseDecoder,
)
from acp_agent.platform.decoding import decode_json

if TYPE_CHECKING:
    from anthropic import AsyncAnthropicBedrock, AsyncAnthropicVertex
    from httpx2 import AsyncClient, Timeout


# Each cloud's name for the version of the Messages API, sent in the body.
_BEDROCK_VERSION = "bedrock-2023-05-31"
_VERTEX_VERSION = "vertex-2023-10-16"


# Decoding of Amazon Bedrock's binary event stream.
#
# https://docs.aws.amazon.com/AmazonS3/latest/API/RESTSelectObjectAppendix.html (the encoding) and
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ResponseStream.html (content).
# A message consists of: its length and the length of its headers (four bytes each), a CRC-32
# checksum of these eight bytes, the headers, the payload, and a checksum of everything before.

_PRELUDE = struct.Struct(">III")
_CHECKSUM = 4
_STRING = 7  # the only type of header that these streams use
# The sizes of values of other header types.
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}


class _Chunk(Struct):
    bytes: str | None = None


class _Exception(Struct):
    message: str = ""


class AwsEventStreamDecoder:
    """Splits the bytes of a stream into the data of its events, like `SseDecoder`."""

    def __init__(self, limit: int = EVENT_LIMIT) -> None:
        self._limit = limit
        self._buffer = bytearray()
        self._broken: ValueError | None = None

    def feed(self, received: bytes) -> list[bytes]:
        """Add bytes and return the data of every event that is complete now.

        An exception that the service reports is returned as an error event of the Messages API.

        Raises:
            EventTooLargeError: an event is larger than the limit.
            BadStreamError: a checksum or a length is wrong. If there are events before the error,
                they are returned, and the next call raises the error.
        """
        self._raise_if_broken()
        self._buffer += received
        complete: list[bytes] = []
        try:
            self._take_messages(complete)
        except ValueError as error:
            self._broken = error
            if not complete:
                raise
        return complete

    def _raise_if_broken(self) -> None:
        if self._broken is not None:
            raise self._broken

    def _take_messages(self, complete: list[bytes]) -> None:
        while len(self._buffer) >= _PRELUDE.size:
            size, headers_size, checksum = _PRELUDE.unpack_from(self._buffer)
            if zlib.crc32(self._buffer[:8]) != checksum:
                raise BadStreamError("the checksum of an event's lengths is wrong")
            if size > self._limit:
                raise EventTooLargeError(f"an event of the stream is larger than {self._limit}")
            if size < _PRELUDE.size + headers_size + _CHECKSUM:
                raise BadStreamError("an event is shorter than its own headers")
            if len(self._buffer) < size:
                break
            message = bytes(self._buffer[:size])
            del self._buffer[:size]
            data = _data(message, headers_size)
            if data is not None:
                complete.append(data)

    def end(self) -> list[bytes]:
        """Discard an incomplete event at the end of the stream, which has no checksum.

        Raises:
            EventTooLargeError, BadStreamError: see `feed`.
        """
        self._raise_if_broken()
        self._buffer.clear()
        return []


def _data(message: bytes, headers_size: int) -> bytes | None:
    checked = message[:-_CHECKSUM]
    if zlib.crc32(checked) != int.from_bytes(message[-_CHECKSUM:], "big"):
        raise BadStreamError("the checksum of an event is wrong")
    payload_start = _PRELUDE.size + headers_size
    headers = _headers(message[_PRELUDE.size : payload_start])
    payload = checked[payload_start:]
    kind = headers.get(":message-type", "event")
    if kind == "event":
        if headers.get(":event-type") != "chunk":
            return None
        encoded = decode_json(payload, _Chunk).bytes
        try:
            return None if encoded is None else binascii.a2b_base64(encoded)
        except binascii.Error:
            raise BadStreamError("the data of an event is no base64") from None
    if kind == "exception":
        name = headers.get(":exception-type", "exception")
        text = decode_json(payload, _Exception).message if payload else ""
    else:
        name, text = headers.get(":error-code", "error"), headers.get(":error-message", "")
    # Failures are classified by these names, such as `throttlingException`.
    error = {"type": name, "message": text or name}
    return msgspec.json.encode({"type": "error", "error": error})


def _headers(data: bytes) -> dict[str, str]:
    headers: dict[str, str] = {}
    offset = 0
    try:
        while offset < len(data):
            name_size = data[offset]
            name = data[offset + 1 : offset + 1 + name_size].decode()
            offset += 1 + name_size
            kind = data[offset]
            offset += 1
            if kind in _SIZES:
                offset += _SIZES[kind]
                continue
            size = int.from_bytes(data[offset : offset + 2], "big")
            if kind == _STRING:
                headers[name] = data[offset + 2 : offset + 2 + size].decode()
            offset += 2 + size
    except (IndexError, UnicodeDecodeError):
        raise BadStreamError("the headers of an event cannot be read") from None
    return headers


class Bedrock:
    """Amazon Bedrock's variant of the Messages API: `InvokeModelWithResponseStream`."""

    framing: Callable[[], AwsEventStreamDecoder] = AwsEventStreamDecoder

    def client(self, provider: Provider, timeout: Timeout) -> AsyncAnthropicBedrock:
        """Return a client that signs each request, or sends the key as a bearer token.

        Raises:
            ConfigError: a required package is not installed.
        """
        _require_packages(
            ("anthropic",) if provider.key else ("anthropic", "boto3"), provider, "bedrock"
        )
        from anthropic.lib.bedrock import AsyncAnthropicBedrock  # noqa: PLC0415 - heavy

        return AsyncAnthropicBedrock(
            api_key=provider.key,
            aws_region=provider.region,
            base_url=provider.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=_http_client(provider.base_url, timeout),
            default_headers=spelled(provider.headers),
        )

    def path(self, provider: Provider, model: str) -> str:
        """Return the path of requests to a model."""
        del provider
        return f"/model/{quote(model, safe=':')}/invoke-with-response-stream"

    def body(self, payload: JsonObject) -> bytes:
        """Return a Messages request in the form of this cloud."""
        return _encode_body(payload, _BEDROCK_VERSION, without={"model", "stream"})


class Vertex:
    """Google Vertex AI's variant of the Messages API: `streamRawPredict`."""

    framing: Callable[[], SseDecoder] = SseDecoder

    def client(self, provider: Provider, timeout: Timeout) -> AsyncAnthropicVertex:
        """Return a client that uses an access token or the application default credentials.

        Raises:
            ConfigError: a required package is not installed.
        """
        _require_packages(
            ("anthropic",) if provider.key else ("anthropic", "google.auth"), provider, "vertex"
        )
        from anthropic.lib.vertex import AsyncAnthropicVertex  # noqa: PLC0415 - heavy

        return AsyncAnthropicVertex(
            region=provider.region or "",
            project_id=provider.project or "",
            access_token=provider.key,
            base_url=provider.base_url,
            max_retries=0,
            timeout=timeout,
            http_client=_http_client(provider.base_url, timeout),
            default_headers=spelled(provider.headers),
        )

    def path(self, provider: Provider, model: str) -> str:
        """Return the path of requests to a model."""
        location = (
            f"/projects/{quote(provider.project or '', safe=':')}/locations/{provider.region}"
        )
        return f"{location}/publishers/anthropic/models/{quote(model, safe='@')}:streamRawPredict"

    def body(self, payload: JsonObject) -> bytes:
        """Return a Messages request in the form of this cloud."""
        return _encode_body(payload, _VERTEX_VERSION, without={"model"})


def _http_client(base_url: str, timeout: Timeout) -> AsyncClient | None:
    """Return the HTTP client for the package, or None if the package should create its own.

    We create it if the address must be reached without a proxy, or needs other certificates than
    the default.

    Raises:
        ConfigError: an environment variable names certificates that cannot be used.
    """
    direct, trust = no_proxy_mounts(base_url), tls_verification(base_url)
    if not direct and trust is True:
        return None
    from anthropic import DefaultAsyncHttpxClient  # noqa: PLC0415 - heavy

    return DefaultAsyncHttpxClient(mounts=direct, timeout=timeout, verify=trust)


def _encode_body(payload: JsonObject, version: str, *, without: set[str]) -> bytes:
    fields = {name: value for name, value in payload.items() if name not in without}
    return msgspec.json.encode({"anthropic_version": version, **fields})


def _require_packages(packages: Sequence[str], provider: Provider, extra: str) -> None:
    """Check that packages are installed, without importing them.

    The first package is always needed, the others only without a key.

    Raises:
        ConfigError: a package is not installed.
    """
    missing = [package for package in packages if not _is_installed(package)]
    if missing:
        key = provider.key_env and provider.key is None and missing[0] != packages[0]
        variable = f" or set {provider.key_env[0]}" if key else ""
        raise ConfigError(
            f"{provider.name} needs another package: install acp-agent-server[{extra}]{variable}."
        )


def _is_installed(package: str) -> bool:
    try:
        return importlib.util.find_spec(package) is not None
    except ModuleNotFoundError:  # its parent package is not installed
        return False
