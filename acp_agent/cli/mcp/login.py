"""`acp-agent mcp login` and `logout`: OAuth login to an MCP server."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from html import escape
from urllib.parse import parse_qs, urlsplit

import httpx2
import msgspec
from mcp.client.auth import OAuthFlowError, OAuthRegistrationError
from mcp.shared.auth import AuthorizationCodeResult

from acp_agent.cli.localization import translate
from acp_agent.cli.output import say
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.config.certificates import tls_verification
from acp_agent.config.mcp_types import McpServerConfig
from acp_agent.config.network_addresses import is_loopback, no_proxy_mounts
from acp_agent.config.secrets import Secret
from acp_agent.errors import ConfigError, InvalidInputError
from acp_agent.extensions.mcp.checks import make_http_server
from acp_agent.extensions.mcp.config import HttpServer
from acp_agent.extensions.mcp.configured import KEY
from acp_agent.extensions.mcp.errors import describe_error
from acp_agent.extensions.mcp.oauth.assertions import is_private_key
from acp_agent.extensions.mcp.oauth.challenge import has_authorization_server, request_challenge
from acp_agent.extensions.mcp.oauth.device import device_login
from acp_agent.extensions.mcp.oauth.logins import Login, LoginStore
from acp_agent.extensions.mcp.oauth.provider import (
    CLIENT_CREDENTIALS,
    ClientSettings,
    Person,
    Provider,
    configured_client,
)
from acp_agent.extensions.mcp.tables import build_server

_LOGIN_SECONDS = 600.0  # for the user to log in
_REQUEST_SECONDS = 30.0
_MAX_LINE_BYTES = 16_000  # bytes of a line of the browser's request

_Response = AuthorizationCodeResult | OAuthFlowError  # of an authorization server


def login(options: argparse.Namespace) -> int:
    """Log in to a server; return the exit status.

    Raises:
        ConfigError, InvalidInputError: there is no such server, or the login failed.
    """
    setup = load_user_config()
    server, settings = _find(options.name, setup)
    if any(name.lower() == "authorization" for name, _ in server.headers):
        raise ConfigError(f"{options.name} has an Authorization header, which wins; take it out")
    address = urlsplit(server.url)
    if address.scheme != "https" and not is_loopback(address.hostname or ""):
        raise ConfigError(f"{server.url} is not https: anybody on the way could read the tokens")
    # The package logs a failed flow with a traceback; the user sees the reason instead.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    store = LoginStore(setup.paths.mcp_logins_file)
    previous = store.get(server.url)
    settings = _with_secret(settings, previous, options)
    if settings.without_user and not (settings.client_id and settings.client_secret):
        raise ConfigError(
            f"{options.name} logs in without a user, which takes oauth.client_id and the secret of "
            "that client; set oauth.client_secret_env, or use --client-secret"
        )
    secret = settings.client_secret
    if (
        secret is not None
        and is_private_key(secret.reveal())
        and (options.device or not settings.without_user)
    ):
        raise ConfigError(
            f"the secret of the client of {options.name} is a private key, which is never sent; "
            'set oauth.grant to "client_credentials", or give a secret'
        )
    initial = Login(keyring=options.keyring, scope="" if previous is None else previous.scope)
    try:
        required = asyncio.run(_login(server, settings, store, initial, options))
    except OAuthRegistrationError as error:
        raise ConfigError(
            f"the authorization server of {options.name} does not register clients "
            f"({describe_error(error, str)}); register one there yourself, and set oauth.client_id"
        ) from None
    except (OAuthFlowError, httpx2.HTTPError, TimeoutError) as error:
        reason = describe_error(error, str)
        raise ConfigError(f"the login at {options.name} failed: {reason}") from None
    if not required:
        say(translate("{name} needs no login.", name=options.name))
    elif options.keyring:
        say(translate("Logged in. The tokens are in the system's keyring."))
    else:
        say(translate("Logged in. The tokens are in {file}.", file=setup.paths.mcp_logins_file))
    return 0


def logout(options: argparse.Namespace) -> int:
    """Delete the login to a server; return the exit status.

    Raises:
        ConfigError, InvalidInputError: there is no such server, or the login cannot be deleted.
    """
    setup = load_user_config()
    server, _ = _find(options.name, setup)
    store = LoginStore(setup.paths.mcp_logins_file)
    if store.delete(server.url):
        say(translate("Logged out."))
    else:
        say(translate("No login found."))
    return 0


def _find(name: str, setup: UserConfig) -> tuple[HttpServer, ClientSettings]:
    if name.startswith(("http://", "https://")):
        return make_http_server("url", name, name, []), ClientSettings()
    table: McpServerConfig | None = setup.config.mcp_servers.get(name)
    if table is None:
        raise InvalidInputError(
            f"there is no MCP server {name!r} in your configuration; give its address instead"
        )
    server = build_server(name, table, setup.environ, field=KEY, source="user")
    if not isinstance(server, HttpServer):
        raise InvalidInputError(f"{name} is a program; only servers with a url have logins")
    oauth = table.oauth
    secret = setup.environ.get(oauth.client_secret_env or "")
    return server, ClientSettings(
        client_id=oauth.client_id,
        client_secret=Secret(secret) if secret else None,
        without_user=oauth.grant == CLIENT_CREDENTIALS,
        client_metadata_url=oauth.client_metadata_url,
        scopes=tuple(oauth.scopes),
    )


def _with_secret(
    settings: ClientSettings, previous: Login | None, options: argparse.Namespace
) -> ClientSettings:
    """Return settings with the client's secret: typed in, of the variable, or of the last login."""
    if options.client_secret:
        from getpass import getpass  # noqa: PLC0415 - only where there is a terminal

        typed = getpass(translate("Client secret: ")).strip()
        return msgspec.structs.replace(settings, client_secret=Secret(typed) if typed else None)
    client = {} if previous is None else previous.client
    saved = client.get("client_secret")
    is_same = bool(settings.client_id) and client.get("client_id") == settings.client_id
    if settings.client_secret is None and is_same and isinstance(saved, str):
        return msgspec.structs.replace(settings, client_secret=Secret(saved))
    return settings


