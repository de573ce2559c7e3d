"""The login page's HTTP/1.1 server: one request and one response per connection."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol
from urllib.parse import parse_qs

import h11
from msgspec import Struct

from acp_agent.config.secrets import check_key
from acp_agent.errors import AcpAgentError, InvalidInputError
from acp_agent.models.provider_check import Answer
from acp_agent.models.providers import Provider
from acp_agent.server.login_page.page import Language, PageText, language_for, render, style_hash
from acp_agent.server.socket_slots import SocketSlot, SocketSlots

HEAD_BYTES = 16_384
DISCARD_SECONDS = 1.0  # limit for reading the rest of a refused request
DISCARD_BYTES = 1 << 20  # the same in bytes
_CHUNK_BYTES = 65_536
BODY_BYTES = 32_768  # the longest key has 8,192 characters, up to three bytes each in a form
READ_SECONDS = 10.0  # for a visitor to send a request, and to read the response
MAX_CONNECTIONS = 8
TOO_SLOW = 408  # Request Timeout (RFC 9110, section 15.5.9)
FORM_TYPE = "application/x-www-form-urlencoded"
_log = logging.getLogger(__name__)


class Request(Struct, frozen=True, kw_only=True):
    """A request; header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


class Reply(Struct, frozen=True, kw_only=True):
    """A page, its status and headers. `ends` is set if the login is complete."""

    status: int
    text: PageText
    headers: Mapping[str, str] = {}
    ends: Provider | None = None


class RefusedRequestError(Exception):
    """A request that neither our page nor a browser sends; `status` is the response's."""

    def __init__(self, status: int) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status


async def read_request(protocol: h11.Connection, reader: asyncio.StreamReader) -> Request:
    """Read one request.

    Raises:
        RefusedRequestError: its body is too long.
        h11.RemoteProtocolError: it is not HTTP, or its head is too long.
        OSError: the visitor disconnected.
    """
    head: h11.Request | None = None
    body = bytearray()
    while True:
        event = protocol.next_event()
        if event is h11.NEED_DATA:
            protocol.receive_data(await reader.read(HEAD_BYTES))
        elif isinstance(event, h11.Request):
            head = event
        elif isinstance(event, h11.Data):
            body += event.data
            if len(body) > BODY_BYTES:
                raise RefusedRequestError(413)
        elif isinstance(event, h11.EndOfMessage) and head is not None:
            break
        else:
            raise ConnectionResetError
    return Request(
        method=head.method.decode("latin-1"),
        target=head.target.decode("latin-1"),
        headers={name.decode("latin-1"): value.decode("latin-1") for name, value in head.headers},
        body=bytes(body),
    )


async def send_reply(protocol: h11.Connection, writer: asyncio.StreamWriter, reply: Reply) -> None:
    """Send a response, wait until it is sent, and end the output."""
    body = render(reply.text).encode()
    headers = {
        "Content-Type": "text/html; charset=utf-8",
        "Content-Length": str(len(body)),
        "Content-Language": reply.text.language,
        "Connection": "close",
        "Cache-Control": "no-store",
        "Content-Security-Policy": (
            f"default-src 'none'; style-src 'sha256-{style_hash()}'; form-action 'self'; "
            "frame-ancestors 'none'; base-uri 'none'"
        ),
        "Cross-Origin-Opener-Policy": "same-origin",
        "Cross-Origin-Resource-Policy": "same-origin",
        # Not `no-referrer`: a browser would then send the form with the origin `null`.
        "Referrer-Policy": "same-origin",
        "X-Content-Type-Options": "nosniff",
        "X-Frame-Options": "DENY",
        **reply.headers,
    }
    if protocol.our_state not in {h11.IDLE, h11.SEND_RESPONSE}:
        return
    head = h11.Response(status_code=reply.status, headers=list(headers.items()))
    for event in (head, h11.Data(data=body), h11.EndOfMessage()):
        writer.write(protocol.send(event) or b"")
    await writer.drain()
    writer.write_eof()


