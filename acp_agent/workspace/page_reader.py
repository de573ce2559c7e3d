"""Fetch pages from the public network, and refuse addresses on private networks.

These rules protect against server-side request forgery:

- Only http and https are allowed, without credentials in the address.
- Only public unicast addresses are allowed. Addresses in IANA's special-purpose registries
  (RFC 6890 and its successors), multicast addresses, cloud metadata services, and IPv6 addresses
  that embed an IPv4 address and route to it are refused.
- The host name is resolved once, and all its addresses must be public. The connection goes to an
  address that was checked, so a second DNS response cannot redirect it. The TLS certificate is
  still verified against the host name.
- Every redirect on the same host passes the same checks. A redirect to another host is returned,
  not followed, because the user's permission is for one host.

Proxies from environment variables are not used: a proxy resolves names itself, so these checks
would not apply.
"""

from __future__ import annotations

import asyncio
import ipaddress
import ssl
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager

import httpx2
from msgspec import Struct

from acp_agent.config.network_addresses import Resolve, is_loopback, is_public, literal_address
from acp_agent.errors import WorkspaceError
from acp_agent.platform.descriptor_limit import explain_descriptor_limit
from acp_agent.sandbox.launch import Confine
from acp_agent.workspace.worker_process import run_in_process

BODY_LIMIT = 2_000_000  # bytes of a body that are read, after decompression
MAX_REDIRECTS = 5
_MAX_PARSE_SECONDS = 20.0  # seconds to convert a body to text
_MAX_URL = 8_000  # characters
_MAX_ADDRESSES = 4  # addresses of a host that are tried
_MAX_CONNECT_SECONDS = 10.0  # seconds for each address
_HEADERS = {
    "User-Agent": "acp-agent",
    "Accept": "text/markdown, text/html;q=0.9, text/plain;q=0.8, application/json;q=0.8, */*;q=0.5",
    "Accept-Encoding": "gzip, deflate",
}
_TEXT_TYPES = frozenset(
    {
        "application/ecmascript", "application/javascript", "application/json", "application/toml",
        "application/x-javascript", "application/x-ndjson", "application/x-sh",
        "application/x-yaml", "application/xml", "application/yaml",
    }
)  # fmt: skip
_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_.")


class Page(Struct, frozen=True, kw_only=True):
    """A fetched page. `url` is the address after redirects; `text` is limited in length."""

    url: str
    status: int
    media_type: str
    text: str
    truncated: bool = False


