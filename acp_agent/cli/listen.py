"""`acp-agent serve --listen ADDRESS`: serving the protocol to clients on a socket."""

from __future__ import annotations

import argparse
import os
import secrets as random
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from acp_agent.cli.localization import translate
from acp_agent.cli.output import guarded
from acp_agent.cli.parser import Parser, number, seconds
from acp_agent.cli.server_process import run_server
from acp_agent.errors import InvalidInputError
from acp_agent.platform import posix
from acp_agent.platform.open_files import raise_limit
from acp_agent.server.listen import Listening, serve_listen
from acp_agent.server.remote.address import Address, parse_address
from acp_agent.server.remote.endpoint import PATH
from acp_agent.server.remote.limits import Limits
from protocol.transports.claim import claim_stdio

TOKEN_VARIABLE = "ACP_AGENT_LISTEN_TOKEN"  # noqa: S105 - its name
_MOST = 1_000_000_000  # of anything that is counted
_SHORTEST = 16  # characters that a token must have


def listen(argv: list[str]) -> int:
    """Serve clients until a signal comes, then end the process; return a status if that fails."""
    options = _parser().parse_args(argv)
    claim_stdio()  # nothing is read from stdin here, and nothing of ours belongs on stdout
    return guarded(lambda: _listen(options))


def _listen(options: argparse.Namespace) -> NoReturn:
    raise_limit()
    posix.forbid_inspection()  # the token is in the environment, or will be in memory
    environ = dict(os.environ)
    given = environ.pop(TOKEN_VARIABLE, None)  # no command of the agent's may see it
    os.environ.pop(TOKEN_VARIABLE, None)
    listening, made = _listening(options, given)
    announce = partial(_announce, token=made)
    run_server(
        partial(serve_listen, listening, announce=announce),
        environ,
        model=options.model,
        trace=options.trace,
    )


def _announce(url: str, token: str | None) -> None:
    lines = f"acp-agent: {translate('listening on {url}', url=url)}\n"
    if token is not None:
        lines += f"acp-agent: {translate('the token of this run is {token}', token=token)}\n"
    sys.stderr.write(lines)
    sys.stderr.flush()


def _listening(options: argparse.Namespace, given: str | None) -> tuple[Listening, str | None]:
    """How to listen, and the token where one was made for this run.

    Raises:
        InvalidInputError: the words do not fit together, or make the agent open to strangers.
    """
    address = parse_address(options.listen)
    tls = _tls(options)
    if not address.loopback and tls is None and not options.behind_proxy:
        raise InvalidInputError(
            f"--listen: {address.host} can be reached from other computers, and what goes over the "
            "wire, token and files, could be read on the way; give --tls-cert and --tls-key, or "
            "say --behind-proxy where a proxy in front does TLS, or listen on 127.0.0.1"
        )
    token, made = _token(options, given, address)
    changed = {
        name: value
        for name, value in (
            ("connections", options.max_connections),
            ("sessions", options.max_sessions),
            ("message", options.max_message),
            ("idle", options.idle),
            ("handshake", options.handshake),
            ("head", options.head),
            ("ping", options.ping),
        )
        if value is not None
    }
    limits = Limits()._replace(**changed)
    listening = Listening(
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
    return listening, made


def _path(path: str) -> str:
    if not path.startswith("/") or not path.isascii() or any(sign in path for sign in "?#% \t;"):
        raise InvalidInputError(f"--path: {path!r} is no path; one begins with / such as {PATH}")
    return path


def _tls(options: argparse.Namespace) -> tuple[str, str] | None:
    if (options.tls_cert is None) != (options.tls_key is None):
        raise InvalidInputError("--tls-cert and --tls-key go together; give both")
    return None if options.tls_cert is None else (options.tls_cert, options.tls_key)


def _token(
    options: argparse.Namespace, given: str | None, address: Address
) -> tuple[str | None, str | None]:
    """The token that clients have to show, and the same where it was made here."""
    if options.no_token:
        if not address.loopback or options.behind_proxy:
            raise InvalidInputError(
                "--no-token: without a token whoever reaches the address could use the agent; it "
                "is for an address such as 127.0.0.1 without a proxy in front"
            )
        return None, None
    if options.token_file is not None:
        try:
            given = Path(options.token_file).read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            raise InvalidInputError(f"--token-file {options.token_file}: {reason}") from None
    if given is None:
        made = random.token_urlsafe(32)
        return made, made
    if len(given) < _SHORTEST or not given.isascii() or not given.isprintable() or " " in given:
        raise InvalidInputError(
            f"the token needs {_SHORTEST} or more characters, of ASCII and without blanks, so that "
            "nobody can guess it; leave it out and one is made"
        )
    return given, None


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent serve",
        description="Serve the protocol over WebSocket and streamable HTTP; see docs/remote.md.",
    )
    add = parser.add_argument
    add("--listen", required=True, metavar="HOST:PORT", help="where; port 0 is a free one")
    add("--path", default=PATH, metavar="PATH", help="the endpoint's, for clients that fix it")
    add("--binary", action="store_true", help="take messages in binary frames, too")
    add("--model", metavar="PROVIDER/NAME", help="the model of new sessions")
    add("--trace", metavar="FILE", help="record the wire, without secrets")
    add(
        "--token-file",
        metavar="FILE",
        help="has the token (or ACP_AGENT_LISTEN_TOKEN; else one is made)",
    )
    add("--no-token", action="store_true", help="let in everybody on this computer")
    add("--tls-cert", metavar="FILE", help="a certificate, with its chain, as PEM")
    add("--tls-key", metavar="FILE", help="its key, as PEM")
    add("--behind-proxy", action="store_true", help="a proxy in front does TLS")
    add("--allow-host", action="append", default=[], metavar="NAME", help="answer to this Host too")
    add("--allow-origin", action="append", default=[], metavar="ORIGIN", help="let its pages in")
    add("--max-connections", type=number(1, _MOST), metavar="N", help="at the same time (256)")
    add("--max-sessions", type=number(1, _MOST), metavar="N", help="open in one connection (64)")
    add(
        "--max-message", type=number(1, _MOST), metavar="BYTES", help="size of a message (33554432)"
    )
    add("--idle", type=seconds, metavar="S", help="life of a connection without a stream (120)")
    add("--handshake", type=seconds, metavar="S", help="time to initialize (30)")
    add("--head", type=seconds, metavar="S", help="time for the head of a request (10)")
    add("--ping", type=seconds, metavar="S", help="silence before a peer is pinged (20)")
    return parser
