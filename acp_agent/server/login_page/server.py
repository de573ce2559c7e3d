"""The page's server: HTTP/1.1 on the loopback interface, one form, gone after its use."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Protocol
from urllib.parse import parse_qs

import h11

from acp_agent.config.secrets import check_key
from acp_agent.errors import AcpAgentError, InvalidInputError
from acp_agent.models.provider_check import Answer
from acp_agent.models.providers import Provider
from acp_agent.server.login_page.html import Language, PageText, language_for
from acp_agent.server.login_page.http import (
    HEAD_BYTES,
    RefusedRequestError,
    Reply,
    Request,
    read_away,
    read_request,
    send_reply,
)
from acp_agent.server.open_sockets import OpenSocket, OpenSockets

READ_SECONDS = 10.0  # what a open_socket may take to send a request, and to read what is answered
CONNECTIONS = 8
TOO_SLOW = 408  # Request Timeout (RFC 9110, section 15.5.9)
FORM_TYPE = "application/x-www-form-urlencoded"

_log = logging.getLogger(__name__)


class Keeper(Protocol):
    """Where a key goes."""

    async def check(self, provider: Provider, key: str) -> Answer:
        """Whether the provider takes the key."""
        ...

    async def keep(self, provider: Provider, key: str) -> None:
        """Keep it. Raises ConfigError where that fails."""
        ...


@asynccontextmanager
async def login_page(providers: Sequence[Provider], keeper: Keeper) -> AsyncIterator[LoginPage]:
    """A page that is there while the block runs.

    Args:
        providers: those whose keys can be given.
        keeper: what tries and keeps the key.

    Raises:
        OSError: this computer lets nobody listen.
    """
    page = LoginPage(providers, keeper)
    server = await asyncio.start_server(page.connected, "127.0.0.1", 0, limit=HEAD_BYTES)
    page.port = server.sockets[0].getsockname()[1]
    _log.info("a login page is open on port %d", page.port)
    try:
        yield page
    finally:
        server.close()
        await page.aclose()
        _log.info("the login page on port %d is closed", page.port)


class LoginPage:
    """What open_sockets of the page get. Made by `login_page`.

    Its address has a name that nobody can guess, and is known to the editor alone. A page of
    another site can neither read it (it is of another origin) nor send its form: that carries a
    word that only the page itself knows, and browsers say where a form comes from.
    """

    def __init__(self, providers: Sequence[Provider], keeper: Keeper) -> None:
        self.port = 0
        self._providers = {provider.id: provider for provider in providers}
        self._keeper = keeper
        self._path = f"/login/{secrets.token_urlsafe(32)}"
        self._form_word = secrets.token_urlsafe(32)
        self._trying = False
        self._done: asyncio.Future[Provider] = asyncio.get_running_loop().create_future()
        self._visits: set[asyncio.Task[None]] = set()
        self._open_sockets = OpenSockets(CONNECTIONS)

    @property
    def url(self) -> str:
        """The page's address."""
        return f"http://127.0.0.1:{self.port}{self._path}"

    async def done(self) -> Provider:
        """Wait until a key is kept and the open_socket was told so; gives whose it is."""
        return await asyncio.shield(self._done)

    async def aclose(self) -> None:
        """Leave every open_socket."""
        self._done.cancel()
        for visit in self._visits:
            visit.cancel()
        await asyncio.gather(*self._visits, return_exceptions=True)

    # -- connections -------------------------------------------------------------------------

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Somebody connected."""
        open_socket = self._open_sockets.enter(writer.transport.abort)
        if open_socket is None:
            writer.close()
            return
        visit = asyncio.create_task(self._visit(reader, writer, open_socket))
        self._visits.add(visit)
        visit.add_done_callback(self._visits.discard)

    async def _visit(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, open_socket: OpenSocket
    ) -> None:
        protocol = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        ends: Provider | None = None
        try:
            reply = await self._reply(protocol, reader, open_socket)
            ends = reply.ends
            async with asyncio.timeout(READ_SECONDS):
                await send_reply(protocol, writer, reply)
            if protocol.their_state is not h11.DONE and reply.status != TOO_SLOW:
                await read_away(reader)
        except (OSError, TimeoutError, h11.ProtocolError):
            pass  # the open_socket left, or is no browser; what it sent is in no log
        except Exception as error:  # noqa: BLE001 - a open_socket must not end the login
            _log.error("the login page failed (%s)", type(error).__name__)
        finally:
            open_socket.leave()
            with suppress(OSError):
                writer.close()
            if ends is not None and not self._done.done():
                self._done.set_result(ends)

    async def _reply(
        self, protocol: h11.Connection, reader: asyncio.StreamReader, open_socket: OpenSocket
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
            return await self._answer(request, language, open_socket)
        except RefusedRequestError as refusal:
            return _refusal(refusal.status, language)

    # -- requests ----------------------------------------------------------------------------

    async def _answer(self, request: Request, language: Language, open_socket: OpenSocket) -> Reply:
        """The page for a request.

        Raises:
            RefusedRequestError: it is none for this page.
        """
        self._check_address(request)
        open_socket.admit()
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
        if self._trying:
            raise RefusedRequestError(409)
        self._trying = True
        try:
            return await self._take(provider, fields.get("key", ""), language)
        finally:
            self._trying = False

    def _check_address(self, request: Request) -> None:
        # A name that somebody made to lead here (DNS rebinding) is not the page's own.
        if request.headers.get("host") != f"127.0.0.1:{self.port}":
            raise RefusedRequestError(421)
        if not hmac.compare_digest(request.target.encode(), self._path.encode()):
            raise RefusedRequestError(404)

    def _fields(self, request: Request) -> dict[str, str]:
        """The fields of the form that was sent.

        Raises:
            RefusedRequestError: the page's own form has not sent it.
        """
        headers = request.headers
        if headers.get("content-type", "").partition(";")[0].strip().lower() != FORM_TYPE:
            raise RefusedRequestError(415)
        own_origin = f"http://127.0.0.1:{self.port}"
        if headers.get("origin", own_origin) != own_origin:
            raise RefusedRequestError(403)
        if headers.get("sec-fetch-site", "same-origin") != "same-origin":
            raise RefusedRequestError(403)
        try:
            parsed = parse_qs(request.body.decode(), keep_blank_values=True, max_num_fields=8)
        except ValueError:
            raise RefusedRequestError(400) from None
        fields = {name: values[-1] for name, values in parsed.items()}
        if not hmac.compare_digest(fields.get("word", "").encode(), self._form_word.encode()):
            raise RefusedRequestError(403)
        return fields

    async def _take(self, provider: Provider, key: str, language: Language) -> Reply:
        try:
            key = check_key(key)
        except InvalidInputError:
            return self._form(language, "no_key", chosen=provider)
        answer = await self._keeper.check(provider, key)
        if answer.verdict == "refused":
            return self._form(language, "refused", chosen=provider)
        try:
            await self._keeper.keep(provider, key)
        except AcpAgentError as error:
            _log.error("the key of %s could not be kept: %s", provider.id, error)
            return self._form(language, "not_kept", chosen=provider)
        tried = answer.verdict == "ok"
        text = PageText(language, "kept" if tried else "kept_untried", name=provider.name)
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
            word=self._form_word,
        )
        return Reply(status=422 if problem else 200, text=text)


def _refusal(status: int, language: Language) -> Reply:
    headers = {"Allow": "GET, POST"} if status == 405 else {}
    return Reply(status=status, text=PageText(language, _refusal_text(status)), headers=headers)


def _refusal_text(status: int) -> str:
    return {409: "busy", 410: "used"}.get(status, "not_here")