class PageReader:
    """Fetches pages over HTTP, each over a new connection, without cookies or other state.

    Attributes:
        confine: wraps the command line of the program that converts a body to text.
    """

    def __init__(
        self,
        *,
        resolve: Resolve,
        allow: Collection[tuple[str, int]],
        tls: ssl.SSLContext,
        confine: Confine,
    ) -> None:
        """Accept the same arguments as `GuardedNetwork`."""
        self.confine = confine
        self._resolve = resolve
        self._allow = frozenset(allow)
        self._tls = tls

    def check(self, url: str) -> None:
        """Check an address without resolving its host name; see `GuardedNetwork.check`."""
        address = check_url(url)
        host = address.raw_host.decode("ascii")
        literal = "127.0.0.1" if is_loopback(host) else literal_address(host)
        if literal is not None:
            self._check_public(host, str(literal), _port(address))

    async def fetch(self, url: str, *, limit: int, timeout: float) -> Page:
        """Return a page; see `GuardedNetwork.fetch`."""
        async with request_limits(url, timeout):
            return await self._fetch(url, limit)

    def client(self) -> httpx2.AsyncClient:
        """Return an HTTP client without cookies, proxies or a timeout."""
        return httpx2.AsyncClient(verify=self._tls, trust_env=False, headers=_HEADERS, timeout=None)

    async def _fetch(self, url: str, limit: int) -> Page:
        address = check_url(url)
        async with self.client() as client:
            for _ in range(MAX_REDIRECTS + 1):
                response = await self.send(client, address)
                try:
                    location = response.headers.get("location")
                    if not response.is_redirect or location is None:
                        return await _read(response, address, limit, self.confine)
                finally:
                    await response.aclose()
                target = redirect_target(address, location)
                if target.host != address.host:
                    return Page(
                        url=str(target), status=response.status_code, media_type="", text=""
                    )
                address = target
        raise WorkspaceError(f"{_display_url(url)} redirects more than {MAX_REDIRECTS} times")

    async def send(
        self,
        client: httpx2.AsyncClient,
        url: httpx2.URL,
        *,
        method: str = "GET",
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> httpx2.Response:
        """Send a request to the first of the host's checked addresses that accepts a connection.

        Args:
            client: the client that sends the request; it must not follow redirects.

        Raises:
            WorkspaceError: the name is unknown, or an address is not public.
            httpx2.HTTPError: there is no response.
        """
        addresses = await self._addresses(url.raw_host.decode("ascii"), _port(url))
        connect_error: httpx2.HTTPError | None = None
        for address in addresses[:_MAX_ADDRESSES]:
            request = client.build_request(
                method,
                url.copy_with(host=address, fragment=None),
                headers={**(headers or {}), "Host": url.netloc.decode("ascii")},
                content=body,
                extensions={
                    "sni_hostname": url.raw_host.decode("ascii"),
                    "timeout": {"connect": _MAX_CONNECT_SECONDS},
                },
            )
            try:
                return await client.send(request, stream=True)
            except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
                connect_error = error
        raise connect_error or httpx2.ConnectError("the name has no address")

    async def _addresses(self, host: str, port: int) -> Sequence[str]:
        literal = literal_address(host)
        try:
            addresses = [str(literal)] if literal else await self._resolve(host, port)
        except OSError as error:
            reason = explain_descriptor_limit(error) or error.strerror or "no name server answers"
            raise WorkspaceError(
                f"the name {host} cannot be resolved: {reason}", advice="check the address"
            ) from None
        for address in addresses:
            self._check_public(host, address, port)
        return addresses

    def _check_public(self, host: str, address: str, port: int) -> None:
        if (address, port) not in self._allow:
            check_public(host, address)


@asynccontextmanager
async def request_limits(url: str, timeout: float) -> AsyncIterator[None]:
    """Limit the time of a request, and convert its errors to `WorkspaceError`.

    Raises:
        WorkspaceError: the request timed out or failed.
    """
    try:
        async with asyncio.timeout(timeout):
            yield
    except TimeoutError:
        raise WorkspaceError(
            f"no complete answer from {_display_url(url)} within {timeout:g} s"
        ) from None
    except httpx2.HTTPError as error:
        raise WorkspaceError(f"cannot fetch {_display_url(url)}: {_reason(error)}") from None


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)


def check_url(url: str) -> httpx2.URL:
    """Return the parsed address if it passes all checks that need no name resolution.

    Raises:
        WorkspaceError: it is not an address, is not http(s), or contains credentials.
    """
    if len(url) > _MAX_URL:
        raise WorkspaceError(f"the address is longer than {_MAX_URL:,} characters")
    try:
        parsed = httpx2.URL(url)
        host = parsed.raw_host.decode("ascii").removesuffix(".")
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise WorkspaceError(f"not an address: {_display_url(url)}") from None
    if parsed.scheme not in {"http", "https"}:
        raise WorkspaceError(
            f"only http and https addresses can be fetched, not {_display_url(url)}"
        )
    if parsed.userinfo:
        raise WorkspaceError("an address with a user name or password in it is not fetched")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise WorkspaceError(f"{parsed.port} is not a port", advice="give one from 1 to 65535")
    if not host or (":" not in host and not _NAME_CHARACTERS.issuperset(host)):
        raise WorkspaceError(f"the address has no usable host: {_display_url(url)}")
    literal_address(host)
    return parsed.copy_with(host=host)


