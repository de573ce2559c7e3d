"""`acp-agent sessions list|show|export|record|delete`; `check|repair` are in `session_repair`."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import msgspec

from acp_agent.cli.localization import language, translate, user_translator
from acp_agent.cli.output import (
    FAILED,
    confirm,
    escape_controls,
    say,
    say_json,
    say_styled,
    say_table,
    split_lines,
)
from acp_agent.cli.parser import Parser, number, user_path
from acp_agent.cli.session_lookup import existing_store, find_session, open_store
from acp_agent.config.paths import find_paths
from acp_agent.config.secrets import Secrets
from acp_agent.errors import InvalidInputError
from acp_agent.session.history.export import export_pieces
from acp_agent.session.history.transcript import Kind, Passage, transcript
from acp_agent.session.store.damaged_events import as_json
from acp_agent.session.store.event_codec import readable_events
from acp_agent.session.store.read_queries import MAX_PAGE
from acp_agent.session.store.records import SessionRecord, StoredEvent, UnknownEvent

_MARGINS: dict[Kind, str] = {
    "user": "> ", "tool": "* ", "output": "  | ", "added": "  | ", "removed": "  | ",
    "thought": "~ ", "note": "- ", "error": "! ", "child": "+ ",
}  # fmt: skip
_CHILD = "    "  # before the output of child sessions
_STYLES: dict[Kind, str] = {
    "user": "bold cyan", "tool": "bold", "output": "dim", "added": "green", "removed": "red",
    "thought": "dim italic", "note": "yellow", "error": "bold red", "child": "bold magenta",
}  # fmt: skip


def run(argv: list[str]) -> int:
    """List, show, export or delete sessions; return the exit status."""
    options = _parser().parse_args(argv)
    if options.action in {"check", "repair"}:
        from acp_agent.cli import session_repair  # noqa: PLC0415 - rarely needed

        work = session_repair.check if options.action == "check" else session_repair.repair
        return work(options)
    if options.action == "list":
        return asyncio.run(_list(options))
    if options.action == "show":
        return asyncio.run(_show(options))
    if options.action == "export":
        return asyncio.run(_export(options))
    if options.action == "record":
        from acp_agent.cli.recording import record  # noqa: PLC0415 - rarely needed

        return asyncio.run(record(options, user_secrets(), write_new))
    return asyncio.run(_delete(options))


def _parser() -> Parser:
    parser = Parser(
        prog="acp-agent sessions",
        description="List, show, export, record, check, repair and delete sessions.",
    )
    actions = parser.add_subparsers(dest="action")
    listing = actions.add_parser("list", help="list sessions, the most recently used first")
    listing.add_argument(
        "--cwd", type=user_path, metavar="DIR", help="only sessions of this folder"
    )
    listing.add_argument(
        "--limit",
        type=number(1, MAX_PAGE),
        default=20,
        metavar="N",
        help="list at most N sessions (default: 20)",
    )
    listing.add_argument("--all", action="store_true", help="include sessions without a prompt")
    listing.add_argument("--json", action="store_true", help="print JSON")
    show = actions.add_parser("show", help="show the conversation of a session")
    show.add_argument("id", help="a session ID, its first characters, or 'latest'")
    show.add_argument("--thoughts", action="store_true", help="include the model's reasoning")
    show.add_argument("--json", action="store_true", help="print the events as JSON, one per line")
    export = actions.add_parser(
        "export", help="write a session to a file or stdout, without secrets"
    )
    export.add_argument("id", help="a session ID, its first characters, or 'latest'")
    export.add_argument(
        "--format",
        choices=["jsonl", "md", "html"],
        default="jsonl",
        help="events as JSON lines, Markdown text, or the page of `acp-agent view`",
    )
    export.add_argument(
        "--output", metavar="FILE", type=Path, help="write to a new file instead of stdout"
    )
    recording = actions.add_parser(
        "record", help="write a session to a file that `acp-agent replay` runs, without secrets"
    )
    recording.add_argument("id", help="a session ID, its first characters, or 'latest'")
    recording.add_argument(
        "-o", "--output", metavar="FILE", type=Path, help="write to a new file instead of stdout"
    )
    delete = actions.add_parser("delete", help="delete sessions permanently")
    delete.add_argument("id", nargs="+", help="session IDs, or their first characters")
    delete.add_argument("--yes", action="store_true", help="delete without asking")
    check = actions.add_parser("check", help="find damaged sessions")
    check.add_argument("--json", action="store_true", help="print JSON")
    repair = actions.add_parser(
        "repair",
        help=(
            "recover what is readable in a damaged journal, and save the damaged file under "
            "another name"
        ),
    )
    repair.add_argument(
        "file",
        nargs="?",
        metavar="FILE",
        type=Path,
        help="a damaged journal saved earlier, to recover what the current one lacks",
    )
    return parser


async def _list(options: argparse.Namespace) -> int:
    records: list[SessionRecord] = []
    async with open_store() as store:
        if store is not None:
            cwd = None if options.cwd is None else str(options.cwd)
            page = await store.list(cwd=cwd, limit=options.limit, with_empty=options.all)
            records = page.sessions
    if options.json:
        say_json([_as_json(record) for record in records])
    elif not records and options.cwd is not None:
        message = translate(
            "{folder} has no sessions; list those of all folders without --cwd", folder=options.cwd
        )
        say(message)
    elif not records:
        say(
            translate(
                "There are no sessions yet; start one with `acp-agent chat` or in your editor."
            )
        )
    else:
        rows = [
            [record.id, _local_time(record.updated_at), str(record.turns), _session_title(record)]
            for record in records
        ]
        say_table(("ID", "LAST USED", "TURNS", "TITLE"), rows)
    return 0


async def _show(options: argparse.Namespace) -> int:
    async with existing_store() as store:
        record = await find_session(store, options.id)
        stored = await store.read_all(record.id)
    if options.json:
        for item in stored:
            event = item.event
            content = as_json(event) if isinstance(event, UnknownEvent) else {"event": event}
            line = msgspec.json.encode({"seq": item.seq, "at": _iso(item.at), **content})
            sys.stdout.write(line.decode() + "\n")
        return 0
    say(record.title or translate("Untitled"))
    say(f"{record.id}, {record.cwd}, {_local_time(record.updated_at)}")
    passages = transcript(
        readable_events(stored), thoughts=options.thoughts, translate=user_translator()
    )
    _print_passages(list(passages))
    return 0


async def _export(options: argparse.Namespace) -> int:
    async with existing_store() as store:
        record = await find_session(store, options.id)
        stored = await store.read_all(record.id)
    pieces = _pieces(options.format, record, stored)
    if options.output is None:
        for piece in pieces:
            sys.stdout.write(escape_controls(piece) if options.format == "md" else piece)
        return 0
    write_new(options.output, pieces)
    say(translate("Wrote session {session} to {file}.", session=record.id, file=options.output))
    return 0


def _pieces(
    form: Literal["jsonl", "md", "html"], record: SessionRecord, stored: list[StoredEvent]
) -> Iterable[str]:
    if form == "html":
        return page_pieces(record, stored)
    return export_pieces(form, record, stored, user_secrets())


def page_pieces(record: SessionRecord, stored: list[StoredEvent]) -> Iterator[str]:
    """Yield the HTML page of a session, in the user's language and without keys."""
    from acp_agent.view.html import render  # noqa: PLC0415 - other formats do without
    from acp_agent.view.reader import read_page  # noqa: PLC0415 - likewise

    page = read_page(
        record, readable_events(stored), secrets=user_secrets(), translate=user_translator()
    )
    return render(page, language=language())


