"""Serve the protocol on stdin and stdout, or on a socket."""

from __future__ import annotations

import os
import sys
from typing import NamedTuple

from acp_agent.server.initialize import Opening, answer_first_line
from acp_agent.session import start_up
from protocol.transports.claim import claim_stdio

# Flags that may follow the program's name instead of a command.
SERVE_FLAGS = (
    "--model", "--agent", "--trace", "--listen", "--login", "--help", "--version", "--print",
)  # fmt: skip
USAGES = ("--model PROVIDER/NAME", "--agent NAME", "--trace FILE", "-p PROMPT")


class ServeFlags(NamedTuple):
    """The parsed command line; `unknown` are words that are not options."""

    model: str | None
    agent: str | None
    trace: str | None
    unknown: tuple[str, ...]


def run(argv: list[str]) -> int:
    """Run `acp-agent serve`, with help; see `serve`."""
    if {"-h", "--help"} & set(argv):
        argv = ["--listen", "", *argv]
    return serve(argv)


def serve(argv: list[str]) -> int:
    """Serve one client until it disconnects, or with `--listen` many until a signal arrives.

    Returns the exit status, or ends the process with it.
    """
    start_up.raise_gc_threshold()
    if any(word.partition("=")[0] == "--listen" for word in argv):
        from acp_agent.cli.listen import listen  # noqa: PLC0415 - where it is asked for

        return listen(argv)
    flags = read_flags(argv)
    if sys.stdin.isatty():
        from acp_agent.cli.localization import translate  # noqa: PLC0415 - no editor starts it so

        if flags.unknown:
            return _refuse(flags.unknown[0])
        message = translate(
            "Waiting for an editor to send Agent Client Protocol messages on standard input. To "
            "talk to the agent in the terminal, run: acp-agent chat"
        )
        sys.stderr.write(f"{message}\n")
    input_fd, output_fd = claim_stdio()
    opening = Opening(b"", None, ended=False)
    if flags.trace is None:  # a trace must record every line, so there is no fast path
        _end_quietly_on_signals()
        opening = answer_first_line(input_fd, output_fd)
        if opening.ended and not opening.unread.strip():
            return 0
    from acp_agent.platform.deferred_modules import (  # noqa: PLC0415 - after the first answer
        SERVER_MODULES,
        defer,
        import_without,
    )

    defer(SERVER_MODULES)
    import_without("msgspec", "typing_extensions")

    # After the first response, but before any command or server can run.
    from acp_agent.platform.descriptor_limit import raise_descriptor_limit  # noqa: PLC0415 - likewise
    from acp_agent.platform.posix import forbid_inspection  # noqa: PLC0415 - likewise

    raise_descriptor_limit()
    forbid_inspection()
    from functools import partial  # noqa: PLC0415 - after the first answer

    from acp_agent.cli.server_process import run_server  # noqa: PLC0415 - likewise
    from acp_agent.server.stdio import serve_stdio  # noqa: PLC0415 - likewise

    return run_server(
        partial(serve_stdio, input_fd, output_fd, opening=opening),
        dict(os.environ),  # whose values are decoded once
        model=flags.model,
        agent=flags.agent,
        trace=flags.trace,
        unknown=flags.unknown,
    )


def _refuse(word: str) -> int:
    """Report an unknown argument, with a suggestion."""
    from difflib import get_close_matches  # noqa: PLC0415 - only where something is said

    from acp_agent.cli.localization import translate  # noqa: PLC0415 - likewise
    from acp_agent.cli.output import USAGE, complain  # noqa: PLC0415 - likewise

    name = word.partition("=")[0]
    matches = get_close_matches(name, SERVE_FLAGS, n=1)
    if matches:
        message = translate(
            "unknown argument {word}; did you mean {near}?", word=name, near=matches[0]
        )
    else:
        message = translate("unknown argument {word}", word=name)
    complain(message)
    usage = f"acp-agent [{'] ['.join(USAGES)}]"
    sys.stderr.write(f"{translate('usage: ')}{usage}\n{translate('More: acp-agent --help')}\n")
    return USAGE


def _end_quietly_on_signals() -> None:
    """Exit with status 0 on signals, until the server handles them."""
    import signal  # noqa: PLC0415 - json imports it anyway, a moment later

    for name in ("SIGTERM", "SIGINT", "SIGHUP"):
        number = getattr(signal, name)
        if name != "SIGHUP" or signal.getsignal(number) != signal.SIG_IGN:  # ignored under `nohup`
            signal.signal(number, lambda *_: os._exit(0))


def read_flags(argv: list[str]) -> ServeFlags:
    """Parse `--model`, `--agent` and `--trace`, with a space or `=`; others are tolerated.

    Does not use argparse, because importing it would take too long before `initialize`.
    """
    values: dict[str, str] = {}
    unknown: list[str] = []
    words = iter(argv)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in {"--model", "--agent", "--trace"}:
            unknown.append(word)
        elif equals:
            values[name] = value
        else:
            values[name] = next(words, "")
    return ServeFlags(
        model=values.get("--model") or None,
        agent=values.get("--agent") or None,
        trace=values.get("--trace") or None,
        unknown=tuple(unknown),
    )
