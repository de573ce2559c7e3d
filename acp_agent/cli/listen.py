"""`acp-agent serve --listen ADDRESS`: serve the protocol to clients on a socket."""

from __future__ import annotations

import argparse
import os
import secrets as random
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from acp_agent.cli.localization import translate
from acp_agent.cli.output import run_guarded
from acp_agent.cli.parser import Parser, number, seconds
from acp_agent.cli.server_process import run_server
from acp_agent.errors import InvalidInputError
from acp_agent.platform import posix
from acp_agent.platform.descriptor_limit import raise_descriptor_limit
from acp_agent.server.listen import ListenSettings, serve_listen
from acp_agent.server.remote.endpoint import PATH
from acp_agent.server.remote.settings import Address, Limits, parse_address
from protocol.transports.claim import claim_stdio

TOKEN_VARIABLE = "ACP_AGENT_LISTEN_TOKEN"  # noqa: S105 - its name
_MAX_NUMBER = 1_000_000_000  # largest number on the command line
_MIN_LENGTH = 16  # minimum characters of a token


def listen(argv: list[str]) -> int:
    """Serve clients until a signal arrives, then end the process; return a status if that fails."""
    options = _parser().parse_args(argv)
    return run_guarded(lambda: _listen(options))


def _listen(options: argparse.Namespace) -> NoReturn:
    claim_stdio()  # stdin is not read, and stdout is not written
    raise_descriptor_limit()
    posix.forbid_inspection()  # the token is in the environment or in memory
    environ = dict(os.environ)
    configured_token = environ.pop(TOKEN_VARIABLE, None)  # hides it from the agent's commands
    os.environ.pop(TOKEN_VARIABLE, None)
    settings, new_token = _listen_settings(options, configured_token)
    announce = partial(_announce, token=new_token)
    run_server(
        partial(serve_listen, settings, announce=announce),
        environ,
        model=options.model,
        agent=options.agent,
        trace=options.trace,
    )


def _announce(url: str, token: str | None) -> None:
    lines = f"acp-agent: {translate('listening on {url}', url=url)}\n"
    if token is not None:
        lines += f"acp-agent: {translate('access token for this run: {token}', token=token)}\n"
    sys.stderr.write(lines)
    sys.stderr.flush()


def _listen_settings(
    options: argparse.Namespace, configured_token: str | None
) -> tuple[ListenSettings, str | None]:
    """Return the settings for listening, and the token if it was generated for this run.

    Raises:
        InvalidInputError: the options conflict, or would open the agent to strangers.
    """
    address = parse_address(options.listen)
    if (options.tls_cert is None) != (options.tls_key is None):
        raise InvalidInputError("--tls-cert and --tls-key must be used together")
    tls = None if options.tls_cert is None else (options.tls_cert, options.tls_key)
    if not address.loopback and tls is None and not options.behind_proxy:
        raise InvalidInputError(
            f"--listen: {address.host} can be reached from other computers, and what goes over the "
            "wire, token and files, could be read on the way; give --tls-cert and --tls-key, or "
            "say --behind-proxy where a proxy in front does TLS, or listen on 127.0.0.1"
        )
    token, new_token = _token(options, configured_token, address)
    changed = {
        name: value
        for name, value in (
            ("connections", options.max_connections),
            ("sessions", options.max_sessions),
            ("message", options.max_message_size),
            ("idle", options.idle_timeout),
            ("handshake", options.initialize_timeout),
            ("head", options.header_timeout),
            ("ping", options.ping_interval),
        )
        if value is not None
    }
    limits = Limits()._replace(**changed)
    settings = ListenSettings(
        address=address,
        token=token,
        hosts=tuple(options.allow_host),
        origins=tuple(options.allow_origin),
        tls=tls,
        secure=tls is not None or options.behind_proxy,
        proxied=options.behind_proxy,
        limits=limits._replace(sockets=max(limits.sockets, 2 * limits.connections)),
        path=_path(options.path),
        binary=options.binary,
    )
    return settings, new_token