def write_new(path: Path, pieces: Iterable[str]) -> None:
    """Write a new file that only its owner can read; never overwrite one.

    Raises:
        InvalidInputError: it cannot be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(pieces)
    except OSError as error:
        raise InvalidInputError(
            f"cannot write {path} ({error.strerror or type(error).__name__})", field="output"
        ) from None


def user_secrets() -> list[str]:
    """Return the user's keys, to remove them from exports."""
    secrets = Secrets(find_paths(os.environ).secrets_file, os.environ)
    secrets.stored()  # reads the file, so that its keys are known
    return secrets.values()


async def _delete(options: argparse.Namespace) -> int:
    from acp_agent.session.history.checkpoint_files import remove_session_files  # noqa: PLC0415 - for this alone

    status, paths = 0, find_paths(os.environ)
    async with existing_store() as store:
        for name in options.id:
            record = await find_session(store, name)
            question = translate(
                "Delete {session} ({turns} turns) permanently? [y/N] ",
                session=repr(_session_title(record)),
                turns=record.turns,
            )
            if not confirm(question, "--yes", given=options.yes):
                status = FAILED
                continue
            lease = store.lease(record.id)  # refused while an agent writes it
            try:
                if await store.delete(record.id):
                    await remove_session_files(paths.checkpoints_dir, paths.outputs_dir, record.id)
            finally:
                lease.release()
            say(translate("Deleted {session}.", session=record.id))
    return status


def _print_passages(passages: list[Passage]) -> None:
    previous_kind: Kind | None = None
    for passage in passages:
        margin = _CHILD * bool(passage.child) + _MARGINS.get(passage.kind, "")
        joined = passage.kind in {"output", "added", "removed"}
        if not (joined or (previous_kind == passage.kind == "tool")):
            say()
        previous_kind = passage.kind
        text = "\n".join(f"{margin}{line}".rstrip() for line in split_lines(passage.text))
        say_styled(text, _STYLES.get(passage.kind, ""))


def _session_title(record: SessionRecord) -> str:
    return record.title or translate("(untitled, in {folder})", folder=record.cwd)


def _as_json(record: SessionRecord) -> dict[str, object]:
    return {
        **msgspec.to_builtins(record),
        "created_at": _iso(record.created_at),
        "updated_at": _iso(record.updated_at),
    }


def _iso(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat(timespec="milliseconds")


def _local_time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).astimezone().strftime("%Y-%m-%d %H:%M")
