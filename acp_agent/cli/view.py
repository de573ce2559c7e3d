"""`acp-agent view`: show a session as an HTML page."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import webbrowser
from pathlib import Path

from acp_agent.cli.localization import translate
from acp_agent.cli.output import complain, on_terminal, say
from acp_agent.cli.parser import Parser
from acp_agent.cli.session_lookup import existing_store, find_session
from acp_agent.cli.sessions import page_pieces, write_new
from acp_agent.config.paths import find_paths
from acp_agent.errors import InvalidInputError
from acp_agent.platform.posix import has_browser, write_private
from acp_agent.session.store.records import SessionRecord, StoredEvent
from acp_agent.session.store.store import Store


def run(argv: list[str]) -> int:
    """Write the page, print its path and open it; return the exit status."""
    parser = Parser(
        prog="acp-agent view",
        description="Show a session as one offline page: messages, tool calls, permissions, "
        "timing and cost.",
    )
    parser.add_argument(
        "id",
        nargs="?",
        metavar="SESSION",
        help="a session ID, its first characters, or 'latest' (default: the last used session "
        "of this folder)",
    )
    parser.add_argument(
        "--output",
        metavar="FILE",
        type=Path,
        help="write to a new file instead of the agent's own folder",
    )
    parser.add_argument(
        "--open",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="open the page in the browser (default: in a terminal, if there is a display)",
    )
    options = parser.parse_args(argv)
    record, stored = asyncio.run(_read(options.id))
    pieces = page_pieces(record, stored)
    output: Path | None = options.output
    if output is not None:
        path = output
        write_new(path, pieces)
    else:
        # Stored with the session's outputs, so that it is deleted with the session.
        path = find_paths(os.environ).outputs_dir / record.id / "view.html"
        try:
            write_private(path, "".join(pieces).encode())
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InvalidInputError(f"cannot write {path} ({reason})", field="output") from None
    say(translate("Wrote session {session} to {file}.", session=record.id, file=path))
    open_page = options.open
    if open_page is None:
        open_page = on_terminal() and has_browser(os.environ, sys.platform)
    if open_page and not webbrowser.open(path.absolute().as_uri()):
        complain(translate("could not open a browser"))
    return 0


async def _read(name: str | None) -> tuple[SessionRecord, list[StoredEvent]]:
    async with existing_store() as store:
        record = await (_latest_session(store) if name is None else find_session(store, name))
        return record, await store.read_all(record.id)


async def _latest_session(store: Store) -> SessionRecord:
    page = await store.list(cwd=str(Path.cwd()), limit=1)
    if not page.sessions:
        raise InvalidInputError(
            "this folder has no sessions yet; give an ID from `acp-agent sessions list`, or "
            "'latest'",
            field="id",
        )
    return page.sessions[0]