def _path(path: str) -> str:
    if not path.startswith("/") or not path.isascii() or any(sign in path for sign in "?#% \t;"):
        raise InvalidInputError(
            f"--path: {path!r} is not a path; it must begin with /, such as {PATH}"
        )
    return path


def _token(
    options: argparse.Namespace, configured_token: str | None, address: Address
) -> tuple[str | None, str | None]:
    """Return the token that clients must send, and the same again if it was generated here."""
    if options.no_token:
        if not address.loopback or options.behind_proxy:
            raise InvalidInputError(
                "--no-token: without a token everyone who reaches the address could use the "
                "agent; use it only with a loopback address such as 127.0.0.1 and without a "
                "proxy"
            )
        return None, None
    if options.token_file is not None:
        try:
            configured_token = Path(options.token_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise InvalidInputError(f"--token-file {options.token_file}: {reason}") from None
    if configured_token is None:
        new_token = random.token_urlsafe(32)
        return new_token, new_token
    check_token(configured_token)
    return configured_token, None


def check_token(token: str) -> None:
    """Check that a token cannot be guessed.

    Raises:
        InvalidInputError: it is too short, or contains characters that are invalid in a header.
    """
    if len(token) < _MIN_LENGTH or not token.isascii() or not token.isprintable() or " " in token:
        raise InvalidInputError(
            f"the token needs {_MIN_LENGTH} or more characters, of ASCII and without blanks, so "
            "that nobody can guess it; leave it out and one is made"
        )


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent serve",
        description="Serve the protocol over WebSocket and streamable HTTP. Times are in seconds. "
        "See docs/remote.md.",
    )
    # fmt: off
    add, count = parser.add_argument, number(1, _MAX_NUMBER)
    add("--listen", required=True, metavar="HOST:PORT",
        help="address to listen on; port 0 picks a free port")
    add("--path", default=PATH, metavar="PATH", help="path of the endpoint")
    add("--binary", action="store_true", help="also accept binary WebSocket frames")
    add("--model", metavar="PROVIDER/NAME", help="model for new sessions")
    add("--agent", metavar="NAME", help="the agent that new sessions run as")
    add("--trace", metavar="FILE", help="record the messages, without secrets")
    add("--token-file", metavar="FILE",
        help="file with the access token (default: ACP_AGENT_LISTEN_TOKEN, else a random token)")
    add("--no-token", action="store_true",
        help="require no token, so that every local user has access")
    add("--tls-cert", metavar="FILE", help="TLS certificate with its chain, in PEM format")
    add("--tls-key", metavar="FILE", help="key of the TLS certificate, in PEM format")
    add("--behind-proxy", action="store_true", help="a proxy in front terminates TLS")
    add("--allow-host", action="append", default=[], metavar="NAME",
        help="also accept this Host header (repeatable)")
    add("--allow-origin", action="append", default=[], metavar="ORIGIN",
        help="also accept requests from pages of this origin (repeatable)")
    add("--max-connections", type=count, metavar="N", help="concurrent connections (default: 256)")
    add("--max-sessions", type=count, metavar="N",
        help="open sessions per connection (default: 64)")
    add("--max-message-size", type=count, metavar="BYTES",
        help="largest accepted message (default: 33554432)")
    add("--idle-timeout", type=seconds, metavar="SECONDS",
        help="close a connection without streams and requests after this time (default: 120)")
    add("--initialize-timeout", type=seconds, metavar="SECONDS",
        help="time for a client to send initialize (default: 30)")
    add("--header-timeout", type=seconds, metavar="SECONDS",
        help="time for the headers of a request (default: 10)")
    add("--ping-interval", type=seconds, metavar="SECONDS",
        help="time without data after which a client is pinged (default: 20)")
    # fmt: on
    return parser