async def discard_request(reader: asyncio.StreamReader) -> None:
    """Read the rest of a request that was answered early, within limits.

    A socket that is closed with unread data is reset, and the response is lost (RFC 9112,
    section 9.6).
    """
    remaining = DISCARD_BYTES
    with suppress(OSError, TimeoutError):
        async with asyncio.timeout(DISCARD_SECONDS):
            while remaining > 0 and (piece := await reader.read(_CHUNK_BYTES)):
                remaining -= len(piece)


class KeyStore(Protocol):
    """Checks and saves a key."""

    async def check(self, provider: Provider, key: str) -> Answer:
        """Return whether the provider accepts the key."""

    async def save(self, provider: Provider, key: str) -> None:
        """Save the key. Raises ConfigError if that fails."""


@asynccontextmanager
async def login_page(
    providers: Sequence[Provider], key_store: KeyStore
) -> AsyncIterator[LoginPage]:
    """Serve a login page while the block runs.

    Args:
        key_store: checks and saves the key.

    Raises:
        OSError: no port can be opened on this computer.
    """
    page = LoginPage(providers, key_store)
    server = await asyncio.start_server(page.accept, "127.0.0.1", 0, limit=HEAD_BYTES)
    page.port = server.sockets[0].getsockname()[1]
    _log.info("a login page is open on port %d", page.port)
    try:
        yield page
    finally:
        server.close()
        await page.aclose()
        _log.info("the login page on port %d is closed", page.port)