def redirect_target(address: httpx2.URL, location: str) -> httpx2.URL:
    """Return the target of a redirect, checked like any address.

    Raises:
        WorkspaceError: the target is not an address, or must not be requested.
    """
    try:
        target = str(address.join(location))
    except (httpx2.InvalidURL, ValueError):
        raise WorkspaceError(f"{address.host} redirects to what is no address") from None
    return check_url(target)


async def _read(response: httpx2.Response, url: httpx2.URL, limit: int, confine: Confine) -> Page:
    """Return a response as a page of at most `limit` characters; read at most `BODY_LIMIT`."""
    media_type = parse_media_type(response)
    if not is_text(media_type):
        raise WorkspaceError(
            f"{_display_url(str(url))} is {media_type}, which cannot be read as text",
            advice="save it with `curl` in `shell` if you need it",
        )
    body = await read_body(response)
    text = await body_text(body[:BODY_LIMIT], response, url, limit + 1, confine)
    return Page(
        url=str(url),
        status=response.status_code,
        media_type=media_type,
        text=text[:limit],
        truncated=len(body) > BODY_LIMIT or len(text) > limit,
    )


def parse_media_type(response: httpx2.Response) -> str:
    """Return the media type of a response without its parameters, or "" if it has none."""
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(response: httpx2.Response) -> bytes:
    """Return a body; reading stops once it is longer than `BODY_LIMIT`."""
    body = bytearray()
    async for piece in response.aiter_bytes():
        body += piece
        if len(body) > BODY_LIMIT:
            break
    return bytes(body)


async def body_text(
    body: bytes, response: httpx2.Response, url: httpx2.URL, limit: int, confine: Confine
) -> str:
    """Return a body as text: HTML as Markdown, all else unchanged.

    Raises:
        WorkspaceError: the body is not text, or takes too long to parse.
    """
    arguments = {
        "body": body,
        "media_type": parse_media_type(response),
        "charset": response.charset_encoding,
        "url": str(url),
        "limit": limit,
    }
    label = _display_url(str(url))
    try:
        return await run_in_process(
            "acp_agent.workspace.pages:page_text",
            arguments,
            str,
            seconds=_MAX_PARSE_SECONDS,
            confine=confine,
        )
    except TimeoutError:
        raise WorkspaceError(
            f"{label} is too complicated: it cannot be read within {_MAX_PARSE_SECONDS:g} seconds"
        ) from None
    except WorkspaceError as error:
        raise WorkspaceError(f"{label} cannot be read as text: {error.shown}") from None


def _display_url(url: str) -> str:
    """Return an address for use in a message: shortened, without query or credentials."""
    text = "".join(c if c.isprintable() else "?" for c in url.partition("?")[0])
    scheme, separator, remainder = text.partition("://")
    host, slash, path = remainder.partition("/")
    text = f"{scheme}{separator}{host.rpartition('@')[2]}{slash}{path}"
    return text if len(text) <= 200 else text[:199] + "…"


def _reason(error: httpx2.HTTPError) -> str:
    """Return a description of the error on one line."""
    limit_reason = explain_descriptor_limit(error)
    if limit_reason is not None:
        return limit_reason
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted: {cause.verify_message}"
        cause = cause.__cause__ or cause.__context__
    text = " ".join(str(error).split())
    return text[:200] or type(error).__name__


def is_text(media_type: str) -> bool:
    """Return whether a body of this media type is text; "" (no media type) counts as text."""
    return (
        not media_type
        or media_type in _TEXT_TYPES
        or media_type.startswith("text/")
        or media_type.endswith(("+json", "+xml", "+yaml"))
    )


def check_public(host: str, address: str) -> None:
    """Raise an error if an address is not public; `host` is the name that resolved to it.

    Raises:
        WorkspaceError: the address is private, reserved or invalid.
    """
    try:
        is_allowed = is_public(ipaddress.ip_address(address))
    except ValueError:
        is_allowed = False
    if not is_allowed:
        resolved_note = "" if host == address else f" ({address})"
        raise WorkspaceError(
            f"{host}{resolved_note} is a private or reserved address: "
            "only the public network is reached",
            advice="use `curl` in `shell` for a server of your own",
        )