async def _login(
    server: HttpServer,
    settings: ClientSettings,
    store: LoginStore,
    initial: Login,
    options: argparse.Namespace,
) -> bool:
    """Log in and save the tokens; return whether the server required a login."""
    trust = await asyncio.to_thread(tls_verification, server.url)

    def client(auth: httpx2.Auth | None = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=dict(server.headers),
            timeout=_REQUEST_SECONDS,
            auth=auth,
            mounts=no_proxy_mounts(server.url),
            verify=trust,
        )

    async with asyncio.timeout(_LOGIN_SECONDS):
        if options.device:
            async with client() as http:
                tokens = await device_login(
                    server.url, http, settings, _show_code, missing_scope=initial.scope
                )
            stored = msgspec.structs.replace(tokens, keyring=initial.keyring, scope=initial.scope)
            await asyncio.to_thread(store.set, server.url, stored)
            return True
        async with _callback(options) as person:
            client_info = configured_client(settings, person.redirect_uri)
            initial = msgspec.structs.replace(initial, client=client_info)
            provider = Provider(server, store, initial, settings=settings, person=person)
            async with client(provider) as http, client() as anonymous:
                response = await request_challenge(http, server.url)
                if provider.context.current_tokens is None and await has_authorization_server(
                    anonymous, server.url
                ):  # only some of its tools need a login
                    provider.demand_login()
                    response = await request_challenge(http, server.url)
            if response.status_code in {401, 403}:
                raise ConfigError(f"the server refuses the login (HTTP {response.status_code})")
            return provider.context.current_tokens is not None


def _show_code(address: str, code: str) -> None:
    say(translate("Open this address on any device: {address}", address=address))
    if code:
        say(translate("Enter or compare this code there: {code}", code=code))
    sys.stdout.flush()


@asynccontextmanager
async def _callback(options: argparse.Namespace) -> AsyncIterator[Person]:
    """Listen for the browser's redirect; also accept the address if the user pastes it."""
    loop = asyncio.get_running_loop()
    redirect_result: asyncio.Future[_Response] = loop.create_future()
    state = ""  # of the login: any web page can send a browser to our address with another one

    def accept(result: _Response | None) -> bool:
        if result is not None and not redirect_result.done():
            redirect_result.set_result(result)
        return result is not None

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, ValueError, asyncio.LimitOverrunError):
            line = (await reader.readline()).decode("ascii", "replace").split()
            accepted = len(line) > 1 and accept(_result(line[1], state))
            writer.write(_page(accepted=accepted))
            await writer.drain()
        writer.close()

    listener = await asyncio.start_server(answer, "127.0.0.1", options.port, limit=_MAX_LINE_BYTES)
    port = listener.sockets[0].getsockname()[1]

    async def visit(address: str) -> None:
        nonlocal state
        state = _query(address).get("state", "")
        say(translate("Open this address to log in:"))
        say(address)
        say(
            translate(
                "If the browser is on another computer, paste the address that it ends at here."
            )
        )
        sys.stdout.flush()
        with suppress(OSError, ValueError):  # stdin is a file, or missing
            loop.add_reader(sys.stdin.fileno(), read_pasted)
        if not options.no_browser:
            with suppress(OSError, webbrowser.Error):
                await asyncio.to_thread(webbrowser.open, address)

    def read_pasted() -> None:
        line = sys.stdin.readline()
        if not line:
            loop.remove_reader(sys.stdin.fileno())
            return
        accept(_result(line.strip()))

    async def wait() -> AuthorizationCodeResult:
        response = await redirect_result
        if isinstance(response, OAuthFlowError):
            raise response
        return response

    redirect = f"http://127.0.0.1:{port}/callback"
    try:
        yield Person(redirect_uri=redirect, visit=visit, answer=wait)
    finally:
        with suppress(ValueError, OSError):
            loop.remove_reader(sys.stdin.fileno())
        listener.close()


def _page(*, accepted: bool) -> bytes:
    """Return the answer to the browser."""
    message = "You can close this page." if accepted else "Not found."
    body = f"<!doctype html><title>acp-agent</title><p>{escape(translate(message))}</p>"
    status = "200 OK" if accepted else "404 Not Found"
    head = "Content-Type: text/html; charset=utf-8\r\nConnection: close\r\n\r\n"
    return f"HTTP/1.1 {status}\r\n{head}{body}".encode()


def _query(address: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(address).query).items()}


def _result(address: str, state: str | None = None) -> _Response | None:
    """Return the authorization server's response in an address.

    None if there is none, or if it belongs to another login than that of `state`.
    """
    values = _query(address)
    if state is not None and values.get("state") != state:
        return None
    if "error" in values:
        reason = values.get("error_description") or values["error"]
        return OAuthFlowError(f"the authorization server refused: {reason}")
    if "code" not in values:
        return None
    return AuthorizationCodeResult(
        code=values["code"], state=values.get("state"), iss=values.get("iss")
    )