class LoginPage:
    """Answers the visitors of the page. Created by `login_page`.

    The page's address cannot be guessed, and only the editor knows it. A page of another site can
    neither read it, because it has another origin, nor send its form: the form contains a secret
    of the page, and browsers report the origin of a form.
    """

    def __init__(self, providers: Sequence[Provider], key_store: KeyStore) -> None:
        self.port = 0
        self._providers = {provider.id: provider for provider in providers}
        self._key_store = key_store
        self._path = f"/login/{secrets.token_urlsafe(32)}"
        self._form_token = secrets.token_urlsafe(32)
        self._checking = False
        self._done: asyncio.Future[Provider] = asyncio.get_running_loop().create_future()
        self._visits: set[asyncio.Task[None]] = set()
        self._slots = SocketSlots(MAX_CONNECTIONS)

    @property
    def url(self) -> str:
        """Return the page's address."""
        return f"http://127.0.0.1:{self.port}{self._path}"

    async def done(self) -> Provider:
        """Wait until a key is saved and confirmed on the page; return its provider."""
        return await asyncio.shield(self._done)

    async def aclose(self) -> None:
        """Disconnect every visitor."""
        self._done.cancel()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    # -- connections -------------------------------------------------------------------------

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle a new connection."""
        slot = self._slots.acquire(writer.transport.abort)
        if slot is None:
            writer.close()
            return
        visit = asyncio.create_task(self._visit(reader, writer, slot))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _visit(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, slot: SocketSlot
    ) -> None:
        protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        ends: Provider | None = None
        try:
            reply = await self._reply(protocol, reader, slot)
            ends = reply.ends
            async with asyncio.timeout(READ_SECONDS):
                await send_reply(protocol, writer, reply)
            if protocol.their_state is not h11.DONE and reply.status != TOO_SLOW:
                await discard_request(reader)
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # the visitor disconnected, or is not a browser; its data is not logged
        except Exception as error:  # noqa: BLE001 - a visitor must not end the login
            _log.error("the login page failed (%s)", type(error).__name__)
        finally:
            slot.release()
            with suppress(OSError):
                writer.close()
            if ends is not None and not self._done.done():
                self._done.set_result(ends)

    async def _reply(
        self, protocol: h11.Connection, reader: asyncio.StreamReader, slot: SocketSlot
    ) -> Reply:
        try:
            async with asyncio.timeout(READ_SECONDS):
                request = await read_request(protocol, reader)
        except TimeoutError:
            return _refusal(TOO_SLOW, "en")
        except h11.RemoteProtocolError as error:
            return _refusal(error.error_status_hint, "en")
        except RefusedRequestError as refusal:
            return _refusal(refusal.status, "en")
        language = language_for(request.headers.get("accept-language", ""))
        try:
            return await self._answer(request, language, slot)
        except RefusedRequestError as refusal:
            return _refusal(refusal.status, language)

    # -- requests ----------------------------------------------------------------------------

    async def _answer(self, request: Request, language: Language, slot: SocketSlot) -> Reply:
        """Return the page for a request. Raises RefusedRequestError if it is not for this page."""
        # A domain name that resolves to this computer (DNS rebinding) is not the page's host.
        if request.headers.get("host") != f"127.0.0.1:{self.port}":
            raise RefusedRequestError(421)
        if not hmac.compare_digest(request.target.encode(), self._path.encode()):
            raise RefusedRequestError(404)
        slot.authorize()
        if self._done.done():
            raise RefusedRequestError(410)
        if request.method == "GET":
            return self._form(language)
        if request.method != "POST":
            raise RefusedRequestError(405)
        fields = self._fields(request)
        provider = self._providers.get(fields.get("provider", ""))
        if provider is None:
            return self._form(language, "unknown_provider")
        if self._checking:
            raise RefusedRequestError(409)
        self._checking = True
        try:
            return await self._save_key(provider, fields.get("key", ""), language)
        finally:
            self._checking = False

    def _fields(self, request: Request) -> dict[str, str]:
        """Return the fields of the submitted form.

        Raises:
            RefusedRequestError: it was not sent by the page's own form.
        """
        headers = request.headers
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
            raise RefusedRequestError(415)
        expected_origin = f"http://127.0.0.1:{self.port}"
        if headers.get("origin", expected_origin) != expected_origin:
            raise RefusedRequestError(403)
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise RefusedRequestError(403)
        try:
            parsed = parse_qs(request.body.decode(), keep_blank_values=True, max_num_fields=8)
        except ValueError:
            raise RefusedRequestError(400) from None
        fields = {name: values[-1] for name, values in parsed.items()}
        if not hmac.compare_digest(fields.get("word", "").encode(), self._form_token.encode()):
            raise RefusedRequestError(403)
        return fields

    async def _save_key(self, provider: Provider, key: str, language: Language) -> Reply:
        try:
            key = check_key(key)
        except InvalidInputError:
            return self._form(language, "no_key", chosen=provider)
        answer = await self._key_store.check(provider, key)
        if answer.verdict == "refused":
            return self._form(language, "refused", chosen=provider)
        try:
            await self._key_store.save(provider, key)
        except AcpAgentError as error:
            _log.error("the key of %s could not be kept: %s", provider.id, error)
            return self._form(language, "not_kept", chosen=provider)
        verified = answer.verdict == "ok"
        text = PageText(language, "kept" if verified else "kept_untried", name=provider.name)
        return Reply(status=200, text=text, ends=provider)

    def _form(self, language: Language, problem: str = "", chosen: Provider | None = None) -> Reply:
        text = PageText(
            language,
            "form",
            problem=problem,
            name="" if chosen is None else chosen.name,
            chosen="" if chosen is None else chosen.id,
            providers=tuple(self._providers.values()),
            action=self._path,
            word=self._form_token,
        )
        return Reply(status=422 if problem else 200, text=text)


def _refusal(status: int, language: Language) -> Reply:
    headers = {"Allow": "GET, POST"} if status == 405 else {}
    return Reply(status=status, text=PageText(language, _refusal_text(status)), headers=headers)


def _refusal_text(status: int) -> str:
    return {409: "busy", 410: "used"}.get(status, "not_here")
