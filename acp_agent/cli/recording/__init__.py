"""`acp-agent sessions record` and `acp-agent replay`: sessions as regression tests."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from acp_agent.cli.localization import language, translate
from acp_agent.cli.output import FAILED, complain, say, say_json
from acp_agent.cli.parser import Parser
from acp_agent.cli.session_lookup import existing_store, find_session
from acp_agent.cli.user_config import UserConfig, load_user_config
from acp_agent.config.types import Config
from acp_agent.errors import InvalidInputError
from acp_agent.events import AnyEvent
from acp_agent.extensions.definitions.locations import project_top
from acp_agent.models.base import ModelInfo
from acp_agent.models.registry import Models
from acp_agent.permissions.grants import GrantStore
from acp_agent.replay.comparison import Difference
from acp_agent.replay.record import Record, read_record, request_count, write_lines
from acp_agent.replay.recorder import Recorded, add_observed_requests, make_record, used_models
from acp_agent.replay.replay import Replayed, replay
from acp_agent.session.store.event_codec import recovered_events
from acp_agent.session.store.records import SessionRecord
from acp_agent.trust.store import code_item

_MAX_LISTED = 5  # differences


async def read_session(name: str) -> tuple[SessionRecord, list[AnyEvent]]:
    """Return a session with its events; see `find_session`."""
    async with existing_store() as store:
        record = await find_session(store, name)
        return record, recovered_events(await store.read_all(record.id))


def record_session(
    session: SessionRecord, events: Sequence[AnyEvent], secrets: Sequence[str]
) -> tuple[Record, Replayed]:
    """Return the record of a session and its first replay, which supplies what the journal lacks.

    Raises:
        InvalidInputError: it cannot be replayed.
        ConfigError: the configuration is invalid.
    """
    setup = load_user_config()
    config, paths, cwd = setup.config, setup.paths, Path(session.cwd)
    registry = Models(config, setup.secrets, setup.environ)
    models: list[ModelInfo] = []
    for name in [*used_models(events), *config.fallback_models]:
        try:
            models.append(registry.resolve(name))
        except InvalidInputError:  # its provider is no longer configured
            provider, _, model = name.partition("/")
            models.append(ModelInfo(provider=provider, id=model))
    folders = [
        (session.cwd, "<folder>"),
        (str(paths.data_dir), "<data>"),
        (str(paths.config_file.parent), "<data>"),
        (str(Path.home()), "<home>"),
    ]
    recorded = Recorded(
        config=config,
        language=language(),
        confined=_is_confined(config),
        memory=config.memory and setup.trusts(code_item(project_top(cwd))),
        grants=GrantStore(paths.grants_file).for_project(os.path.realpath(session.cwd)),
        folders=folders,
        files=_definitions(setup, cwd),
    )
    session_record = make_record(events, recorded, models=models, secrets=secrets)
    replayed = replay(session_record)
    return add_observed_requests(session_record, replayed), replayed


def _is_confined(config: Config) -> bool:
    """Return whether this machine confines commands. Blocks: runs a program to find out."""
    if not config.sandbox.enabled:
        return False
    from acp_agent.sandbox.sandbox import Unavailable, find_backend  # noqa: PLC0415 - rarely needed

    backend = find_backend(os.environ.get("PATH"), config.sandbox.backend, config.sandbox.image)
    return not isinstance(backend, Unavailable)


def _definitions(setup: UserConfig, cwd: Path) -> dict[str, str]:
    """Return the files of the agents and skills of a session in a folder, by path."""
    from acp_agent.extensions.definitions.discovery import find_definitions  # noqa: PLC0415 - heavy

    definitions = find_definitions(setup.folders(cwd), setup.config, setup.trusts)
    files: dict[str, str] = {}
    agents, skills = definitions.agents, definitions.skills
    for path in (*(agent.path for agent in agents), *(skill.path for skill in skills)):
        with suppress(OSError):
            files[str(path)] = path.read_text("utf-8", "replace")
    return files


async def record(
    options: argparse.Namespace,
    secrets: Sequence[str],
    write: Callable[[Path, Iterable[str]], None],
) -> int:
    """Write the record of a session; return the exit status. Raises AcpAgentError."""
    session, events = await read_session(options.id)
    session_record, replayed = await asyncio.to_thread(record_session, session, events, secrets)
    lines = write_lines(session_record)
    if options.output is None:
        sys.stdout.writelines(lines)
    else:
        write(options.output, lines)
        message = translate(
            "Wrote session {session} to {file}.", session=session.id, file=options.output
        )
        say(message)
    if replayed.differences:
        count = len(replayed.differences)
        complain(
            translate(
                "the record differs from its first replay in {count} places; `acp-agent replay` "
                "shows them",
                count=count,
            )
        )
    return 0


def run(argv: list[str]) -> int:
    """Replay a record; return 1 if the agent behaves differently."""
    parser = Parser(
        prog="acp-agent replay",
        description="Replay a recorded session offline, and report where the agent behaves "
        "differently. No command runs, and no file is changed.",
    )
    parser.add_argument(
        "file", metavar="FILE", type=Path, help="a file that `acp-agent sessions record` wrote"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(argv)
    return _replay(options.file, as_json=options.json)


def _replay(path: Path, *, as_json: bool) -> int:
    record = read_record(path)
    replayed = replay(record)
    requests = request_count(record.steps)
    if as_json:
        say_json(
            {
                "turns": replayed.turns,
                "requests": requests,
                "differences": [_as_json(difference) for difference in replayed.differences],
            }
        )
    else:
        _show(path, replayed, requests)
    return FAILED if replayed.differences else 0


def _show(path: Path, replayed: Replayed, requests: int) -> None:
    count = len(replayed.differences)
    if not count:
        say(
            translate(
                "{file} replays as recorded: {turns} turns, {requests} requests.",
                file=path,
                turns=replayed.turns,
                requests=requests,
            )
        )
        return
    for difference in replayed.differences[:_MAX_LISTED]:
        location = translate("Turn {turn}, {field}", turn=difference.turn, field=difference.field)
        if difference.request:
            location = translate(
                "Turn {turn}, request {request}, {field}",
                turn=difference.turn,
                request=difference.request,
                field=difference.field,
            )
        say(f"{location}\n{difference.diff}\n")
    if count > _MAX_LISTED:
        say(translate("… and {count} more differences", count=count - _MAX_LISTED))
    say(translate("{file} does not replay as recorded.", file=path))


def _as_json(difference: Difference) -> dict[str, object]:
    return {
        "turn": difference.turn,
        "request": difference.request,
        "field": difference.field,
        "diff": difference.diff,
    }
